/* SPDX-License-Identifier: Apache-2.0 */
/* How many blocks a multiprocessor of capability 9.0 takes: by threads, shared memory and what a kernel says
 * of itself; and launches that need all their blocks at once. */
#include "check.h"

/* wide: blocks of at most 256; limited: 64 at most, eight per multiprocessor wanted; fixed: 96 and nothing
 * else. meet: every block counts itself at p and waits for the others, n in all. */
static const char code[] =
	".version 7.5\n.target sm_75\n.address_size 64\n"
	".visible .entry plain() { ret; }\n"
	".visible .entry wide() .maxntid 256, 1, 1 { ret; }\n"
	".visible .entry limited() .maxntid 64, 1, 1 .minnctapersm 8 { ret; }\n"
	".visible .entry fixed() .reqntid 96, 1, 1 { ret; }\n"
	".visible .entry shared(.param .u64 p) {\n"
	" .shared .align 4 .b8 s[20000]; .reg .b64 %p; .reg .b32 %r<2>; ld.param.u64 %p, [p]; mov.u32 %r0, "
	"s;\n"
	" st.shared.u32 [%r0], 5; ld.shared.u32 %r1, [%r0]; st.global.u32 [%p], %r1; ret; }\n"
	".visible .entry meet(.param .u64 p, .param .u32 n) {\n"
	" .reg .b64 %p; .reg .b32 %r<3>; .reg .pred %q; ld.param.u64 %p, [p]; ld.param.u32 %r0, [n];\n"
	" atom.global.add.u32 %r1, [%p], 1;\n"
	"again: ld.volatile.global.u32 %r2, [%p]; setp.lt.u32 %q, %r2, %r0; @%q bra again; ret; }\n";

static CUmodule m;

static CUfunction coded(const char *name)
{
	CUfunction f;

	if (!m)
		NEED(cuModuleLoadData(&m, code));
	NEED(cuModuleGetFunction(&f, m, name));
	return f;
}

static void blocks(void)
{
	static const int threads[] = {1, 31, 32, 33, 64, 65, 96, 128, 160, 192, 224, 256, 288, 384, 512, 640,
		672, 768, 1000, 1024, 1025};
	static const size_t bytes[] = {
		0, 1, 1024, 6000, 7168, 8192, 16384, 32768, 47 << 10, 48 << 10, (48 << 10) + 1};
	static const char *const names[] = {"plain", "wide", "limited", "fixed", "shared"};
	int n;

	begin();
	for (size_t k = 0; k < COUNT(names); k++) {
		CUfunction f = coded(names[k]);

		for (size_t i = 0; i < COUNT(threads); i++) {
			CUresult r = cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, threads[i], 0);

			SAY("%s, %d threads: %d %s", names[k], threads[i], r ? -1 : n, name_of(r));
		}
		for (size_t i = 0; i < COUNT(bytes); i++) {
			CUresult r = cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 32, bytes[i]);

			SAY("%s, %zu bytes: %d %s", names[k], bytes[i], r ? -1 : n, name_of(r));
		}
	}
	CUfunction f = coded("plain");
	ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(NULL, f, 32, 0));
	ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, -1, 0));
	ASK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, f, 32, 0, 1));
	ASK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, f, 32, 0, 77));
	ASK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 << 10));
	ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 32, 100 << 10));
	SAY("%d", n);
	ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 32, (100 << 10) + 1));
	SAY("%d", n);
	ASK(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 10));
	ASK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 32, 16 << 10));
	SAY("%d", n);
}

static size_t CUDA_CB four_each(int threads)
{
	return (size_t)threads * 64;
}

static void sizes(void)
{
	static const char *const names[] = {"plain", "wide", "limited", "fixed", "shared"};
	int grid, block, v, units;
	size_t n;

	begin();
	units = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	for (size_t k = 0; k < COUNT(names); k++) {
		CUfunction f = coded(names[k]);

		SAY("%s", names[k]);
		ASK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
		SAY("at most %d", v);
		ASK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, f));
		SAY("shared %d", v);
		ASK(cuFuncGetAttribute(&v, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, f));
		SAY("dynamic %d", v);
		ASK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 0));
		SAY("%d each, %d", grid / units, block);
		ASK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 20000, 0));
		SAY("%d each, %d", grid / units, block);
		ASK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, NULL, 0, 100));
		SAY("%d each, %d", grid / units, block);
		ASK(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, four_each, 0, 0));
		SAY("%d each, %d", grid / units, block);
		for (int t = 32; t <= 1024; t *= 2)
			for (int b = 1; b <= 32; b *= 4) {
				CUresult r = cuOccupancyAvailableDynamicSMemPerBlock(&n, f, b, t);

				SAY("%d blocks of %d: %zd %s", b, t, r ? (ssize_t)-1 : (ssize_t)n,
					name_of(r));
			}
	}
	CUfunction f = coded("plain");
	ASK(cuOccupancyAvailableDynamicSMemPerBlock(&n, f, 0, 32));
	ASK(cuOccupancyAvailableDynamicSMemPerBlock(&n, f, 1, 0));
}

/* All blocks at once: as many as fit and one more. */
static void together(void)
{
	int v, units;
	unsigned n;
	CUdeviceptr p;

	begin();
	units = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
	CUfunction f = coded("meet");
	p = zeroed(64);
	for (unsigned threads = 32; threads <= 1024; threads *= 4)
		for (unsigned bytes = 0; bytes <= 40000; bytes += 20000) {
			NEED(cuOccupancyMaxActiveBlocksPerMultiprocessor(&v, f, (int)threads, bytes));
			n = (unsigned)(v * units);
			NEED(cuMemsetD32(p, 0, 1));
			unsigned all = n * threads;
			SAY("%u threads, %u bytes", threads, bytes);
			ASK(cuLaunchCooperativeKernel(
				f, n, 1, 1, threads, 1, 1, bytes, NULL, (void *[]){&p, &all}));
			ASK(cuCtxSynchronize());
			SAY("all %d", word(p) == all);
			ASK(cuLaunchCooperativeKernel(
				f, n + 1, 1, 1, threads, 1, 1, bytes, NULL, (void *[]){&p, &all}));
			ASK(cuCtxSynchronize());
		}
	n = 1;
	ASK(cuLaunchCooperativeKernel(f, 0, 1, 1, 32, 1, 1, 0, NULL, (void *[]){&p, &n}));
	ASK(cuLaunchCooperativeKernel(f, 1, 1, 1, 1025, 1, 1, 0, NULL, (void *[]){&p, &n}));
	ASK(cuLaunchCooperativeKernel(f, 1, 1, 1, 1, 1, 1, 49 << 10, NULL, (void *[]){&p, &n}));
	ASK(cuCtxSynchronize());
}

static void start(void)
{
	begin();
	if (attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) != 9)
		SAY("not supported by this device");
}

SECTIONS({"start", start}, {"blocks", blocks}, {"sizes", sizes}, {"together", together})
