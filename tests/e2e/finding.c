/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the driver library by each of the names given, as programs do that are not linked with it, and prints
 * "NAME init N count M", or why it cannot be opened. One thread. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		void *driver = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		if (!driver) {
			printf("%s\n", dlerror());
			return 1;
		}
		int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
		int (*get_count)(int *) = (int (*)(int *))dlsym(driver, "cuDeviceGetCount");
		int count = -1, r = init(0);
		if (!r)
			r = get_count(&count);
		printf("%s init %d count %d\n", argv[i], r, count);
	}
	return 0;
}
