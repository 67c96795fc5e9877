/* SPDX-License-Identifier: Apache-2.0 */
/* What the hand-written serve functions share with each other. Thread rule: as exec.h. */
#pragma once
#include <stdbool.h>
#include "server/exec.h"
#include "wire/cuda_types.h"
#include "wire/notes.h"

#define LIMIT_JIT_OPTIONS 64
#define LIMIT_JIT_LOG (20u << 10) /* bytes of one compiler log: two fit in a head */

/* Compiler options of a record. Logs live as long as it. */
struct jit {
	unsigned n;
	CUjit_option option[LIMIT_JIT_OPTIONS];
	void *value[LIMIT_JIT_OPTIONS];
	char *log[2]; /* information, errors */
	uint64_t room[2]; /* of each, as given */
};
/* False when malformed. */
bool get_jit(struct exec *x, struct jit *j);
/* What the compiler wrote: both logs, both sizes used (nil: it left them alone), the time. */
void put_jit(struct exec *x, const struct jit *j);
/* No compiler was asked: it has written nothing. */
void jit_empty(struct jit *j);

/* Of a function or kernel (`type`): device, layout, attributes, which make a driver load it. Device -1:
 * no attributes. */
void put_facts(struct exec *x, unsigned type, void *f, int device);
/* An attribute, on the device where it is a kernel's. */
CUresult attribute_of(unsigned type, void *f, int device, int a, int *v);
/* Of the current context, -1: there is none. */
int current_device(void);

/* Notes what the driver answered to a question about a function, the first handle of the record, with the
 * function's image. */
void note_answer(struct exec *x, enum note kind, void *f, const struct occupancy_question *q, CUresult code,
	uint64_t answer);

/* A launch's shape, stream and attributes, which live until the record is answered. False when malformed. */
bool get_launch_config(struct exec *x, CUlaunchConfig *c, bool attributes);

/* The nodes that another depends on, as in a record: an array of handles. False when malformed. */
bool get_nodes(struct exec *x, CUgraphNode **nodes, size_t *n);
/* A handle of what ends with another object: the graph of a conditional node with the graph that it is in,
 * the context of a green context with that. */
void put_child(struct exec *x, unsigned type, void *real, uint64_t parent);
/* The arguments of a kernel node, encoded like a launch; they live until the record is answered. False
 * when malformed. */
bool get_kernel_node(struct exec *x, CUDA_KERNEL_NODE_PARAMS *p);
/* Both sides and the extent of a box that lies on the device, as the driver's description. False when
 * malformed. */
bool get_device_box(struct exec *x, CUDA_MEMCPY3D *c);
/* A file in memory for the driver to write, and its path; a descriptor, or negative. */
int file_make(char *path, size_t cap);
/* Puts [size of the whole] and as bulk what is in the file from `offset` on, closes it, returns r or what
 * went wrong. */
CUresult file_put(struct exec *x, int fd, uint64_t offset, CUresult r);
/* The driver's host function for an upcall. */
void host_upcall(void *id);
/* The default stream that a call without one means. */
static inline CUstream default_stream(const struct exec *x)
{
	return x->frame.flags & FRAME_PTDS ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
}
