/* SPDX-License-Identifier: Apache-2.0 */
/* What compilers in the program (NVRTC, nvJitLink) compiled before, in files, so that they need not do it
 * again. A driver keeps it for them and gives it by one of its private tables; so do we, on the machine where
 * the program runs and its compilers are. Without it they compile all anew: cuDNN alone has its attention
 * compiled for each length of a sequence, the same text each time.
 *
 * Thread rule: any thread. No locks, and no state but for counters. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "wire/cuda_types.h"

struct compiled_key; /* to the caller a handle that compiled_forget ends */

/* What names a result: which step of compilation it is of, its input, its options, the compiler's build. */
CUresult compiled_key(struct compiled_key **out, int step, const void *input, size_t n, const char *options,
		const char *compiler);
CUresult compiled_forget(struct compiled_key *key);
/* *data is the caller's until compiled_free. CUDA_ERROR_NOT_FOUND: it must be compiled. */
CUresult compiled_find(struct compiled_key *key, void *unused, void **data, uint32_t *n);
CUresult compiled_keep(struct compiled_key *key, void *unused, const void *data, uint32_t n);
CUresult compiled_free(void *data);
