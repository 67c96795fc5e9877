/* SPDX-License-Identifier: Apache-2.0 */
/* A program that calls both libraries, the driver's private tables among them, and whose calls are known
 * (tests/e2e/stats.sh): of NVML through its oldest and its newest names, and in a child that calls nothing
 * else. Threads: none. */
#include <dlfcn.h>
#include <sys/wait.h>
#include "tests/e2e/progs/prog.h"
#include "wire/nvml.h"

static const char ids[] = "\x21\x31\x8c\x60\x97\x14\x32\x48\x8c\xa6\x41\xff\x73\x24\xc8\xf2";
static void *library;
static nvmlDevice_t d;
#define ASK(name) ((__typeof__(&(name)))dlsym(library, #name))

static void monitor(int asks)
{
	unsigned n;

	REQUIRE(!ASK(nvmlInit_v2)());
	for (int i = 0; i < 3; i++)
		REQUIRE(!ASK(nvmlDeviceGetCount_v2)(&n) && n);
	REQUIRE(!ASK(nvmlDeviceGetHandleByIndex_v2)(0, &d));
	for (int i = 0; i < asks; i++)
		REQUIRE(ASK(nvmlDeviceGetPowerUsage)(d, &n) == NVML_ERROR_NOT_SUPPORTED);
	REQUIRE(!ASK(nvmlShutdown)());
}

int main(void)
{
	const void *table;
	uint64_t id;
	CUuuid name;
	int status;

	prog_up();
	memcpy(name.bytes, ids, sizeof name.bytes);
	CHECK(cuGetExportTable(&table, &name));
	CUresult (*of_context)(CUcontext c, uint64_t *id) = ((const void *const *)table)[4];
	for (int i = 0; i < 5; i++)
		CHECK(of_context(prog_context, &id));
	REQUIRE((library = dlopen("libnvidia-ml.so.1", RTLD_NOW)) && !ASK(nvmlInit)());
	monitor(2);
	pid_t p = fork();
	if (!p) {
		unsigned n;
		monitor(1);
		REQUIRE(ASK(nvmlDeviceGetPowerUsage)(d, &n) == NVML_ERROR_UNINITIALIZED);
		_exit(0);
	}
	REQUIRE(waitpid(p, &status, 0) == p && !status && !ASK(nvmlShutdown)());
	return 0;
}
