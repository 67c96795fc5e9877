/* SPDX-License-Identifier: Apache-2.0 */
/* Finds an image's kind from its first bytes and its length from its own headers, bounded by LIMIT_IMAGE.
 * Of a fatbin the cubins of other architectures, and the PTX that the driver would not choose, stay at
 * home: a library's fatbin shrinks to a tenth.
 *
 * The choice follows the driver's: a cubin of the same major and a minor not above the device's, else the
 * PTX of the highest SM not above it. What is not understood is kept. */
#include "devshim/image.h"

#include <stdlib.h>
#include <string.h>
#include "wire/limits.h"

#define ENTRY_HEADER 64

enum entry_kind { ENTRY_PTX = 1, ENTRY_ELF = 2 };
#define ENTRY_ARCH_SPECIFIC 0x100000u
#define ENTRY_FAMILY_SPECIFIC 0x200000u

struct entry {
	const uint8_t *p;
	size_t size; /* header and payload */
	unsigned kind, sm;
	uint64_t flags;
};

/* The entry at `p` with `left` bytes before the end of its fatbin. */
static bool entry_read(const uint8_t *p, size_t left, struct entry *e)
{
	if (left < ENTRY_HEADER)
		return false;
	uint32_t header = u32(p + 4);
	uint64_t payload = u64(p + 8);

	if (header < ENTRY_HEADER || header > left || payload > left - header)
		return false;
	*e = (struct entry){p, header + payload, u16(p), u32(p + 28), u64(p + 40)};
	return true;
}

static bool cubin_serves(const struct entry *e, int cc)
{
	int sm = (int)e->sm;

	if (e->flags & ENTRY_ARCH_SPECIFIC)
		return sm == cc;
	return sm / 10 == cc / 10 && sm <= cc;
}

/* The highest SM of a fatbin's PTX that is not above cc, 0 when there is none; *cubin: a cubin serves. */
static unsigned best_ptx(const uint8_t *p, size_t n, int cc, bool *cubin)
{
	unsigned best = 0;
	struct entry e;

	*cubin = false;
	for (; n && entry_read(p, n, &e); p += e.size, n -= e.size) {
		if (e.kind == ENTRY_ELF && cubin_serves(&e, cc))
			*cubin = true;
		if (e.kind == ENTRY_PTX && (int)e.sm <= cc && e.sm > best)
			best = e.sm;
	}
	return best;
}

struct choice {
	unsigned ptx[64];
	bool cubin[64];
	bool any;
};

static bool entry_kept(const struct entry *e, const struct image_target *t, const struct choice *c)
{
	if (!t->n || !c->any)
		return true;
	if (e->kind == ENTRY_ELF) {
		if (t->ptx_only || t->force_ptx)
			return false;
		for (unsigned i = 0; i < t->n; i++)
			if (cubin_serves(e, t->cc[i]))
				return true;
		return false;
	}
	if (e->kind == ENTRY_PTX) {
		if (t->ptx_only) /* it reads PTX for newer architectures, too */
			return true;
		for (unsigned i = 0; i < t->n; i++)
			if (c->ptx[i] == e->sm && (t->force_ptx || !c->cubin[i]))
				return true;
		return false;
	}
	return true;
}

static bool add_piece(struct image *i, const void *p, size_t n)
{
	struct image_piece *last = i->npieces ? &i->piece[i->npieces - 1] : NULL;

	if (i->total + n > LIMIT_IMAGE)
		return false;
	if (last && (const uint8_t *)last->p + last->n == p) {
		last->n += n;
	} else {
		if (i->npieces == IMAGE_PIECES)
			return false;
		if (!(i->npieces & (i->npieces - 1))) { /* room doubles at powers of two */
			size_t room = i->npieces ? i->npieces * 2 : 1;
			struct image_piece *q = realloc(i->piece, room * sizeof *q);

			if (!q)
				return false;
			i->piece = q;
		}
		i->piece[i->npieces++] = (struct image_piece){p, n};
	}
	i->total += n;
	return true;
}

static CUresult fatbin_read(
	struct image *i, unsigned part, const uint8_t *p, size_t max, const struct image_target *t)
{
	size_t size = image_fatbin_size(p, max), start = i->total, left;
	struct choice c = {.any = false};
	struct entry e;

	if (!size)
		return CUDA_ERROR_INVALID_IMAGE;
	for (unsigned d = 0; d < t->n; d++) {
		c.ptx[d] = best_ptx(p + IMAGE_FATBIN_HEADER, size - IMAGE_FATBIN_HEADER, t->cc[d],
			&c.cubin[d]);
		c.any |= c.ptx[d] || c.cubin[d];
	}
	memcpy(i->header[part], p, IMAGE_FATBIN_HEADER);
	if (!add_piece(i, i->header[part], IMAGE_FATBIN_HEADER))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (left = size - IMAGE_FATBIN_HEADER, p += IMAGE_FATBIN_HEADER; left && entry_read(p, left, &e);
		p += e.size, left -= e.size)
		if (entry_kept(&e, t, &c) && !add_piece(i, e.p, e.size))
			return CUDA_ERROR_OUT_OF_MEMORY;
	if (left && !add_piece(i, p, left)) /* not understood: let the driver judge */
		return CUDA_ERROR_OUT_OF_MEMORY;
	i->part_size[part] = i->total - start;
	uint64_t body = i->part_size[part] - IMAGE_FATBIN_HEADER;

	memcpy(i->header[part] + 8, &body, sizeof body);
	return CUDA_SUCCESS;
}

static bool make_parts(struct image *i, unsigned n)
{
	i->nparts = n;
	i->part_size = calloc(n, sizeof *i->part_size);
	i->header = calloc(n, sizeof *i->header);
	return i->part_size && i->header;
}

static CUresult wrapper_read(const struct image_wrapper *w, const struct image_target *t, struct image *i)
{
	const void *const *extra = w->version == 2 ? w->extra : NULL;
	unsigned n = 1;
	CUresult r;

	if ((w->version != 1 && w->version != 2) || !w->data)
		return CUDA_ERROR_INVALID_IMAGE;
	i->kind = w->version == 2 ? IMAGE_WRAPPER2 : IMAGE_WRAPPER1;
	if (extra)
		for (; extra[n - 1]; n++)
			if (n == IMAGE_PARTS)
				return CUDA_ERROR_INVALID_IMAGE;
	if (!make_parts(i, n))
		return CUDA_ERROR_OUT_OF_MEMORY;
	r = fatbin_read(i, 0, w->data, LIMIT_IMAGE, t);
	for (unsigned k = 1; !r && k < n; k++)
		r = fatbin_read(i, k, extra[k - 1], LIMIT_IMAGE, t);
	return r;
}

/* Bytes of text without the NUL, 0 when it does not look like text. Whether it is PTX the driver judges. */
static size_t text_size(const char *p, size_t max)
{
	size_t n = strnlen(p, max);

	for (size_t i = 0; i < n && i < 256; i++)
		if ((unsigned char)p[i] < 0x20 && !strchr("\t\n\v\f\r", p[i]))
			return 0;
	return n;
}

static CUresult whole(struct image *i, enum image_kind kind, const void *p, size_t n)
{
	i->kind = kind;
	if (!n)
		return CUDA_ERROR_INVALID_IMAGE;
	if (!make_parts(i, 1) || !add_piece(i, p, n))
		return CUDA_ERROR_OUT_OF_MEMORY;
	i->part_size[0] = n;
	return CUDA_SUCCESS;
}

static CUresult classify(
	const void *code, size_t max, bool sized, const struct image_target *t, struct image *i)
{
	const char *c = code;

	if (max >= 16 && u32(c) == IMAGE_WRAPPER_MAGIC)
		return wrapper_read(code, t, i);
	if (max >= 4 && u32(c) == IMAGE_FATBIN_MAGIC) {
		i->kind = IMAGE_FATBIN;
		return make_parts(i, 1) ? fatbin_read(i, 0, code, max, t) : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (max >= 4 && !memcmp(c,
				"\x7f"
				"ELF",
				4))
		return whole(i, IMAGE_ELF, code, image_elf_size(code, max));
	if (max >= 8 && !memcmp(c, "!<arch>\n", 8))
		return whole(i, IMAGE_ARCHIVE, code, sized ? max : 0);
	return whole(i, IMAGE_PTX, code, text_size(code, max));
}

CUresult image_read(const void *code, const struct image_target *t, struct image *out)
{
	*out = (struct image){0};
	/* Text may be short and end at a page's end: look at no byte behind its NUL. */
	const char *c = code;
	size_t max = c[0] && c[1] && c[2] && c[3] ? LIMIT_IMAGE : strlen(c);
	CUresult r = classify(code, max, false, t, out);

	if (r)
		image_finish(out);
	return r;
}

CUresult image_read_sized(const void *code, size_t n, const struct image_target *t, struct image *out)
{
	*out = (struct image){0};
	CUresult r = n > LIMIT_IMAGE ? CUDA_ERROR_INVALID_IMAGE : classify(code, n, true, t, out);

	if (r)
		image_finish(out);
	return r;
}

void image_finish(struct image *i)
{
	free(i->part_size);
	free(i->piece);
	free(i->header);
	*i = (struct image){0};
}

void image_pack(const struct image *i, void *out)
{
	uint8_t *p = out;

	for (size_t k = 0; k < i->npieces; k++) {
		memcpy(p, i->piece[k].p, i->piece[k].n);
		p += i->piece[k].n;
	}
}
