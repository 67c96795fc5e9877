/* SPDX-License-Identifier: Apache-2.0 */
/* Occupancy: asked once per function, arguments and what the function's attributes are set to, so that a
 * program that sets them again and again is not asked anew each time. The calls that search a block size run
 * their search here, over those answers, because the application's function that tells the shared memory of a
 * block size runs in the application.
 *
 * Thread rule: any thread; `lock` guards the lists of answers. */
#include "devshim/occupancy.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "devshim/context.h"
#include "devshim/device.h"
#include "devshim/launch.h"
#include "wire/cuda.h"
#include "cuda.calls.h"
#include "cuda.remote.h"

#define SETTABLE CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES /* and those behind it */

enum question { BLOCKS, SHARED_SIZE, CLUSTERS, CLUSTER_SIZE };

struct occupancy {
	struct occupancy *next;
	enum question question;
	CUcontext ctx;
	uint64_t a[6];
	int set[ATTRIBUTES - SETTABLE]; /* the function's attributes that a program can set; -1: not known */
	CUresult code; /* of clusters only: that there are none of that size is remembered, too */
	uint64_t answer;
};
#define ANSWERS 256 /* remembered per function */
#define WALK 31 /* sizes of clusters that are asked for ahead */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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
	return a->question == b->question && a->ctx == b->ctx && !memcmp(a->a, b->a, sizeof a->a) &&
	       !memcmp(a->set, b->set, sizeof a->set);
}

static bool recall(struct function *f, struct occupancy *q)
{
	struct occupancy *o;

	pthread_mutex_lock(&lock);
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

static CUresult start(CUfunction func, struct function **f, struct occupancy *q, enum question what)
{
	struct context *ctx;
	CUresult r = context_check(&ctx);

	if (r)
		return r;
	*f = function_of(func);
	if (!*f)
		return CUDA_ERROR_INVALID_HANDLE;
	memset(q, 0, sizeof *q);
	q->question = what;
	q->ctx = ctx->handle;
	for (unsigned i = 0; i < sizeof q->set / sizeof *q->set; i++)
		if (!function_attribute(*f, SETTABLE + i, ctx->device, &q->set[i]))
			q->set[i] = -1;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize, unsigned int flags)
{
	struct function *f;
	struct occupancy q;
	int n = 0;
	CUresult r = start(func, &f, &q, BLOCKS);

	if (r)
		return r;
	if (!numBlocks)
		return CUDA_ERROR_INVALID_VALUE;
	q.a[0] = (uint64_t)blockSize;
	q.a[1] = dynamicSMemSize;
	q.a[2] = flags;
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
	CUresult r = start(func, &f, &q, SHARED_SIZE);

	if (r)
		return r;
	if (!dynamicSmemSize)
		return CUDA_ERROR_INVALID_VALUE;
	q.a[0] = (uint64_t)numBlocks;
	q.a[1] = (uint64_t)blockSize;
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
	CUresult r = start(func, &f, &q, BLOCKS);
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

/* What is asked, and whether it is remembered: when the launch has no more than one attribute, the cluster's
 * dimensions, which is what libraries ask. */
static bool cluster_question(struct occupancy *q, const CUlaunchConfig *k)
{
	q->a[0] = (uint64_t)k->gridDimX | (uint64_t)k->gridDimY << 32;
	q->a[1] = (uint64_t)k->gridDimZ | (uint64_t)k->blockDimX << 32;
	q->a[2] = (uint64_t)k->blockDimY | (uint64_t)k->blockDimZ << 32;
	q->a[3] = k->sharedMemBytes;
	if (!k->numAttrs)
		return true;
	q->a[4] = (uint64_t)k->attrs[0].value.clusterDim.x | (uint64_t)k->attrs[0].value.clusterDim.y << 32;
	q->a[5] = (uint64_t)k->attrs[0].value.clusterDim.z + 1;
	return k->numAttrs == 1 && k->attrs[0].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
}

/* cuBLAS looks which clusters a device takes: grids of one cluster in a row, of 3, 4, 5, ... blocks. The
 * answer for one brings those for the next ones. */
static unsigned clusters_ahead(const CUlaunchConfig *k)
{
	return k->numAttrs && k->gridDimX && k->gridDimX == k->attrs[0].value.clusterDim.x &&
			       k->gridDimX <= UINT32_MAX - WALK && k->gridDimY == 1 && k->gridDimZ == 1 &&
			       k->attrs[0].value.clusterDim.y == 1 && k->attrs[0].value.clusterDim.z == 1
		       ? WALK
		       : 0;
}

/* Code and number for what was asked and each size behind it. */
static void get_clusters(struct call *c, struct function *f, struct occupancy *q, bool simple, unsigned ahead)
{
	size_t n = get_array(&c->in, 2 * (ahead + 1));
	struct occupancy o = *q;

	c->in.bad |= n < 2 || n % 2;
	for (size_t i = 0; !c->in.bad && i < n / 2; i++) {
		o.code = (CUresult)get_i64(&c->in);
		o.answer = (uint64_t)get_i64(&c->in);
		if (!i)
			*q = o;
		if (simple && !c->in.bad)
			remember(f, &o);
		o.a[0]++;
		o.a[4]++;
	}
}

static CUresult clusters(
	int *n, CUfunction func, const CUlaunchConfig *config, enum question what, unsigned id)
{
	struct function *f;
	struct occupancy q;
	struct call c;
	CUresult r = start(func, &f, &q, what);

	if (r)
		return r;
	if (!n || !config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	bool simple = cluster_question(&q, config);
	unsigned ahead = simple && what == CLUSTERS ? clusters_ahead(config) : 0;

	if (!simple || !recall(f, &q)) {
		r = call_begin(&c, id);
		if (r)
			return r;
		if (!put_handle(&c, HANDLE_CUfunction, func))
			return CUDA_ERROR_INVALID_HANDLE;
		r = put_launch_shape(&c, config, true);
		if (r)
			return r;
		put_u64(&c.out, ahead);
		r = call_wait(&c);
		if (!r)
			get_clusters(&c, f, &q, simple, ahead);
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
	return clusters(clusterSize, func, config, CLUSTER_SIZE, CALL_cuOccupancyMaxPotentialClusterSize);
}

CUresult cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
	return clusters(numClusters, func, config, CLUSTERS, CALL_cuOccupancyMaxActiveClusters);
}
