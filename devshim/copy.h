/* SPDX-License-Identifier: Apache-2.0 */
/* A copy, whatever call it came from: a box of rows between two sides, a linear one being a box of one
 * row. copy.c decides how it travels.
 *
 * Thread rule: a struct copy belongs to its call; the rest is called from any thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/cuda_types.h"

struct copy_side {
	CUmemorytype type; /* HOST: memory of this program; DEVICE, ARRAY: the server's */
	uint64_t address; /* of either */
	CUarray array;
	size_t x, y, z, lod, pitch, height;
	bool pinned; /* HOST */
	bool mirrored; /* DEVICE: the program has the memory, too */
	bool known; /* DEVICE: the range table shows that all of it is there */
};

struct copy {
	struct copy_side src, dst;
	size_t w, h, d; /* bytes, rows, slices; none is 0 */
	bool linear;
};

/* Runs it. async: on `stream`, else on the default stream and to its end. Returns what the call returns. */
CUresult copy_run(const struct copy *k, bool async, CUstream stream);
/* A linear copy. `host` tells how an address that is in no table is meant. */
CUresult copy_linear(
	uint64_t dst, bool dst_host, uint64_t src, bool src_host, size_t n, bool async, CUstream stream);
/* The same, its sides resolved and not run; of no bytes it is refused. */
CUresult copy_of_linear(struct copy *k, uint64_t dst, bool dst_host, uint64_t src, bool src_host, size_t n);
/* The box of a description, its sides resolved; one without bytes is refused. */
CUresult copy_of_3d(const CUDA_MEMCPY3D *c, struct copy *k);
/* Puts both sides and the extent. */
struct call;
CUresult copy_put(struct call *c, const struct copy *k);
/* Notes a copy with a side in the program as something that a graph may run, any number of times: an
 * upcall's id, 0 without memory. */
struct context;
uint64_t copy_note(const struct copy *k, struct context *context);
/* The copy of an upcall's function and argument, when it is one, as a description. */
bool copy_of_upcall(void (*run)(void *), const void *arg, CUDA_MEMCPY3D *out);
static inline bool copy_is_host(const struct copy *k)
{
	return k->src.type == CU_MEMORYTYPE_HOST || k->dst.type == CU_MEMORYTYPE_HOST;
}
/* Before a call for which the server's driver waits for the device: lets copies that run at their stream's
 * turn end, since they need the driver, too. */
void copy_drain(void);
/* True when the stream has copies whose bytes have not come, so that nothing may be said of it without
 * asking the server. */
struct work;
bool copy_untold(const struct work *w);
