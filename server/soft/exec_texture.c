/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface instructions: fetches and gathers (exec_sample.c does them), queries, untyped surface
 * access.
 *
 * Thread rule: a handler touches the warp that it is given, reads texture objects, and device memory as the
 * kernel says. */
#include "server/soft/exec_texture.h"
#include <string.h>
#include "server/soft/exec.h"
#include "server/soft/lane_half.h"
#include "server/soft/memory.h"
#include "server/soft/texture.h"

enum { ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719 };

const struct op *x_texture(struct warp *w, const struct op *o);

/* Where a surface access goes. 0, or the fault; *p NULL: outside, and that is allowed. */
static int surface_place(
	const struct warp *w, const struct texture *t, const struct texture_op *x, uint32_t l, uint8_t **p)
{
	const struct texture_level *v = &t->level[0];
	int64_t size[3] = {(int64_t)(v->width * t->element), (int64_t)v->height, (int64_t)v->depth},
		i[3] = {0, 0, 0};
	int64_t width = x->n * x->bytes;
	for (unsigned k = 0; k < x->dimensions; k++)
		i[k] = REG(w, int32_t, x->at[k])[l];
	if (x->layered)
		i[2] = REG(w, uint32_t, x->layer)[l];
	*p = NULL;
	if (width > size[0] || i[0] & (x->bytes - 1))
		return ILLEGAL_ADDRESS;
	for (unsigned k = 0; k < 3; k++) {
		int64_t last = size[k] - (k ? 1 : width);
		if (i[k] >= 0 && i[k] <= last)
			continue;
		if (x->outside == OUT_TRAP)
			return LAUNCH_FAILED;
		if (x->outside == OUT_ZERO)
			return 0;
		i[k] = i[k] < 0 ? 0 : last / (k ? 1 : width) * (k ? 1 : width);
	}
	*p = (uint8_t *)(uintptr_t)(v->base + (uint64_t)i[2] * v->slice + (uint64_t)i[1] * v->pitch +
				    (uint64_t)i[0]);
	return 0;
}

static int surface(struct warp *w, const struct texture *t, const struct texture_op *x, uint32_t l)
{
	uint8_t *p;
	int fault = surface_place(w, t, x, l, &p);
	if (fault)
		return fault;
	for (unsigned k = 0; k < x->n; k++) {
		uint64_t v = 0;
		if (x->value[k] == UINT32_MAX)
			continue;
		if (x->what == SURF_LOAD) {
			if (p)
				memcpy(&v, p + k * x->bytes, x->bytes);
			if (x->bytes == 8)
				REG(w, uint64_t, x->value[k])[l] = v;
			else
				REG(w, uint32_t, x->value[k])[l] = (uint32_t)v;
		} else if (p) {
			v = x->bytes == 8 ? REG(w, uint64_t, x->value[k])[l]
					  : REG(w, uint32_t, x->value[k])[l];
			memcpy(p + k * x->bytes, &v, x->bytes);
		}
	}
	return 0;
}

static uint32_t query(const struct texture *t, unsigned what, uint32_t level)
{
	const struct texture_level *v = &t->level[level < t->levels ? level : t->levels - 1];
	switch (what) {
	case QUERY_WIDTH: return (uint32_t)v->width;
	case QUERY_HEIGHT: return (uint32_t)v->height;
	case QUERY_LEVELS: return t->levels;
	default: return (uint32_t)v->depth;
	}
}

/* Results as halves, one or two in a register. */
static void narrow(struct warp *w, const struct texture_op *x, const union texel *v, uint32_t l)
{
	for (unsigned k = 0; k < x->n; k++) {
		uint32_t h =
			x->half == HALF_EACH ? f2h(v->f[k]) : f2h(v->f[2 * k]) | f2h(v->f[2 * k + 1]) << 16;
		if (x->value[k] != UINT32_MAX)
			REG(w, uint32_t, x->value[k])[l] = h;
	}
}

const struct op *x_texture(struct warp *w, const struct op *o)
{
	const struct texture_op *x = o->p;
	FOR_LANES(w, l)
	{
		const struct texture *t = texture_at(x->cell ? *x->cell : REG(w, uint64_t, x->handle)[l]);
		bool wants_surface = x->what == SURF_LOAD || x->what == SURF_STORE;
		if (!t || (x->what != TEX_QUERY && t->surface != wants_surface))
			return warp_fault(w, o, ILLEGAL_ADDRESS);
		if (wants_surface) {
			int fault = surface(w, t, x, l);
			if (fault)
				return warp_fault(w, o, fault);
			continue;
		}
		union texel v = {.u = {0}};
		if (x->what == TEX_QUERY)
			v.u[0] = query(
				t, x->component, x->level == UINT32_MAX ? 0 : REG(w, uint32_t, x->level)[l]);
		else
			v = x->what == TEX_FETCH ? texture_fetch(w, t, x, l) : texture_gather(w, t, x, l);
		if (x->half) {
			narrow(w, x, &v, l);
			continue;
		}
		for (unsigned k = 0; k < x->n; k++)
			if (x->value[k] != UINT32_MAX)
				REG(w, uint32_t, x->value[k])[l] = v.u[k];
	}
	return o + 1;
}
