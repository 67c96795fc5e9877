/* SPDX-License-Identifier: Apache-2.0 */
/* What the generated cases of the loop test and its harness (loop.c) share. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "server/exec.h"
#include "wire/handle.h"
#ifdef LOOP_NVML
#include "devshim/nvml/call.h"
#include "wire/nvml.h"
#include "nvml.calls.h"
#include "nvml.remote.h"
#include "server/nvml.h"
#define LOOP_NAMES nvml_call_names
#define LOOP_TABLE nvml_serve_table
#define LOOP_DRIVER nvml
#define LOOP_CODE int           /* of the shim's call_* functions */
#define LOOP_CALLS NVML_CALL_COUNT
#else
#include "devshim/call.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.driver.h"
#include "cuda.remote.h"
#define LOOP_NAMES call_names
#define LOOP_TABLE serve_table
#define LOOP_DRIVER drv
#define LOOP_CODE CUresult
#define LOOP_CALLS CALL_COUNT
#endif

struct loop_case {
	unsigned id;
	CUresult (*call)(void);
	size_t driver_offset;
	void *fake;
};
extern const struct loop_case loop_cases[];
extern const unsigned loop_count;
extern unsigned loop_called;        /* id of the driver function that ran last */
extern CUresult loop_result;        /* what it returns */
void loop_check(bool ok, const char *what, int line);
#define LOOP_CHECK(x) loop_check(x, #x, __LINE__)
bool loop_filled(const void *p, int byte, size_t n);
/* The driver's handle for an application's. */
uintptr_t real_handle_value(uintptr_t h);
#define real_handle(h) real_handle_value((uintptr_t)(h))
