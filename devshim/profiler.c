/* SPDX-License-Identifier: Apache-2.0 */
/* The profiler's switches. Thread rule: any thread. */
#include "devshim/call.h"
#include "devshim/context.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

/* A profiler would have to run beside the server's driver. */
CUresult cuProfilerInitialize(const char *configFile, const char *outputFile, CUoutput_mode outputMode)
{
	(void)configFile;
	(void)outputFile;
	(void)outputMode;
	return call_unsupported(CALL_cuProfilerInitialize, "the profiler is of the GPU host");
}

CUresult cuProfilerStart(void)
{
	struct context *c;

	return context_check(&c);
}

CUresult cuProfilerStop(void)
{
	struct context *c;

	return context_check(&c);
}
