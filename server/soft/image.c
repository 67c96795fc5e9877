/* SPDX-License-Identifier: Apache-2.0 */
/* Taking images apart: wrapper, fat binary, compressed entries. No length is ever passed with most images, so
 * every read is bounded by what the headers themselves say, and that by named limits.
 *
 * Thread rule: no shared state. */
#include "server/soft/image.h"
#include <lz4.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "wire/image.h"
#include "wire/log.h"

#define FATBIN_BYTES (1ull << 31)
#define UNPACKED_BYTES (256u << 20) /* of one entry */
#define ENTRY_LEAST 64u
#define ELF_HEADER 64u
#define ENTRY_PTX 1
#define ENTRY_ELF 2
#define FLAG_LZ4 0x2000u
#define FLAG_ZSTD 0x8000u
#define FLAG_LINKED (1ull << 62) /* ours (image_pack): the payload is several texts, a NUL after each */

struct fatbin {
	uint32_t magic;
	uint16_t version, header;
	uint64_t bytes;
};
struct entry {
	uint16_t kind, unknown;
	uint32_t header;
	uint64_t bytes;
	uint32_t packed, options;
	uint16_t minor, major;
	uint32_t sm;
	uint32_t name, name_bytes;
	uint64_t flags, zero, unpacked;
};
_Static_assert(sizeof(struct entry) == ENTRY_LEAST, "the entry header as it lies in the file");

/* ---- texts */

/* What one more text of n bytes would pass. */
static CUresult room_for(const struct image *im, size_t n, struct jit *j)
{
	if (im->count == IMAGE_TEXTS) {
		jit_error(j, "more than %d PTX texts in one image", IMAGE_TEXTS);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	if (n > IMAGE_BYTES - im->bytes) {
		jit_error(j, "more than %u MiB of PTX in one image", IMAGE_BYTES >> 20);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	return CUDA_SUCCESS;
}

/* Takes the text, in any case. */
static CUresult text_add(struct image *im, char *text, size_t n, struct jit *j)
{
	while (n && !text[n - 1])
		n--;
	CUresult r = room_for(im, n, j);
	if (r) {
		free(text);
		return r;
	}
	im->bytes += n;
	im->text[im->count] = text;
	im->size[im->count++] = n;
	return CUDA_SUCCESS;
}

static CUresult text_copy(struct image *im, const char *p, size_t n, struct jit *j)
{
	CUresult r = room_for(im, n, j);
	if (r)
		return r;
	char *text = malloc(n + 1);
	if (!text)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(text, p, n);
	text[n] = 0;
	return text_add(im, text, n, j);
}

/* An entry of a fat binary whose lengths were checked; the header is a copy, for images may lie anywhere. */
struct part {
	struct entry e;
	const char *payload;
};

/* The payload of a compressed entry in fresh memory, a NUL after it. */
static CUresult unpack(const struct part *p, char **out, struct jit *j)
{
	const struct entry *e = &p->e;
	if (e->packed > e->bytes || !e->unpacked || e->unpacked > UNPACKED_BYTES) {
		jit_error(j, "a compressed entry of the fat binary has impossible sizes");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	char *text = malloc(e->unpacked + 1);
	if (!text)
		return CUDA_ERROR_OUT_OF_MEMORY;
	size_t n;
	if (e->flags & FLAG_ZSTD) {
		n = ZSTD_decompress(text, e->unpacked, p->payload, e->packed);
		if (ZSTD_isError(n))
			n = 0;
	} else {
		int r = LZ4_decompress_safe(p->payload, text, (int)e->packed, (int)e->unpacked);
		n = r < 0 ? 0 : (size_t)r;
	}
	if (n != e->unpacked) {
		free(text);
		jit_error(j, "a compressed entry of the fat binary is damaged");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	text[n] = 0;
	*out = text;
	return CUDA_SUCCESS;
}

/* Adds the text of one PTX entry. */
static CUresult entry_text(struct image *im, const struct part *p, struct jit *j)
{
	const struct entry *e = &p->e;
	if (e->flags & FLAG_LINKED) {
		CUresult r = CUDA_SUCCESS;
		for (size_t at = 0; at < e->bytes && p->payload[at] && !r; at++) {
			size_t n = strnlen(p->payload + at, e->bytes - at);
			r = text_copy(im, p->payload + at, n, j);
			at += n;
		}
		return r;
	}
	if (!(e->flags & (FLAG_LZ4 | FLAG_ZSTD)))
		return text_copy(im, p->payload, strnlen(p->payload, e->bytes), j);
	char *text;
	CUresult r = room_for(im, e->unpacked, j);
	r = r ? r : unpack(p, &text, j);
	return r ? r : text_add(im, text, e->unpacked, j);
}

/* ---- fat binaries */

struct found {
	char text[512];
	size_t n;
}; /* what was there instead of PTX, for the message */

static void found_add(struct found *f, const char *fmt, unsigned sm)
{
	int n = snprintf(f->text + f->n, sizeof f->text - f->n, "%s", f->n ? ", " : "");
	if (n > 0)
		f->n += (size_t)n < sizeof f->text - f->n ? (size_t)n : 0;
	n = snprintf(f->text + f->n, sizeof f->text - f->n, fmt, sm);
	if (n > 0 && (size_t)n < sizeof f->text - f->n)
		f->n += (size_t)n;
}

/* Steps through the entries: *at is where the next begins, *end where the last ends. False at the end, and
 * with *error set when one is damaged. */
static bool next_part(const char **at, const char *end, struct part *p, CUresult *error, struct jit *j)
{
	size_t left = (size_t)(end - *at);
	if (left < ENTRY_LEAST)
		return false;
	memcpy(&p->e, *at, sizeof p->e);
	if (p->e.header < ENTRY_LEAST || p->e.header > left || p->e.bytes > left - p->e.header) {
		jit_error(j, "an entry of the fat binary reaches past its end");
		*error = CUDA_ERROR_INVALID_IMAGE;
		return false;
	}
	p->payload = *at + p->e.header;
	*at = p->payload + p->e.bytes;
	return true;
}

/* The header, checked against `size` (0: unknown) and the limit. */
static CUresult fatbin_header(struct fatbin *h, const void *data, size_t size, struct jit *j)
{
	if (size && size < sizeof *h) {
		jit_error(j, "the fat binary is longer than its buffer");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	memcpy(h, data, sizeof *h);
	if (h->magic != IMAGE_FATBIN_MAGIC || h->header < sizeof *h || h->bytes > FATBIN_BYTES) {
		jit_error(j, "not a fat binary of a known kind");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	if (size && (h->header > size || h->bytes > size - h->header)) {
		jit_error(j, "the fat binary is longer than its buffer");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	return CUDA_SUCCESS;
}

/* The PTX entry with the highest target at or below the device's, else the lowest above; payload NULL:
 * none. */
static CUresult fatbin_pick(const struct fatbin *h, const void *data, int capability, struct part *best,
	struct found *found, struct jit *j)
{
	const char *at = (const char *)data + h->header, *end = at + h->bytes;
	CUresult r = CUDA_SUCCESS;
	struct part p;
	best->payload = NULL;
	while (next_part(&at, end, &p, &r, j)) {
		if (p.e.kind == ENTRY_PTX) {
			int sm = (int)p.e.sm, have = best->payload ? (int)best->e.sm : 0;
			if (!best->payload || (sm <= capability ? have > capability || sm > have
								: have > capability && sm < have))
				*best = p;
		} else {
			found_add(found, p.e.kind == ENTRY_ELF ? "sm_%u cubin" : "sm_%u intermediate code",
				p.e.sm);
		}
	}
	return r;
}

bool image_machine_code(const void *data, size_t size)
{
	struct fatbin h;
	struct part p;
	CUresult r = fatbin_header(&h, data, size, NULL);
	const char *at = (const char *)data + h.header, *end = at + h.bytes;
	bool some = false;
	while (!r && !some && next_part(&at, end, &p, &r, NULL)) {
		char *unpacked = NULL;
		if (p.e.kind != ENTRY_ELF)
			continue;
		if (!(p.e.flags & (FLAG_LZ4 | FLAG_ZSTD)))
			some = memmem(p.payload, p.e.bytes, ".text.", 6);
		else if (!unpack(&p, &unpacked, NULL))
			some = memmem(unpacked, p.e.unpacked, ".text.", 6);
		free(unpacked);
	}
	return some;
}

static CUresult no_ptx(const struct found *f, int capability, struct jit *j)
{
	jit_error(j,
		"no PTX in this image (found: %s). The software device runs PTX only: compile with "
		"-gencode arch=compute_%d,code=compute_%d",
		f->n ? f->text : "nothing", capability, capability);
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* Adds the fat binary's text, if it has one; what else it has is added to `found`. */
static CUresult add_fatbin(struct image *im, const void *data, size_t size, int capability,
	struct found *found, struct jit *j)
{
	struct fatbin h;
	struct part best;
	CUresult r = fatbin_header(&h, data, size, j);
	if (!r)
		r = fatbin_pick(&h, data, capability, &best, found, j);
	if (r || !best.payload)
		return r;
	if ((int)best.e.sm > capability)
		log_info("PTX for compute_%u is used on a device that presents compute_%d", best.e.sm,
			capability);
	return entry_text(im, &best, j);
}

static CUresult add_wrapper(
	struct image *im, const void *data, int capability, struct found *found, struct jit *j)
{
	struct image_wrapper copy, *w = &copy;
	memcpy(w, data, sizeof copy); /* images may lie anywhere */
	if (!w->data || ((uintptr_t)w->data & 7))
		return CUDA_ERROR_INVALID_IMAGE;
	CUresult r = add_fatbin(im, w->data, 0, capability, found, j);
	if (r || w->version != 2 || !w->extra)
		return r;
	/* relocatable code: the linked part has machine code at most; link the parts' PTX instead */
	struct image linked = {0};
	const void *const *part = w->extra;
	for (unsigned n = 0; !r && part[n] && n < IMAGE_TEXTS; n++)
		r = add_fatbin(&linked, part[n], 0, capability, found, j);
	if (r || !linked.count) {
		image_free(&linked);
		return r;
	}
	image_free(im);
	*im = linked;
	return CUDA_SUCCESS;
}

/* An image may be empty, but not one of machine code alone. */
static CUresult some_ptx(
	const struct image *im, unsigned before, const struct found *found, int capability, struct jit *j)
{
	return im->count == before && found->n ? no_ptx(found, capability, j) : CUDA_SUCCESS;
}

CUresult image_add(struct image *im, const void *data, size_t size, int capability, struct jit *j)
{
	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	if (size && size < 4)
		return CUDA_ERROR_INVALID_IMAGE;
	uint32_t magic = 0;
	/* a text may be shorter than a magic number: stop at its NUL */
	for (unsigned i = 0; i < 4; i++) {
		unsigned char b = ((const unsigned char *)data)[i];
		if (!b && !size)
			break;
		magic |= (uint32_t)b << 8 * i;
	}
	struct found found = {0};
	if (magic == IMAGE_WRAPPER_MAGIC && size && size < sizeof(struct image_wrapper))
		return CUDA_ERROR_INVALID_IMAGE;
	if (magic == IMAGE_WRAPPER_MAGIC || magic == IMAGE_FATBIN_MAGIC) {
		unsigned before = im->count;
		CUresult r = magic == IMAGE_WRAPPER_MAGIC ? add_wrapper(im, data, capability, &found, j)
						    : add_fatbin(im, data, size, capability, &found, j);
		return r ? r : some_ptx(im, before, &found, capability, j);
	}
	if (!memcmp(data, "\177ELF", size ? 4 : strnlen(data, 4) == 4 ? 4 : 1)) {
		const unsigned char *h = data;
		if (size && size < ELF_HEADER)
			return CUDA_ERROR_INVALID_IMAGE;
		unsigned sm = (unsigned)h[49]; /* e_flags, bits 8 to 15 */
		found_add(&found, "sm_%u cubin", sm);
		return no_ptx(&found, capability, j);
	}
	const char *s = data;
	size_t n = size ? strnlen(s, size) : strnlen(s, IMAGE_BYTES);
	if (n >= IMAGE_BYTES)
		return CUDA_ERROR_INVALID_IMAGE;
	size_t i = 0;
	while (i < n && (s[i] == ' ' || s[i] == '\t' || s[i] == '\n' || s[i] == '\r'))
		i++;
	/* A directive or a comment begins every PTX text; one to be loaded tells its version. */
	if (i == n || (s[i] != '.' && s[i] != '/') || (!size && !memmem(s, n, ".version", 8))) {
		jit_error(j, "neither PTX text nor a fat binary");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	return text_copy(im, s, n, j);
}

CUresult image_read(struct image *im, const void *data, size_t size, int capability, struct jit *j)
{
	*im = (struct image){0};
	CUresult r = image_add(im, data, size, capability, j);
	if (r)
		image_free(im);
	return r;
}

void *image_pack(const struct image *im, int capability, size_t *size)
{
	size_t n = 1;
	for (unsigned i = 0; i < im->count; i++)
		n += im->size[i] + 1;
	n = (n + 7) & ~(size_t)7;
	*size = sizeof(struct fatbin) + sizeof(struct entry) + n;
	struct fatbin *f = calloc(1, *size);
	if (!f)
		return NULL;
	struct entry *e = (struct entry *)(f + 1);
	*f = (struct fatbin){IMAGE_FATBIN_MAGIC, 1, sizeof *f, sizeof *e + n};
	*e = (struct entry){.kind = ENTRY_PTX,
		.unknown = 0x0101,
		.header = sizeof *e,
		.bytes = n,
		.sm = (uint32_t)capability,
		.flags = FLAG_LINKED | 0x1};
	char *p = (char *)(e + 1);
	for (unsigned i = 0; i < im->count; i++) {
		memcpy(p, im->text[i], im->size[i]);
		p += im->size[i] + 1;
	}
	return f;
}

bool image_is_fatbin(const void *data, size_t size)
{
	uint32_t magic = size >= sizeof magic ? u32(data) : 0;
	return magic == IMAGE_FATBIN_MAGIC || magic == IMAGE_WRAPPER_MAGIC;
}

bool image_is_linked(const void *data, size_t size)
{
	struct entry e;
	if (size < sizeof(struct fatbin) + sizeof e || u32(data) != IMAGE_FATBIN_MAGIC)
		return false;
	memcpy(&e, (const char *)data + sizeof(struct fatbin), sizeof e);
	return e.flags & FLAG_LINKED;
}

void image_shrink(struct image *im, unsigned count)
{
	while (im->count > count) {
		im->bytes -= im->size[--im->count];
		free(im->text[im->count]);
	}
}

void image_free(struct image *im)
{
	image_shrink(im, 0);
}
