/* SPDX-License-Identifier: Apache-2.0 */
/* Asks NVML what a monitor asks, on a software device: says "right" when all of it is so. With the argument
 * "wait" it says "ready", waits for standard input and asks again; with "closes" it closes all descriptors
 * that it has not opened itself, and looks whether those that it opens then stay; with "streams" it begins
 * without standard input, which stays closed; with "nowhere" there is no mount. One thread. NVML is loaded as
 * monitors load it, so that no library path is needed to build this. */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/wait.h>
#include "tests/e2e/progs/prog.h"
#include "wire/nvml.h"

#define FILES 40

static void *library;

static void *find(const char *name)
{
	void *f = dlsym(library, name);

	prog_require(f, name, __LINE__);
	return f;
}
#define ASK(name) ((__typeof__(&(name)))find(#name))

static void check_names(nvmlDevice_t d)
{
	char name[96], uuid[96], tree[96] = "", again[8];
	nvmlPciInfo_t pci = {0};
	nvmlDevice_t same = NULL;
	unsigned n = 7;
	FILE *f;

	REQUIRE(!ASK(nvmlDeviceGetName)(d, name, sizeof name) && *name);
	REQUIRE(ASK(nvmlDeviceGetName)(d, again, 2) == NVML_ERROR_INSUFFICIENT_SIZE);
	REQUIRE(ASK(nvmlDeviceGetName)(d, NULL, 96) == NVML_ERROR_INVALID_ARGUMENT);
	REQUIRE(ASK(nvmlDeviceGetName)((nvmlDevice_t)1, name, 96) == NVML_ERROR_INVALID_ARGUMENT);
	REQUIRE(!ASK(nvmlDeviceGetUUID)(d, uuid, sizeof uuid) && !strncmp(uuid, "GPU-", 4));
	REQUIRE(!ASK(nvmlDeviceGetHandleByUUID)(uuid, &same) && same == d);
	REQUIRE(!ASK(nvmlDeviceGetIndex)(d, &n) && n == 0);
	REQUIRE(!ASK(nvmlDeviceGetPciInfo_v3)(d, &pci) && strstr(pci.busId, ":00.0"));
	snprintf(tree, sizeof tree, "%s/gpu0/uuid", getenv("SCUDAFS_MOUNT"));
	f = fopen(tree, "re");
	REQUIRE(f && fgets(tree, sizeof tree, f));
	fclose(f);
	REQUIRE(!strncmp(tree, uuid, strlen(uuid)));
}

/* A program may have an older, shorter struct than this build's: what lies behind it stays. */
static void check_versions(nvmlDevice_t d)
{
	struct { nvmlMemory_v2_t m; unsigned long long behind; } v = {.m.version = sizeof v.m | 2u << 24,
			.behind = 42};
	struct { unsigned version, words[63]; } shorter;

	REQUIRE(!ASK(nvmlDeviceGetMemoryInfo_v2)(d, &v.m) && v.m.total >= v.m.free && v.behind == 42);
	v.m.version = (sizeof v.m + 8) | 3u << 24;
	REQUIRE(ASK(nvmlDeviceGetMemoryInfo_v2)(d, &v.m) == NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	memset(&shorter, 0x5a, sizeof shorter);
	shorter.version = 16 | 1u << 24;
	REQUIRE(ASK(nvmlDeviceGetMemoryInfo_v2)(d, (nvmlMemory_v2_t *)&shorter));
	for (unsigned i = 0; i < 63; i++)
		REQUIRE(shorter.words[i] == 0x5a5a5a5a);
}

static void check_lists(nvmlDevice_t d)
{
	nvmlProcessInfo_t infos[8];
	nvmlProcessInfo_v1_t old[8];
	unsigned n = 8;

	REQUIRE(!ASK(nvmlDeviceGetComputeRunningProcesses_v3)(d, &n, infos) && n <= 8);
	n = UINT32_MAX;
	nvmlReturn_t r = ASK(nvmlDeviceGetComputeRunningProcesses_v3)(d, &n, NULL);
	REQUIRE(n ? r == NVML_ERROR_INSUFFICIENT_SIZE && n <= 8 : !r);
	n = 8;
	REQUIRE(!ASK(nvmlDeviceGetComputeRunningProcesses)(d, &n, old) && n <= 8);
	n = UINT32_MAX;
	REQUIRE(ASK(nvmlDeviceGetSupportedMemoryClocks)(d, &n, NULL) == NVML_ERROR_NOT_SUPPORTED);
	unsigned long cpus[64];
	REQUIRE(ASK(nvmlDeviceGetCpuAffinity)(d, 64, cpus) == NVML_ERROR_NOT_SUPPORTED);
}

static void check_events(nvmlDevice_t d)
{
	unsigned long long types = 1;
	nvmlEventData_t event;
	nvmlEventSet_t set;

	REQUIRE(!ASK(nvmlDeviceGetSupportedEventTypes)(d, &types) && !types);
	REQUIRE(!ASK(nvmlEventSetCreate)(&set) && set);
	REQUIRE(ASK(nvmlEventSetWait_v2)(set, &event, 0) == NVML_ERROR_TIMEOUT);
	REQUIRE(ASK(nvmlEventSetWait)(set, &event, 700) == NVML_ERROR_TIMEOUT);
	REQUIRE(!ASK(nvmlEventSetFree)(set));
	REQUIRE(ASK(nvmlEventSetWait_v2)(set, &event, 0) == NVML_ERROR_INVALID_ARGUMENT);
}

/* What changes a card is refused, what nobody has says so, and a process of this mount has its name. */
static void check_others(nvmlDevice_t d)
{
	char name[256];
	unsigned n;

	REQUIRE(ASK(nvmlDeviceSetPowerManagementLimit)(d, 500000) == NVML_ERROR_NO_PERMISSION);
	REQUIRE(ASK(nvmlDeviceSetPersistenceMode)(d, NVML_FEATURE_ENABLED) == NVML_ERROR_NO_PERMISSION);
	REQUIRE(ASK(nvmlDeviceGetFanSpeed)(d, &n) == NVML_ERROR_NOT_SUPPORTED);
	REQUIRE(!strcmp(ASK(nvmlErrorString)(NVML_ERROR_NOT_SUPPORTED), "Not Supported"));
	REQUIRE(!ASK(nvmlSystemGetProcessName)((unsigned)getpid(), name, sizeof name) &&
			strstr(name, "nvml"));
	REQUIRE(!ASK(nvmlSystemGetProcessName)((unsigned)getpid(), name, 4) && strlen(name) == 3);
}

static void check_all(void)
{
	nvmlDevice_t d = NULL, old = NULL;
	char version[80];
	unsigned n = 0;

	REQUIRE(!ASK(nvmlDeviceGetCount_v2)(&n) && n == 1);
	REQUIRE(!ASK(nvmlDeviceGetCount)(&n) && n == 1);
	REQUIRE(!ASK(nvmlDeviceGetHandleByIndex_v2)(0, &d) && d);
	REQUIRE(!ASK(nvmlDeviceGetHandleByIndex)(0, &old) && old == d);
	REQUIRE(ASK(nvmlDeviceGetHandleByIndex_v2)(1, &old) == NVML_ERROR_INVALID_ARGUMENT);
	REQUIRE(ASK(nvmlDeviceGetHandleByIndex_v2)(0, NULL) == NVML_ERROR_INVALID_ARGUMENT);
	REQUIRE(!ASK(nvmlSystemGetDriverVersion)(version, sizeof version) && *version);
	check_names(d);
	check_versions(d);
	check_lists(d);
	check_events(d);
	check_others(d);
}

/* A program may close what it does not know, and open files of its own in their place: those stay open, here
 * and in a child. */
static void check_closed(void)
{
	int fd[FILES], status;

	close_range(3, ~0u, 0);
	for (int i = 0; i < FILES; i++)
		REQUIRE((fd[i] = open("/dev/zero", O_RDONLY)) >= 0);
	pid_t child = fork();
	REQUIRE(child >= 0);
	for (int i = 0; i < FILES && !child; i++)
		if (fcntl(fd[i], F_GETFD) < 0)
			_exit(1);
	if (!child)
		_exit(0);
	REQUIRE(waitpid(child, &status, 0) == child && status == 0);
	REQUIRE(!ASK(nvmlShutdown)());
	for (int i = 0; i < FILES; i++)
		REQUIRE(fcntl(fd[i], F_GETFD) >= 0);
}

int main(int argc, char **argv)
{
	unsigned n;

	if (argc > 1 && !strcmp(argv[1], "nowhere"))
		setenv("SCUDAFS_MOUNT", "/nowhere", 1);
	library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	REQUIRE(library);
	REQUIRE(ASK(nvmlDeviceGetCount_v2)(&n) == NVML_ERROR_UNINITIALIZED);
	if (argc > 1 && !strcmp(argv[1], "nowhere")) {
		nvmlReturn_t (*init)(void) = ASK(nvmlInit_v2);

		errno = PROG_ERRNO;
		REQUIRE(init() == NVML_ERROR_DRIVER_NOT_LOADED && errno == PROG_ERRNO);
		say("right");
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "streams"))
		close(STDIN_FILENO);
	REQUIRE(!ASK(nvmlInit_v2)());
	REQUIRE(argc < 2 || strcmp(argv[1], "streams") || fcntl(STDIN_FILENO, F_GETFD) < 0);
	if (argc > 1 && !strcmp(argv[1], "closes")) {
		check_closed();
		say("right");
		return 0;
	}
	REQUIRE(!ASK(nvmlInit)());
	check_all();
	if (argc > 1 && !strcmp(argv[1], "wait")) {
		say("ready");
		await();
		check_all();
	}
	REQUIRE(!ASK(nvmlShutdown)());
	REQUIRE(!ASK(nvmlDeviceGetCount_v2)(&n));
	REQUIRE(!ASK(nvmlShutdown)());
	REQUIRE(ASK(nvmlDeviceGetCount_v2)(&n) == NVML_ERROR_UNINITIALIZED);
	REQUIRE(ASK(nvmlShutdown)() == NVML_ERROR_UNINITIALIZED);
	say("right");
	return 0;
}
