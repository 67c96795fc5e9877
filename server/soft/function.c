/* SPDX-License-Identifier: Apache-2.0 */
/* Functions: attributes, parameters, occupancy.
 *
 * Thread rule: see state.h. */
#include "server/soft/device.h"
#include "server/soft/engine.h"
#include "server/soft/launch.h"
#include "server/soft/module.h"

void settings_init(struct function_settings *s)
{
	*s = (struct function_settings){.dynamic_shared = -1, .carveout = -1};
}

size_t function_shared_most(const struct function *f)
{
	size_t fixed = engine_function_info(f->code)->shared_bytes;
	size_t without = fixed < SHARED_BLOCK ? SHARED_BLOCK - fixed : 0;
	int asked = f->settings.dynamic_shared;
	return asked >= 0 && (size_t)asked > without ? (size_t)asked : without;
}

CUresult function_attribute(const struct engine_function *code, const struct function_settings *s,
	CUfunction_attribute a, int *out)
{
	const struct engine_function_info *info = engine_function_info(code);
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	switch (a) {
	case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *out = info->max_threads; break;
	case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *out = (int)info->shared_bytes; break;
	case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *out = (int)info->const_bytes; break;
	case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *out = (int)info->local_bytes; break;
	case CU_FUNC_ATTRIBUTE_NUM_REGS: *out = info->registers; break;
	case CU_FUNC_ATTRIBUTE_PTX_VERSION: /* of the code: libraries pick their launch sizes by it */
		*out = info->ptx_version ? info->ptx_version : soft.major * 10 + soft.minor;
		break;
	case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *out = soft.major * 10 + soft.minor; break;
	case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *out = 0; break;
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
		*out = s->dynamic_shared >= 0              ? s->dynamic_shared
		       : info->shared_bytes < SHARED_BLOCK ? (int)(SHARED_BLOCK - info->shared_bytes)
							   : 0;
		break;
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *out = s->carveout; break;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *out = s->must_set; break;
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
	case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
		*out = s->cluster[a - CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH];
		break;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: *out = s->non_portable; break;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE: *out = s->scheduling; break;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult function_set(
	const struct engine_function *code, struct function_settings *s, CUfunction_attribute a, int value)
{
	switch (a) {
	case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: {
		size_t fixed = engine_function_info(code)->shared_bytes;
		if (value < 0 || (size_t)value + fixed > (size_t)device_model()->shared_optin)
			return CUDA_ERROR_INVALID_VALUE;
		s->dynamic_shared = value;
		return CUDA_SUCCESS;
	}
	case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		if (value < -1 || value > 100)
			return CUDA_ERROR_INVALID_VALUE;
		s->carveout = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
		s->non_portable = value;
		return CUDA_SUCCESS;
	case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		if (value < 0 || value > 2)
			return CUDA_ERROR_INVALID_VALUE;
		s->scheduling = value;
		return CUDA_SUCCESS;
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

static struct guard enter_function(CUfunction h, struct function **f)
{
	struct guard g = enter_healthy();
	if (g.error)
		return g;
	*f = function_named(h, g.context, &g.error);
	if (!*f) {
		guard_leave(&g);
		g.held = false;
	}
	return g;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute a, CUfunction h)
{
	if (!h)
		return CUDA_ERROR_INVALID_HANDLE; /* even before cuInit */
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	/* What depends on the device's code is told of what is loaded, as by an H200. */
	bool of_code = a == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ||
		       a == CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES ||
		       a == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
	if (of_code && !f->loaded)
		return CUDA_ERROR_FUNCTION_NOT_LOADED;
	return function_attribute(f->code, &f->settings, a, value);
}

CUresult cuFuncSetAttribute(CUfunction h, CUfunction_attribute a, int value)
{
	struct function *f;
	guarded g = enter_function(h, &f);
	return g.error ? g.error : function_set(f->code, &f->settings, a, value);
}

CUresult cuFuncSetCacheConfig(CUfunction h, CUfunc_cache config)
{
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	if ((unsigned)config > CU_FUNC_CACHE_PREFER_EQUAL)
		return CUDA_ERROR_INVALID_VALUE;
	f->settings.cache = config;
	return CUDA_SUCCESS;
}

CUresult cuFuncSetSharedMemConfig(CUfunction h, CUsharedconfig config)
{
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	return (unsigned)config > CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE ? CUDA_ERROR_INVALID_VALUE
									    : CUDA_SUCCESS;
}

CUresult cuFuncGetModule(CUmodule *out, CUfunction h)
{
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = HANDLE(f->module);
	return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction h)
{
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	if (!name)
		return CUDA_ERROR_INVALID_VALUE;
	*name = engine_function_info(f->code)->name;
	return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction h, size_t i, size_t *offset, size_t *size)
{
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	const struct engine_function_info *info = engine_function_info(f->code);
	if (!offset || i >= info->nparams)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = info->params[i].offset;
	if (size)
		*size = info->params[i].size;
	return CUDA_SUCCESS;
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction h)
{
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	if (!state)
		return CUDA_ERROR_INVALID_VALUE;
	*state = f->loaded ? CU_FUNCTION_LOADING_STATE_LOADED : CU_FUNCTION_LOADING_STATE_UNLOADED;
	return CUDA_SUCCESS;
}

CUresult cuFuncLoad(CUfunction h)
{
	struct function *f;
	guarded g = enter_function(h, &f);
	if (!g.error)
		f->loaded = true;
	return g.error;
}

/* ---- occupancy */

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* Warps stand on four schedulers, each with a quarter of the registers. */
#define SCHEDULERS 4u

static size_t less(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* What of a multiprocessor's shared memory a block takes that asks for so many bytes. */
static size_t shared_taken(const struct model *m, size_t bytes)
{
	return round_up(bytes + (size_t)m->shared_reserved, (size_t)m->shared_unit);
}

/* What a multiprocessor of 228 KiB lets be shared memory; the rest is cache. */
static const unsigned carveouts[] = {0, 8, 16, 32, 64, 100, 132, 164, 196, 228};

/* Bytes of shared memory where a function prefers a part in percent: the least step that has it and one
 * block. Smaller devices have a prefix of the steps. */
static size_t carved(const struct model *m, int percent, size_t block)
{
	size_t most = (size_t)m->shared;

	if (percent < 0)
		return most;
	for (size_t i = 0; i < sizeof carveouts / sizeof *carveouts; i++) {
		size_t bytes = (size_t)carveouts[i] << 10;
		if (bytes >= most)
			break;
		if (bytes * 100 >= most * (size_t)percent && bytes >= block)
			return bytes;
	}
	return most;
}

/* Blocks of that shape that a multiprocessor of the presented device holds at once. */
int function_blocks(const struct function *f, size_t threads, size_t dynamic)
{
	const struct engine_function_info *info = engine_function_info(f->code);
	const struct model *m = device_model();
	size_t shared = shared_taken(m, info->shared_bytes + dynamic);
	/* As a driver answers: what the code says of its blocks is not asked here. */
	if (threads > THREADS_BLOCK || dynamic > function_shared_most(f))
		return 0;
	size_t warps = (threads + 31) / 32, each = round_up((size_t)info->registers * 32, 256);
	size_t n = less((size_t)m->threads / 32 / warps, (size_t)m->blocks);
	if (shared)
		n = less(n, carved(m, f->settings.carveout, shared) / shared);
	if (each)
		n = less(n, REGISTERS_MULTIPROCESSOR / SCHEDULERS / each * SCHEDULERS / warps);
	return n ? (int)n : 1; /* what may be launched at all runs */
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
	int *blocks, CUfunction h, int threads, size_t shared, unsigned flags)
{
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	if (!blocks || threads <= 0 || flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	f->loaded = true;
	*blocks = function_blocks(f, (size_t)threads, shared);
	return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction h, int threads, size_t shared)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, h, threads, shared, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction h,
	CUoccupancyB2DSize shared_of, size_t shared, int limit, unsigned flags)
{
	if (!grid || !block || flags & ~(unsigned)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	int most, best = 0, best_threads = 0, blocks_of_best = 0;
	CUresult r = cuFuncGetAttribute(&most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, h);
	if (r)
		return r;
	if (limit > 0 && limit < most)
		most = limit;
	for (int n = most; n > 0; n = (n - 1) / 32 * 32) {
		int blocks;
		/* the program's function is called without the lock */
		r = cuOccupancyMaxActiveBlocksPerMultiprocessor(
			&blocks, h, n, shared_of ? shared_of(n) : shared);
		if (r)
			return r;
		if (blocks * n > best) {
			best = blocks * n;
			best_threads = n;
			blocks_of_best = blocks;
		}
	}
	*block = best_threads;
	*grid = blocks_of_best * (int)soft.workers;
	return CUDA_SUCCESS;
}
CUresult cuOccupancyMaxPotentialBlockSize(
	int *grid, int *block, CUfunction h, CUoccupancyB2DSize shared_of, size_t shared, int limit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, h, shared_of, shared, limit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction h, int blocks, int threads)
{
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	const struct model *m = device_model();
	if (!bytes || blocks <= 0 || threads <= 0 || blocks > function_blocks(f, (size_t)threads, 0))
		return CUDA_ERROR_INVALID_VALUE;
	/* A driver does not take off what a block has reserved. */
	size_t unit = (size_t)m->shared_unit, each = (size_t)m->shared / (size_t)blocks / unit * unit,
	       fixed = engine_function_info(f->code)->shared_bytes;
	*bytes = less(each > fixed ? each - fixed : 0, function_shared_most(f));
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction h, const CUlaunchConfig *config)
{
	if (!h)
		return CUDA_ERROR_INVALID_VALUE;
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	if (!size || !config)
		return CUDA_ERROR_INVALID_VALUE;
	if (soft.major < 9)
		return CUDA_ERROR_NOT_SUPPORTED;
	*size = f->settings.non_portable ? ENGINE_CLUSTER : CLUSTER_PORTABLE;
	return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *clusters, CUfunction h, const CUlaunchConfig *config)
{
	if (!h)
		return CUDA_ERROR_INVALID_VALUE;
	struct function *f;
	guarded g = enter_function(h, &f);
	if (g.error)
		return g.error;
	if (!clusters || !config)
		return CUDA_ERROR_INVALID_VALUE;
	if (soft.major < 9)
		return CUDA_ERROR_NOT_SUPPORTED;
	*clusters = (int)soft.workers; /* each has all blocks of one */
	return CUDA_SUCCESS;
}
