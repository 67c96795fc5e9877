/* SPDX-License-Identifier: Apache-2.0 */
/* Textures and surfaces: fetches with every address mode, point and linear filtering, gathers, queries, and
 * untyped surface access. Filtering is the hardware's: weights have 8 bits of fraction.
 *
 * Thread rule: a handler touches the warp that it is given, reads texture objects, and device memory as the
 * kernel says. */
#include "server/soft/exec_texture.h"
#include <math.h>
#include <string.h>
#include "server/soft/exec.h"
#include "server/soft/lane_math.h"
#include "server/soft/memory.h"
#include "server/soft/texture.h"

enum { ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719 };

const struct op *x_texture(struct warp *w, const struct op *o);

union texel {
	float f[4];
	uint32_t u[4];
};

static float half_float(uint16_t h)
{
	uint32_t sign = (uint32_t)(h & 0x8000) << 16, e = h >> 10 & 31, m = h & 1023;
	float f;
	if (e == 0)
		f = ldexpf((float)m, -24);
	else if (e == 31)
		f = m ? NAN : INFINITY;
	else
		f = ldexpf((float)(m | 1024), (int)e - 25);
	return sign ? -f : f;
}

/* One channel; as a float where the destination or the format is one. */
static void channel(const struct texture *t, const uint8_t *p, bool reads_float, union texel *out, unsigned c)
{
	bool scaled = reads_float && !t->integers;
	switch (t->format) {
	case TEXTURE_U8: {
		uint8_t v = p[c];
		if (scaled)
			out->f[c] = (float)v / 255.0f;
		else
			out->u[c] = v;
		break;
	}
	case TEXTURE_S8: {
		int8_t v = (int8_t)p[c];
		if (scaled)
			out->f[c] = fmaxf((float)v / 127.0f, -1);
		else
			out->u[c] = (uint32_t)(int32_t)v;
		break;
	}
	case TEXTURE_U16: {
		uint16_t v;
		memcpy(&v, p + 2 * c, 2);
		if (scaled)
			out->f[c] = (float)v / 65535.0f;
		else
			out->u[c] = v;
		break;
	}
	case TEXTURE_S16: {
		int16_t v;
		memcpy(&v, p + 2 * c, 2);
		if (scaled)
			out->f[c] = fmaxf((float)v / 32767.0f, -1);
		else
			out->u[c] = (uint32_t)(int32_t)v;
		break;
	}
	case TEXTURE_HALF: {
		uint16_t v;
		memcpy(&v, p + 2 * c, 2);
		out->f[c] = half_float(v);
		break;
	}
	default: memcpy(&out->u[c], p + 4 * c, 4); break;
	}
}

/* The texel's index after the address mode; -1: the border. */
static int64_t bring_in(int64_t i, int64_t n, enum texture_mode mode)
{
	if (i >= 0 && i < n)
		return i;
	switch (mode) {
	case TEXTURE_WRAP: return ((i % n) + n) % n;
	case TEXTURE_MIRROR: i = ((i % (2 * n)) + 2 * n) % (2 * n); return i < n ? i : 2 * n - 1 - i;
	case TEXTURE_BORDER: return -1;
	default: return i < 0 ? 0 : n - 1;
	}
}

static union texel texel(
	const struct texture *t, const struct texture_op *x, const int64_t *at, int64_t layer)
{
	union texel v = {.u = {0}};
	int64_t size[3] = {(int64_t)t->width, (int64_t)t->height, (int64_t)t->depth}, i[3] = {0, 0, 0};
	for (unsigned k = 0; k < x->dimensions; k++) {
		enum texture_mode mode = t->mode[k];
		if (t->buffer)
			mode = TEXTURE_BORDER; /* past the end of linear memory there are zeros */
		else if (!t->normalized && (mode == TEXTURE_WRAP || mode == TEXTURE_MIRROR))
			mode = TEXTURE_CLAMP;
		i[k] = bring_in(at[k], size[k], mode);
		if (i[k] < 0) {
			if (!t->buffer)
				memcpy(v.f, t->border, sizeof v.f);
			return v;
		}
	}
	if (x->layered)
		i[2] = layer < 0 ? 0 : layer >= size[2] ? size[2] - 1 : layer;
	const uint8_t *p =
		(const uint8_t *)(uintptr_t)(t->base + (uint64_t)i[2] * t->slice + (uint64_t)i[1] * t->pitch +
					     (uint64_t)i[0] * t->element);
	for (unsigned c = 0; c < t->channels; c++)
		channel(t, p, x->reads_float, &v, c);
	return v;
}

/* A coordinate in texels. */
static double position(const struct texture *t, float u, unsigned k)
{
	size_t n = k == 0 ? t->width : k == 1 ? t->height : t->depth;
	double p = t->normalized ? (double)u * (double)n : (double)u;
	if (!(p > -1e9)) /* not a number, too */
		p = -1e9;
	return p < 1e9 ? p : 1e9;
}

static union texel filtered(
	const struct texture *t, const struct texture_op *x, const float *u, int64_t layer)
{
	int64_t low[3];
	float part[3];
	union texel sum = {.f = {0}};
	for (unsigned k = 0; k < x->dimensions; k++) {
		double p = position(t, u[k], k) - 0.5;
		low[k] = (int64_t)floor(p);
		part[k] = (float)(floor((p - floor(p)) * 256 + 0.5) / 256);
	}
	for (unsigned corner = 0; corner < 1u << x->dimensions; corner++) {
		int64_t at[3];
		float weight = 1;
		for (unsigned k = 0; k < x->dimensions; k++) {
			bool up = corner >> k & 1;
			at[k] = low[k] + up;
			weight *= up ? part[k] : 1 - part[k];
		}
		if (weight == 0)
			continue;
		union texel v = texel(t, x, at, layer);
		for (unsigned c = 0; c < 4; c++)
			sum.f[c] += weight * v.f[c];
	}
	return sum;
}

static union texel fetch(
	const struct warp *w, const struct texture *t, const struct texture_op *x, uint32_t l)
{
	int64_t at[3], layer = x->layered ? (int64_t)REG(w, uint32_t, x->layer)[l] : 0;
	float u[3];
	for (unsigned k = 0; k < x->dimensions; k++) {
		if (x->whole) {
			at[k] = REG(w, int32_t, x->at[k])[l];
		} else {
			u[k] = REG(w, float, x->at[k])[l];
			at[k] = (int64_t)floor(position(t, u[k], k));
		}
	}
	bool floats = x->reads_float && (!t->integers || t->format >= TEXTURE_HALF);
	return t->filter && !x->whole && floats && !t->buffer ? filtered(t, x, u, layer)
							      : texel(t, x, at, layer);
}

/* One component of the four texels that a filter would use, from the lower left one counterclockwise. */
static union texel gather(
	const struct warp *w, const struct texture *t, const struct texture_op *x, uint32_t l)
{
	static const uint8_t dx[4] = {0, 1, 1, 0}, dy[4] = {1, 1, 0, 0};
	int64_t low[2], layer = x->layered ? (int64_t)REG(w, uint32_t, x->layer)[l] : 0;
	union texel out;
	for (unsigned k = 0; k < 2; k++)
		low[k] = (int64_t)floor(position(t, REG(w, float, x->at[k])[l], k) - 0.5);
	for (unsigned i = 0; i < 4; i++) {
		int64_t at[3] = {low[0] + dx[i], low[1] + dy[i], 0};
		out.u[i] = texel(t, x, at, layer).u[x->component];
	}
	return out;
}

/* Where a surface access goes. 0, or the fault; *p NULL: outside, and that is allowed. */
static int surface_place(
	const struct warp *w, const struct texture *t, const struct texture_op *x, uint32_t l, uint8_t **p)
{
	int64_t size[3] = {(int64_t)(t->width * t->element), (int64_t)t->height, (int64_t)t->depth},
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
	*p = (uint8_t *)(uintptr_t)(t->base + (uint64_t)i[2] * t->slice + (uint64_t)i[1] * t->pitch +
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

static uint32_t query(const struct texture *t, unsigned what)
{
	return (uint32_t)(what == QUERY_WIDTH ? t->width : what == QUERY_HEIGHT ? t->height : t->depth);
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
			v.u[0] = query(t, x->component);
		else
			v = x->what == TEX_FETCH ? fetch(w, t, x, l) : gather(w, t, x, l);
		for (unsigned k = 0; k < x->n; k++)
			if (x->value[k] != UINT32_MAX)
				REG(w, uint32_t, x->value[k])[l] = v.u[k];
	}
	return o + 1;
}
