/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the driver's and NVML's library by the names that programs use, without a version first, and tells
 * whether both names are one library and whose folder it is in. This program is not linked with either. One
 * thread. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static void tell(const char *plain, const char *versioned, const char *symbol)
{
	void *a = dlopen(plain, RTLD_NOW), *b = dlopen(versioned, RTLD_NOW), *f = a ? dlsym(a, symbol) : NULL;
	Dl_info where = {0};

	if (f)
		dladdr(f, &where);
	printf("%s %s %s\n", plain, a && a == b ? "same" : "not the same",
			where.dli_fname ? where.dli_fname : "missing");
}

int main(void)
{
	tell("libcuda.so", "libcuda.so.1", "cuInit");
	tell("libnvidia-ml.so", "libnvidia-ml.so.1", "nvmlInit_v2");
	return 0;
}
