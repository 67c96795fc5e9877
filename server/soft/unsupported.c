/* SPDX-License-Identifier: Apache-2.0 */
/* What this device does not have: functions of the API that answer so, and say it once.
 *
 * Thread rule: see state.h. */
#include "server/soft/context.h"
#include "server/soft/logs.h"
#include "wire/log.h"

CUresult soft_unsupported(const char *name)
{
	/* told once per function: a program may call one of these in a loop */
	static const char *told[1024];
	static unsigned n;
	pthread_mutex_lock(&soft.lock);
	bool known = false;
	for (unsigned i = 0; i < n && !known; i++)
		known = told[i] == name;
	if (!known && n < sizeof told / sizeof *told)
		told[n++] = name;
	bool initialised = soft.initialised && !soft.forked;
	pthread_mutex_unlock(&soft.lock);
	if (!initialised)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!known)
		log_warning("%s: the software device does not have this function", name);
	soft_log(CU_LOG_LEVEL_ERROR, "%s: the software device does not have this function", name);
	logs_tell();
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuFlushGPUDirectRDMAWrites(
	CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope)
{
	guarded g = enter_healthy();
	if (g.error)
		return g.error;
	(void)target;
	(void)scope;
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuProfilerStart(void)
{
	guarded g = enter_context();
	return g.error;
}

CUresult cuProfilerStop(void)
{
	guarded g = enter_context();
	return g.error;
}

CUresult cuProfilerInitialize(const char *config, const char *output, CUoutput_mode mode)
{
	(void)config;
	(void)output;
	(void)mode;
	return CUDA_ERROR_NOT_SUPPORTED;
}
