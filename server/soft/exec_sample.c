/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling: texels with every address mode, point and linear filtering, cubes, levels of mipmaps, gathers.
 * Filtering is the hardware's: weights have 8 bits of fraction.
 *
 * Thread rule: reads the warp that it is given, texture objects, and device memory as the kernel says. */
#include <math.h>
#include <string.h>
#include "server/soft/exec.h"
#include "server/soft/exec_texture.h"
#include "server/soft/texture.h"

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

/* What a number of 8 bits on the curve of sRGB stands for. */
static float linear(uint8_t v)
{
	double x = v / 255.0;
	return (float)(x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4));
}

/* One channel; as a float where the destination or the format is one. */
static void channel(const struct texture *t, const uint8_t *p, bool reads_float, union texel *out, unsigned c)
{
	bool scaled = reads_float && !t->integers;
	switch (t->format) {
	case TEXTURE_U8: {
		uint8_t v = p[c];
		if (scaled)
			out->f[c] = t->srgb && c < 3 ? linear(v) : (float)v / 255.0f;
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

/* A place: at which level, at which layer, and which way the filter's neighbours are found. */
struct place {
	const struct texture *t;
	const struct texture_level *v;
	const struct texture_op *x;
	int64_t layer; /* of a cube: the first of its six faces */
	int face;
	float u[3]; /* as given; of a cube: on its face */
};

/* The face that a direction meets, and where: from 0 to 1 twice. */
static int face_of(const double d[3], float *s, float *t)
{
	double a[3] = {fabs(d[0]), fabs(d[1]), fabs(d[2])};
	int axis = a[2] >= a[0] && a[2] >= a[1] ? 2 : a[1] >= a[0] ? 1 : 0;
	bool minus = signbit(d[axis]);
	double m = a[axis] > 0 ? a[axis] : 1,
	       p = axis == 0   ? (minus ? d[2] : -d[2])
		   : axis == 1 ? d[0]
		   : minus     ? -d[0]
			       : d[0],
	       q = axis == 1 ? (minus ? -d[2] : d[2]) : -d[1];
	*s = (float)((p / m + 1) / 2);
	*t = (float)((q / m + 1) / 2);
	return 2 * axis + minus;
}

/* The direction to (s, t) of a face; both from -1 to 1, or a little beyond. */
static void direction(int face, double s, double t, double d[3])
{
	double m = face & 1 ? -1 : 1;
	switch (face / 2) {
	case 0: d[0] = m, d[1] = -t, d[2] = -m * s; break;
	case 1: d[0] = s, d[1] = m, d[2] = m * t; break;
	default: d[0] = m * s, d[1] = -t, d[2] = m; break;
	}
}

/* A texel beside a face is one of the next face. */
static void turn_around(const struct place *p, int64_t *at, int64_t *face)
{
	int64_t n = (int64_t)p->v->width;
	double d[3];
	float s, t;
	direction(
		p->face, (2 * (double)at[0] + 1) / (double)n - 1, (2 * (double)at[1] + 1) / (double)n - 1, d);
	*face = face_of(d, &s, &t);
	at[0] = (int64_t)floor((double)s * (double)n);
	at[1] = (int64_t)floor((double)t * (double)n);
}

static union texel texel(const struct place *p, const int64_t *where)
{
	const struct texture *t = p->t;
	const struct texture_level *v = p->v;
	union texel out = {.u = {0}};
	unsigned dimensions = p->x->cube ? 2 : p->x->dimensions;
	int64_t size[3] = {(int64_t)v->width, (int64_t)v->height, (int64_t)v->depth}, i[3] = {0, 0, 0}, at[3],
		face = p->face;
	memcpy(at, where, sizeof at);
	if (p->x->cube && t->seamless && (at[0] < 0 || at[0] >= size[0] || at[1] < 0 || at[1] >= size[1]))
		turn_around(p, at, &face);
	for (unsigned k = 0; k < dimensions; k++) {
		enum texture_mode mode = p->x->cube ? TEXTURE_CLAMP : t->mode[k];
		if (t->buffer)
			mode = TEXTURE_BORDER; /* past the end of linear memory there are zeros */
		else if (!t->normalized && (mode == TEXTURE_WRAP || mode == TEXTURE_MIRROR))
			mode = TEXTURE_CLAMP;
		i[k] = bring_in(at[k], size[k], mode);
		if (i[k] < 0) {
			if (!t->buffer)
				memcpy(out.f, t->border, sizeof out.f);
			return out;
		}
	}
	int64_t layer = p->layer + (p->x->cube ? face : 0);
	if (p->x->layered || p->x->cube)
		i[2] = layer < 0 ? 0 : layer >= size[2] ? size[2] - 1 : layer;
	const uint8_t *data =
		(const uint8_t *)(uintptr_t)(v->base + (uint64_t)i[2] * v->slice + (uint64_t)i[1] * v->pitch +
					     (uint64_t)i[0] * t->element);
	for (unsigned c = 0; c < t->channels; c++)
		channel(t, data, p->x->reads_float, &out, c);
	return out;
}

/* A coordinate in texels. */
static double position(const struct place *p, unsigned k)
{
	size_t n = k == 0 ? p->v->width : k == 1 ? p->v->height : p->v->depth;
	double at = p->t->normalized || p->x->cube ? (double)p->u[k] * (double)n : (double)p->u[k];
	if (!(at > -1e9)) /* not a number, too */
		at = -1e9;
	return at < 1e9 ? at : 1e9;
}

static union texel filtered(const struct place *p, const int32_t *offset)
{
	int64_t low[3] = {0, 0, 0};
	float part[3];
	union texel sum = {.f = {0}};
	unsigned dimensions = p->x->cube ? 2 : p->x->dimensions;
	for (unsigned k = 0; k < dimensions; k++) {
		double at = position(p, k) - 0.5;
		low[k] = (int64_t)floor(at) + offset[k];
		part[k] = (float)(floor((at - floor(at)) * 256 + 0.5) / 256);
	}
	for (unsigned corner = 0; corner < 1u << dimensions; corner++) {
		int64_t at[3] = {0, 0, 0};
		float weight = 1;
		for (unsigned k = 0; k < dimensions; k++) {
			bool up = corner >> k & 1;
			at[k] = low[k] + up;
			weight *= up ? part[k] : 1 - part[k];
		}
		if (weight == 0)
			continue;
		union texel v = texel(p, at);
		for (unsigned c = 0; c < 4; c++)
			sum.f[c] += weight * v.f[c];
	}
	return sum;
}

static bool reads_float(const struct place *p)
{
	return p->x->reads_float && (!p->t->integers || p->t->format >= TEXTURE_HALF);
}

static union texel at_level(struct place *p, unsigned level, const int32_t *offset)
{
	p->v = &p->t->level[level];
	if (p->t->filter && reads_float(p) && !p->t->buffer)
		return filtered(p, offset);
	int64_t at[3] = {0, 0, 0};
	for (unsigned k = 0; k < (p->x->cube ? 2u : p->x->dimensions); k++)
		at[k] = (int64_t)floor(position(p, k)) + offset[k];
	return texel(p, at);
}

/* From how the coordinates change to the level whose texels are that far apart. */
static double level_of(const struct warp *w, const struct texture *t, const struct texture_op *x, uint32_t l)
{
	double most = 0;
	const struct texture_level *v = &t->level[0];
	for (unsigned side = 0; side < 2; side++) {
		double sum = 0;
		for (unsigned k = 0; k < x->dimensions; k++) {
			double size = x->cube ? (double)v->width / 2
					      : (double)(k == 0   ? v->width
							 : k == 1 ? v->height
								  : v->depth);
			double g = (double)REG(w, float, x->gradient[side][k])[l] *
				   (t->normalized || x->cube ? size : 1);
			sum += g * g;
		}
		most = sum > most ? sum : most;
	}
	return most > 0 ? log2(most) / 2 : -128;
}

static double lod(const struct warp *w, const struct texture *t, const struct texture_op *x, uint32_t l)
{
	if (x->lod == LOD_BASE || t->levels == 1)
		return 0;
	double at = x->lod == LOD_NONE        ? 0
		    : x->lod == LOD_GRADIENTS ? level_of(w, t, x, l)
		    : x->whole                ? (double)REG(w, int32_t, x->level)[l]
					      : (double)REG(w, float, x->level)[l];
	if (x->whole) /* of texels: no filter, no limits */
		return at > 0 ? at : 0;
	at += (double)t->bias;
	at = at > (double)t->least ? at : (double)t->least; /* a NaN, too */
	at = at < (double)t->most ? at : (double)t->most;
	return at > 0 ? at : 0;
}

static void open_place(struct place *p, const struct warp *w, uint32_t l)
{
	const struct texture_op *x = p->x;
	p->layer = x->layered ? (int64_t)REG(w, uint32_t, x->layer)[l] * (x->cube ? 6 : 1) : 0;
	if (x->cube && x->layered) { /* the last cube is as far as it goes */
		int64_t last = (int64_t)p->t->level[0].depth - 6;
		p->layer = p->layer > last ? last : p->layer;
	}
	for (unsigned k = 0; k < x->dimensions && !x->whole; k++)
		p->u[k] = REG(w, float, x->at[k])[l];
	if (!x->cube)
		return;
	double d[3] = {(double)p->u[0], (double)p->u[1], (double)p->u[2]};
	p->face = face_of(d, &p->u[0], &p->u[1]);
}

static void offsets(const struct warp *w, const struct texture_op *x, uint32_t l, int32_t *offset)
{
	for (unsigned k = 0; k < 3; k++)
		offset[k] = x->shifted && k < x->dimensions ? REG(w, int32_t, x->offset[k])[l] : 0;
}

union texel texture_fetch(
	const struct warp *w, const struct texture *t, const struct texture_op *x, uint32_t l)
{
	struct place p = {.t = t, .x = x};
	int32_t offset[3];
	offsets(w, x, l, offset);
	open_place(&p, w, l);
	double level = lod(w, t, x, l);
	unsigned last = t->levels - 1;
	if (x->whole) {
		int64_t at[3] = {0, 0, 0};
		for (unsigned k = 0; k < x->dimensions; k++)
			at[k] = (int64_t)REG(w, int32_t, x->at[k])[l] + offset[k];
		p.v = &t->level[level < last ? (unsigned)level : last];
		return texel(&p, at);
	}
	level = level < last ? level : last;
	if (!t->blend || !reads_float(&p))
		return at_level(&p, (unsigned)floor(level + 0.5), offset);
	double part = floor((level - floor(level)) * 256 + 0.5) / 256;
	union texel low = at_level(&p, (unsigned)level, offset);
	if (part == 0)
		return low;
	union texel high = at_level(&p, (unsigned)level + 1, offset);
	for (unsigned c = 0; c < 4; c++)
		low.f[c] = (float)(1 - part) * low.f[c] + (float)part * high.f[c];
	return low;
}

/* One component of the four texels that a filter would use, from the lower left one counterclockwise. */
union texel texture_gather(
	const struct warp *w, const struct texture *t, const struct texture_op *x, uint32_t l)
{
	static const uint8_t dx[4] = {0, 1, 1, 0}, dy[4] = {1, 1, 0, 0};
	struct place p = {.t = t, .x = x, .v = &t->level[0]};
	int32_t offset[3];
	int64_t low[2];
	union texel out;
	offsets(w, x, l, offset);
	open_place(&p, w, l);
	for (unsigned k = 0; k < 2; k++)
		low[k] = (int64_t)floor(position(&p, k) - 0.5) + offset[k];
	for (unsigned i = 0; i < 4; i++) {
		int64_t at[3] = {low[0] + dx[i], low[1] + dy[i], 0};
		out.u[i] = texel(&p, at).u[x->component];
	}
	return out;
}
