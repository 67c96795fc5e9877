/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about occupancy. What the driver answers in a primary context is noted with the function's
 * image, so that the next program that loads it need not ask.
 *
 * Thread rule: as exec.h; no state. */
#include <string.h>

#include "server/exec.h"
#include "server/handle.h"
#include "server/notes.h"
#include "server/serve.h"
#include "server/state.h"
#include "wire/limits.h"
#include "cuda.calls.h"

#define LIMIT_SIZES 64 /* of clusters that are asked for together */

/* Codes that are answers: the device has no such clusters. */
static bool is_answer(CUresult r)
{
	return !r || r == CUDA_ERROR_INVALID_VALUE || r == CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

/* In another context than a primary one the answer may be another, and with a cache configuration: it is not
 * noted. */
void note_answer(struct exec *x, enum note kind, void *f, const struct occupancy_question *q, CUresult code,
	uint64_t answer)
{
	struct handles *h = x->session->handles;
	unsigned type = HANDLE_TYPE(x->first_id);
	uint64_t of = handle_parent(h, x->first_id);
	const char *name = NULL;
	uint8_t entry[8192];
	struct msg m;
	int v;

	if (HANDLE_TYPE(of) == HANDLE_CUkernel)
		of = handle_parent(h, of);
	if (atomic_load(&x->session->configured) || HANDLE_NUMBER(x->frame.ctx) >= HANDLE_OWN || !of ||
		(type == HANDLE_CUkernel ? drv.cuKernelGetName(&name, f) : drv.cuFuncGetName(&name, f)) ||
		!name)
		return;
	int device = current_device();

	msg_init(&m, entry, sizeof entry);
	put_text(&m, name);
	put_u64(&m, kind);
	put_i64(&m, device);
	put_array(&m, OCCUPANCY_WORDS);
	for (int i = 0; i < OCCUPANCY_ARGUMENTS; i++)
		put_u64(&m, q->a[i]);
	for (int i = 0; i < OCCUPANCY_SET; i++)
		put_i64(&m, attribute_of(type, f, device, OCCUPANCY_SETTABLE + i, &v) ? -1 : v);
	size_t same = m.len;

	put_i64(&m, code);
	put_u64(&m, answer);
	if (!m.bad)
		notes_add(of, entry, m.len, same);
}

CUresult serve_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(struct exec *x)
{
	CUfunction f = exec_handle(x, HANDLE_CUfunction);
	int block = (int)get_i64(&x->in), n = 0;
	size_t dynamic = get_u64(&x->in);
	unsigned flags = (unsigned)get_u64(&x->in);

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&n, f, block, dynamic, flags);

	if (r)
		return r;
	put_i64(&x->out, n);
	note_answer(x, NOTE_BLOCKS, f,
		&(struct occupancy_question){.a = {(uint64_t)block, dynamic, flags}}, r, (uint64_t)n);
	return r;
}

CUresult serve_cuOccupancyAvailableDynamicSMemPerBlock(struct exec *x)
{
	CUfunction f = exec_handle(x, HANDLE_CUfunction);
	int blocks = (int)get_i64(&x->in), block = (int)get_i64(&x->in);
	size_t n = 0;

	if (!get_end(&x->in))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	CUresult r = drv.cuOccupancyAvailableDynamicSMemPerBlock(&n, f, blocks, block);

	if (r)
		return r;
	put_u64(&x->out, n);
	note_answer(x, NOTE_SHARED_SIZE, f,
		&(struct occupancy_question){.a = {(uint64_t)blocks, (uint64_t)block}}, r, n);
	return r;
}

typedef CUresult question(int *, CUfunction, const CUlaunchConfig *);

/* Asks and notes. */
static CUresult ask_clusters(
	struct exec *x, enum note kind, question *ask, CUfunction f, CUlaunchConfig *c, int *n)
{
	struct occupancy_question q = {.a = {0}};

	*n = 0;
	CUresult r = ask(n, f, c);

	if (is_answer(r) && occupancy_clusters(&q, c))
		note_answer(x, kind, f, &q, r, (uint64_t)*n);
	return r;
}

/* Code and number for what was asked; then an array of them for clusters of 1, 2, ... `sizes` blocks in a
 * row, up to one that the driver has no answer for. */
static CUresult serve_clusters(struct exec *x, enum note kind, question *ask)
{
	CUlaunchConfig c = {0};
	CUfunction f = exec_handle(x, HANDLE_CUfunction);
	CUresult code[LIMIT_SIZES + 1], r;
	int n[LIMIT_SIZES + 1];
	unsigned known = 0;

	if (!get_launch_config(x, &c, true))
		return SERVE_BAD;
	uint64_t sizes = get_u64(&x->in);

	if (!get_end(&x->in) || sizes > LIMIT_SIZES || (sizes && !c.numAttrs))
		return SERVE_BAD;
	if (x->bad_handle)
		return x->handle_code;
	r = ask_clusters(x, kind, ask, f, &c, &n[0]);
	if (!is_answer(r))
		return r;
	put_i64(&x->out, r);
	put_i64(&x->out, n[0]);
	for (unsigned i = 1; i <= sizes; i++, known++) {
		c.gridDimX = c.attrs[0].value.clusterDim.x = i;
		code[i] = ask_clusters(x, kind, ask, f, &c, &n[i]);
		if (!is_answer(code[i]))
			break;
	}
	put_array(&x->out, 2 * known);
	for (unsigned i = 1; i <= known; i++) {
		put_i64(&x->out, code[i]);
		put_i64(&x->out, n[i]);
	}
	return CUDA_SUCCESS;
}

CUresult serve_cuOccupancyMaxPotentialClusterSize(struct exec *x)
{
	return serve_clusters(x, NOTE_CLUSTER_SIZE, drv.cuOccupancyMaxPotentialClusterSize);
}

CUresult serve_cuOccupancyMaxActiveClusters(struct exec *x)
{
	return serve_clusters(x, NOTE_CLUSTERS, drv.cuOccupancyMaxActiveClusters);
}
