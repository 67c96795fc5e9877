/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface references. Thread rule: see state.h. */
#pragma once
#include "server/soft/context.h"

struct module;
struct reference {
	struct object object;
	const struct module *module; /* NULL: made by cuTexRefCreate */
	struct reference *next;
	bool surface;
	uint64_t *cell; /* NULL: no kernel has it */
	uint64_t bound; /* the object, 0: none */
	CUarray_format format;
	int channels;
	CUDA_TEXTURE_DESC texture;
	CUDA_RESOURCE_DESC resource; /* resType says what, when there is something */
	bool has;
};

/* A module goes, and its references with it. */
void references_drop(const struct module *m);
/* Way into a function about a reference of that kind. */
struct guard reference_enter(const void *h, bool surface, struct reference **r);
/* Binds again after a change, which the next launch sees. */
CUresult reference_bind(struct reference *r);
