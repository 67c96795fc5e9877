/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and loads the driver. Our own libcuda.so.1 (the shim) must never serve: it carries the symbol
 * scudafs_shim_marker and is passed over, wherever the library path put it.
 *
 * Thread rule: as driver.h. */
#include "server/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MARKER "scudafs_shim_marker"
#define SOFT_NAME "libscuda-soft.so"

extern char **environ;
struct driver drv;

/* Where the real driver lives; the first is for the dynamic linker to find. */
static const char *const real_places[] = {
	"libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", "/usr/lib64/libcuda.so.1",
			"/usr/lib/libcuda.so.1",
	"/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
	"/run/opengl-driver/lib/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1",
};
#define REAL_PLACES (sizeof real_places / sizeof *real_places)

void driver_clear_environment(void)
{
	static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER",
			"CUDA_LAUNCH_BLOCKING",
		"CUDA_MODULE_LOADING", "SCUDAFS_MOUNT"};
	char name[128];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		unsetenv(names[i]);
	for (char **e = environ; *e;) {
		size_t n = strcspn(*e, "=");

		if (strncmp(*e, "LD_", 3) || n >= sizeof name) {
			e++;
			continue;
		}
		memcpy(name, *e, n);
		name[n] = 0;
		unsetenv(name);
		e = environ;
	}
}

int driver_open(const struct driver_choice *choice, char *why, size_t cap)
{
	void *library = dlopen(choice->path, RTLD_NOW | RTLD_LOCAL);
	const char *problem = NULL;

	if (!library) {
		const char *text = dlerror();

		snprintf(why, cap, "%s", text ? text : choice->path);
		return -1;
	}
	if (dlsym(library, MARKER))
		problem = "is scudafs's own libcuda.so.1, which cannot serve";
	else if (!dlsym(library, "cuInit"))
		problem = "is no CUDA driver: it has no cuInit";
	if (problem) {
		snprintf(why, cap, "%s %s", choice->path, problem);
		dlclose(library);
		return -1;
	}
	for (unsigned i = 0; i < driver_symbol_count; i++) {
		const struct driver_symbol *s = &driver_symbols[i];
		void *fn = dlsym(library, s->name);

		if (!fn)
			fn = s->missing;
		memcpy((char *)&drv + s->offset, &fn, sizeof fn);
	}
	return 0;
}

/* Loads it, and sees whether it has a device. */
static int try_driver(const struct driver_choice *choice, int *devices, char *why, size_t cap)
{
	CUresult r;

	*devices = 0;
	if (driver_open(choice, why, cap))
		return -1;
	r = drv.cuInit(0);
	if (!r)
		r = drv.cuDeviceGetCount(devices);
	if (!r && *devices > 0)
		return 0;
	if (r)
		snprintf(why, cap, "%s: cuInit gave %d", choice->path, (int)r);
	else
		snprintf(why, cap, "%s: no device", choice->path);
	return -1;
}

static bool soft_at(struct driver_choice *choice, const char *dir, const char *sub)
{
	size_t n = strlen(dir);

	if (n + strlen(sub) >= sizeof choice->path)
		return false;
	memcpy(choice->path, dir, n);
	strcpy(choice->path + n, sub);
	return !access(choice->path, R_OK);
}

static int find_soft(struct driver_choice *choice, char *why, size_t cap)
{
	char self[400];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);

	choice->soft = true;
	while (n > 0 && self[n - 1] != '/')
		n--;
	if (n > 0) {
		self[n] = 0;
		if (soft_at(choice, self, "../lib/" SOFT_NAME) || soft_at(choice, self,
				"../lib/scudafs/" SOFT_NAME))
			return 0;
	}
	if (soft_at(choice, PREFIX, "/lib/scudafs/" SOFT_NAME))
		return 0;
	snprintf(why, cap, "%s is neither in ../lib beside the program nor in %s/lib/scudafs", SOFT_NAME,
		PREFIX);
	return -1;
}

static int find_real(struct driver_choice *choice, int *devices, char *why, size_t cap)
{
	choice->soft = false;
	for (size_t i = 0; i < REAL_PLACES; i++) {
		char reason[256];

		if (i && access(real_places[i], R_OK))
			continue;
		snprintf(choice->path, sizeof choice->path, "%s", real_places[i]);
		if (!try_driver(choice, devices, reason, sizeof reason))
			return 0;
		/* The first reason is the one that helps. */
		if (!i)
			snprintf(why, cap, "%s", reason);
	}
	return -1;
}

int driver_find(const char *wanted, struct driver_choice *choice, int *devices, char *why, size_t cap)
{
	if (!strcmp(wanted, "auto")) {
		char soft[256];

		if (!find_real(choice, devices, why, cap))
			return 0;
		if (!find_soft(choice, soft, sizeof soft) && !try_driver(choice, devices, soft, sizeof soft))
			return 0;
		/* Both reasons, as far as they fit. */
		snprintf(why + strlen(why), cap - strlen(why), "; %s", soft);
		return -1;
	}
	if (!strcmp(wanted, "soft"))
		return find_soft(choice, why, cap) ? -1 : try_driver(choice, devices, why, cap);
	if (strlen(wanted) >= sizeof choice->path) {
		snprintf(why, cap, "the driver's path is too long");
		return -1;
	}
	strcpy(choice->path, wanted);
	choice->soft = strstr(wanted, "scuda-soft") != NULL;
	return try_driver(choice, devices, why, cap);
}
