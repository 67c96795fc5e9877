/* SPDX-License-Identifier: Apache-2.0 */
/* Occupancy: asked once per function, arguments and what the function's attributes are set to, so that a
 * program that sets them again and again is not asked anew each time. The calls that search a block size run
 * their search here, over those answers, because the application's function that tells the shared memory of a
 * block size runs in the application.
 *
 * Thread rule: any thread; `lock` guards the lists of answers. */
#include "devshim/occupancy.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include "devshim/context.h"
#include "devshim/device.h"
#include "devshim/launch.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

struct occupancy {
	struct occupancy *next;
	enum note kind;
	CUcontext ctx;
	unsigned configured; /* `configured` when it was asked */
	struct occupancy_question q;
	CUresult code; /* of clusters only: that there are none of that size is remembered, too */
	uint64_t answer;
};
#define ANSWERS 256 /* remembered per function */
#define SIZES 32 /* of clusters in a row that are asked for together */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* How often a cache configuration was chosen. No driver tells what it made of one, which one of a function,
 * its kernel and its context counts, or how it divides a multiprocessor then. */
static atomic_uint configured;

static void free_list(struct occupancy *o)
{
	while (o) {
		struct occupancy *next = o->next;

		free(o);
		o = next;
	}
}

void occupancy_free(struct function *f)
{
	free_list(atomic_load(&f->occupancy));
}

static bool same(const struct occupancy *a, const struct occupancy *b)
{
	return a->kind == b->kind && a->ctx == b->ctx && a->configured == b->configured &&
	       !memcmp(&a->q, &b->q, sizeof a->q);
}

/* What the server told ahead, it told of the kernel. */
static bool recall(struct function *f, struct occupancy *q)
{
	struct occupancy *o = NULL;

	pthread_mutex_lock(&lock);
	for (; f && !o; f = f->kernel)
		for (o = atomic_load(&f->occupancy); o && !same(o, q); o = o->next) {
		}
	if (o) {
		q->code = o->code;
		q->answer = o->answer;
	}
	pthread_mutex_unlock(&lock);
	return o;
}

static void remember(struct function *f, const struct occupancy *q)
{
	struct occupancy *o = malloc(sizeof *o), *k;
	unsigned n = 0;

	if (!o)
		return;
	*o = *q;
	pthread_mutex_lock(&lock);
	for (k = atomic_load(&f->occupancy); k; k = k->next)
		n++;
	if (n >= ANSWERS)
		free_list(atomic_exchange(&f->occupancy, NULL));
	o->next = atomic_load(&f->occupancy);
	atomic_store(&f->occupancy, o);
	pthread_mutex_unlock(&lock);
}

void occupancy_told(struct function *f, enum note kind, CUdevice device, const struct occupancy_question *q,
	CUresult code, uint64_t answer)
{
	struct occupancy o = {.kind = kind,
		.ctx = context_primary(device)->handle,
		.q = *q,
		.code = code,
		.answer = answer};

	remember(f, &o);
}

void occupancy_configured(void)
{
	atomic_fetch_add(&configured, 1);
}

void occupancy_context_died(void)
{
	if (atomic_load(&configured))
		occupancy_configured();
}

static CUresult start(CUfunction func, struct function **f, struct occupancy *q, enum note kind)
{
	struct context *ctx;
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	*f = function_of(func);
	if (!*f)
		return CUDA_ERROR_INVALID_HANDLE;
	memset(q, 0, sizeof *q);
	q->kind = kind;
	q->ctx = ctx->handle;
	q->configured = atomic_load(&configured);
	for (int i = 0, v; i < OCCUPANCY_SET; i++)
		q->q.set[i] = function_attribute(*f, OCCUPANCY_SETTABLE + i, ctx->device, &v) ? v : -1;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
	struct function *f;
	struct occupancy q;
	int n = 0;
	CUresult r = start(func, &f, &q, NOTE_BLOCKS);

	if (r)
		return r;
	if (!numBlocks)
		return CUDA_ERROR_INVALID_VALUE;
	q.q.a[0] = (uint64_t)blockSize;
	q.q.a[1] = dynamicSMemSize;
	q.q.a[2] = flags;
	if (!recall(f, &q)) {
		r = remote_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
			&n, func, blockSize, dynamicSMemSize, flags);
		if (r)
			return r;
		q.answer = (uint64_t)n;
		remember(f, &q);
	}
	*numBlocks = (int)q.answer;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
	int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		numBlocks, func, blockSize, dynamicSMemSize, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(
	size_t *dynamicSmemSize, CUfunction func, int numBlocks, int blockSize)
{
	struct function *f;
	struct occupancy q;
	size_t n = 0;
	CUresult r = start(func, &f, &q, NOTE_SHARED_SIZE);

	if (r)
		return r;
	if (!dynamicSmemSize)
		return CUDA_ERROR_INVALID_VALUE;
	q.q.a[0] = (uint64_t)numBlocks;
	q.q.a[1] = (uint64_t)blockSize;
	if (!recall(f, &q)) {
		r = remote_cuOccupancyAvailableDynamicSMemPerBlock(&n, func, numBlocks, blockSize);
		if (r)
			return r;
		q.answer = n;
		remember(f, &q);
	}
	*dynamicSmemSize = q.answer;
	return CUDA_SUCCESS;
}

/* The largest block of the best occupancy, from the largest down in steps of a warp. */
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
	CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit,
	unsigned int flags)
{
	struct function *f;
	struct occupancy q;
	CUresult r = start(func, &f, &q, NOTE_BLOCKS);
	int most, best = 0, best_block = 0, blocks = 0;

	if (r)
		return r;
	if (!minGridSize || !blockSize)
		return CUDA_ERROR_INVALID_VALUE;
	r = cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, func);
	if (r)
		return r;
	CUdevice dev = context_current()->device;
	int warp = device_attribute(dev, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32);
	int limit = blockSizeLimit > 0 && blockSizeLimit < most ? blockSizeLimit : most;

	for (int block = limit; block > 0; block = block % warp ? block - block % warp : block - warp) {
		size_t shared =
			blockSizeToDynamicSMemSize ? blockSizeToDynamicSMemSize(block) : dynamicSMemSize;

		r = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, func, block, shared, flags);
		if (r)
			return r;
		if (blocks * block > best) {
			best = blocks * block;
			best_block = block;
			*minGridSize =
				blocks * device_attribute(dev, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);
		}
		if (best >=
			device_attribute(dev, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, best + 1))
			break;
	}
	if (!best_block)
		*minGridSize = 0;
	*blockSize = best_block;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
	CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(
		minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit, 0);
}

/* cuBLAS looks which clusters a device takes, by grids of one cluster in a row: of 3, 4, 5, ... blocks, or of
 * 32, 30, 28, ... The answer for one brings those for all sizes. */
static bool in_a_row(const CUlaunchConfig *k)
{
	return k->numAttrs && k->gridDimX && k->gridDimX <= SIZES && k->gridDimY == 1 && k->gridDimZ == 1 &&
	       k->attrs[0].value.clusterDim.x == k->gridDimX && k->attrs[0].value.clusterDim.y == 1 &&
	       k->attrs[0].value.clusterDim.z == 1;
}

/* Code and number for what was asked, then for each size from 1 on. */
static void get_clusters(struct call *c, struct function *f, struct occupancy *q, bool simple)
{
	struct occupancy o = *q;

	q->code = (CUresult)get_i64(&c->in);
	q->answer = (uint64_t)get_i64(&c->in);
	size_t n = get_array(&c->in, 2 * SIZES);

	if (simple && !n)
		remember(f, q);
	for (size_t i = 1; !c->in.bad && i <= n / 2; i++) {
		/* As occupancy_clusters has it: the size in the lower halves, one row above. */
		o.q.a[0] = o.q.a[4] = i | (uint64_t)1 << 32;
		o.code = (CUresult)get_i64(&c->in);
		o.answer = (uint64_t)get_i64(&c->in);
		if (!c->in.bad)
			remember(f, &o);
	}
}

static CUresult clusters(int *n, CUfunction func, const CUlaunchConfig *config, enum note kind, unsigned id)
{
	struct function *f;
	struct occupancy q;
	struct call c;
	CUresult r = func ? start(func, &f, &q, kind) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	if (!n || !config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	bool simple = occupancy_clusters(&q.q, config);
	bool row = simple && kind == NOTE_CLUSTERS && in_a_row(config);

	if (!simple || !recall(f, &q)) {
		r = call_begin(&c, id);
		if (r)
			return r;
		if (!put_handle(&c, HANDLE_CUfunction, func))
			return CUDA_ERROR_INVALID_HANDLE;
		r = put_launch_shape(&c, config, true);
		if (r)
			return r;
		put_u64(&c.out, row ? SIZES : 0);
		r = call_wait(&c);
		if (!r)
			get_clusters(&c, f, &q, simple);
		r = call_end(&c, r);
	}
	if (!r)
		r = q.code;
	if (!r)
		*n = (int)q.answer;
	return r;
}

CUresult cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func, const CUlaunchConfig *config)
{
	return clusters(
		clusterSize, func, config, NOTE_CLUSTER_SIZE, CALL_cuOccupancyMaxPotentialClusterSize);
}

CUresult cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
	return clusters(numClusters, func, config, NOTE_CLUSTERS, CALL_cuOccupancyMaxActiveClusters);
}
