/* SPDX-License-Identifier: Apache-2.0 */
/* Names and texts of the CUresult codes. Thread rule: constants only. */
#pragma once
#include "wire/cuda_types.h"

/* "CUDA_ERROR_INVALID_VALUE" and "invalid argument"; NULL for a number that is no code. */
const char *error_name(CUresult code);
const char *error_text(CUresult code);
