/* SPDX-License-Identifier: Apache-2.0 */
/* opening IMAGES KIB [THREADS]: what frameworks ask ahead of their first result, of so many libraries of
 * at least that size: a kernel of each, its function, attributes, occupancy, which clusters fit, and
 * launches of both. Kernel i of image n stores 100 * n + i. Says "right". With THREADS each of so many
 * does all of that at once, and unloads what it loaded. */
#include <pthread.h>
#include "prog.h"

#define KERNELS 20 /* more than come with any load */
#define LARGEST 20 /* blocks of a cluster that are asked for */

static char *image(unsigned number, size_t kib)
{
	size_t cap = (kib << 10) + KERNELS * 512 + 1024, n;
	char *p = malloc(cap);

	REQUIRE(p);
	n = (size_t)snprintf(p, cap, ".version 7.8\n.target sm_90\n.address_size 64\n");
	for (unsigned i = 0; i < KERNELS; i++)
		n += (size_t)snprintf(p + n, cap - n,
			".visible .entry k%u(.param .u64 p)\n{\n	.reg .b64 %%d;\n"
			"	ld.param.u64 %%d, [p];\n"
			"	st.global.u32 [%%d], %u;\n	ret;\n}\n",
			i, 100 * number + i);
	while (n < kib << 10)
		n += (size_t)snprintf(p + n, cap - n, "// %zu: so that the image is not small\n", n);
	return p;
}

/* As cuBLAS does: each size of a cluster alone. */
static void ask_clusters(CUfunction f)
{
	CUlaunchAttribute size = {.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {1, 1, 1}};
	CUlaunchConfig shape = {.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 128, .blockDimY = 1,
		.blockDimZ = 1, .attrs = &size, .numAttrs = 1};
	int again, first = 0;

	for (unsigned x = 3; x <= LARGEST; x++) {
		int n = 0;

		shape.gridDimX = size.value.clusterDim.x = x;
		CHECK(cuOccupancyMaxActiveClusters(&n, f, &shape));
		REQUIRE(n > 0);
		first = x == 3 ? n : first;
	}
	shape.gridDimX = size.value.clusterDim.x = 3;
	CHECK(cuOccupancyMaxActiveClusters(&again, f, &shape));
	REQUIRE(again == first);
}

static void launch(CUfunction f, CUdeviceptr p, unsigned want)
{
	void *arguments[] = {&p};
	unsigned got = 0;

	/* The first in a shape of more than one thread waits, unless an earlier program's was taken. */
	CHECK(cuLaunchKernel(f, 1, 1, 1, 2, 1, 1, 0, NULL, arguments, NULL));
	CHECK(cuMemcpyDtoH_v2(&got, p, sizeof got));
	REQUIRE(got == want);
}

static bool unload;

static void use(unsigned number, size_t kib, CUdeviceptr p)
{
	unsigned i = number % KERNELS;
	CUlibrary library;
	CUfunction f, same;
	CUkernel k;
	size_t shared;
	int v, blocks;
	char *code = image(number, kib), name[16];

	CHECK(cuLibraryLoadData(&library, code, NULL, NULL, 0, NULL, NULL, 0));
	free(code);
	snprintf(name, sizeof name, "k%u", i);
	CHECK(cuLibraryGetKernel(&k, library, name));
	CHECK(cuKernelGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, k, prog_device));
	CHECK(cuKernelGetFunction(&f, k));
	CHECK(cuKernelGetFunction(&same, k));
	REQUIRE(f == same && v > 0);
	CHECK(cuFuncGetAttribute(&blocks, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
	REQUIRE(blocks == v);
	CHECK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024));
	CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 128, 0));
	CHECK(cuOccupancyAvailableDynamicSMemPerBlock(&shared, f, 1, 128));
	REQUIRE(blocks > 0 && shared > 0);
	if (number == 1)
		ask_clusters(f);
	launch(f, p, 100 * number + i);
	launch((CUfunction)k, p, 100 * number + i);
	if (unload)
		CHECK(cuLibraryUnload(library));
}

static unsigned images;
static size_t size;

static void *use_all(void *p)
{
	CHECK(cuCtxSetCurrent(prog_context));
	for (unsigned n = 1; n <= images; n++)
		use(n, size, *(CUdeviceptr *)p);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[16];
	CUdeviceptr p[16];
	int threads = argc == 4 ? atoi(argv[3]) : 0;

	REQUIRE(argc >= 3 && threads <= 16);
	images = (unsigned)atoi(argv[1]);
	size = (size_t)atoi(argv[2]);
	unload = threads;
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&prog_device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&prog_context, prog_device));
	CHECK(cuCtxSetCurrent(prog_context));
	for (int i = 0; i < (threads ? threads : 1); i++)
		CHECK(cuMemAlloc_v2(&p[i], 4));
	for (int i = 0; i < threads; i++)
		REQUIRE(!pthread_create(&thread[i], NULL, use_all, &p[i]));
	for (int i = 0; i < threads; i++)
		pthread_join(thread[i], NULL);
	if (!threads)
		use_all(&p[0]);
	say("right");
	return 0;
}
