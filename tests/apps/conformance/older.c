/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of CUDA 2, found by name: those whose addresses have 32 bits, which a driver of 64 bits has no use for, and those that
 * say the same as today's. One section each, since nobody promises that they come back. */
#include "check.h"
#include <dlfcn.h>

static void *find(const char *name)
{
	void *f;

	begin();
	f = dlsym(RTLD_DEFAULT, name);
	if (!f)
		SAY("no %s", name);
	return f;
}

#define OLD(name, ...) \
	CUresult (*f)(__VA_ARGS__) = (CUresult(*)(__VA_ARGS__))find(name); \
	if (!f) \
		return

static void alloc(void)
{
	unsigned p = 0;
	OLD("cuMemAlloc", unsigned *, unsigned);
	ASK(f(&p, 256));
}

static void info(void)
{
	unsigned a = 0, b = 0;
	OLD("cuMemGetInfo", unsigned *, unsigned *);
	ASK(f(&a, &b));
	SAY("~ %u of %u", a, b);
}

static void alloc_host(void)
{
	void *p = NULL;
	unsigned flags = 0;
	OLD("cuMemAllocHost", void **, unsigned);
	ASK(f(&p, 256));
	SAY("memory %d", p != NULL);
	ASK(cuMemHostGetFlags(&flags, p));
	ASK(cuMemFreeHost(p));
}

static void device_pointer(void)
{
	unsigned d = 0;
	void *p;
	OLD("cuMemHostGetDevicePointer", unsigned *, void *, unsigned);
	NEED(cuMemAllocHost(&p, 256));
	ASK(f(&d, p, 0));
}

static void to_device(void)
{
	unsigned v = 1;
	OLD("cuMemcpyHtoD", unsigned, const void *, unsigned);
	ASK(f(0, &v, 4));
}

static void set(void)
{
	OLD("cuMemsetD32", unsigned, unsigned, unsigned);
	ASK(f(0, 1, 1));
}

static void global(void)
{
	unsigned p = 0, n = 0;
	OLD("cuModuleGetGlobal", unsigned *, unsigned *, CUmodule, const char *);
	ASK(f(&p, &n, module, "number"));
}

struct old_array {
	unsigned width, height;
	CUarray_format format;
	unsigned channels;
};

static void array(void)
{
	struct old_array d = {64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1}, got = {0};
	CUarray a = NULL;
	unsigned char bytes[64], back[64] = {0};
	CUresult (*get)(struct old_array *, CUarray), (*in)(CUarray, unsigned, const void *, unsigned),
		(*out)(void *, CUarray, unsigned, unsigned);
	OLD("cuArrayCreate", CUarray *, const struct old_array *);
	if (ASK(f(&a, &d)))
		return;
	get = (CUresult(*)(struct old_array *, CUarray))dlsym(RTLD_DEFAULT, "cuArrayGetDescriptor");
	in = (CUresult(*)(CUarray, unsigned, const void *, unsigned))dlsym(RTLD_DEFAULT, "cuMemcpyHtoA");
	out = (CUresult(*)(void *, CUarray, unsigned, unsigned))dlsym(RTLD_DEFAULT, "cuMemcpyAtoH");
	if (get && !ASK(get(&got, a)))
		SAY("%u x %u, %u channels", got.width, got.height, got.channels);
	for (int i = 0; i < 64; i++)
		bytes[i] = (unsigned char)(3 * i);
	if (in && out) {
		ASK(in(a, 8, bytes, 40));
		ASK(out(back, a, 8, 40));
		SAY("same bytes %d", !memcmp(back, bytes, 40));
	}
	ASK(cuArrayDestroy(a));
}

SECTIONS({"alloc", alloc}, {"info", info}, {"alloc host", alloc_host}, {"device pointer", device_pointer},
	{"to device", to_device}, {"set", set}, {"global", global}, {"array", array})
