/* SPDX-License-Identifier: Apache-2.0 */
/* How an image is sent: its kind and the sizes of its parts in the head, the parts one behind the other in
 * the bulk; or, of one that the server may have kept, its digest in place of the bulk. And how long an
 * image is by its own headers: a driver is told no size, so the program's end must know where an image in
 * its memory ends, and the server that the driver will not read past what came. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum image_kind {
	IMAGE_WRAPPER1 = 1, /* a wrapper of version 1 around one fatbin */
	IMAGE_WRAPPER2, /* version 2: a linked fatbin, then the relocatable ones */
	IMAGE_FATBIN, /* a bare fatbin */
	IMAGE_ELF,
	IMAGE_PTX, /* text without its NUL */
	IMAGE_ARCHIVE, /* for the linker only */
};

#define IMAGE_WRAPPER_MAGIC 0x466243b1u
#define IMAGE_FATBIN_MAGIC 0xba55ed50u
#define IMAGE_FATBIN_HEADER 16
#define IMAGE_KEPT 128u /* from this size on a server keeps images */
#define IMAGE_ASKED (64u << 10) /* from this size on a program's end asks whether the server has it */
#define IMAGE_TAIL 64 /* zero bytes that image_whole wants behind an image: a NUL, an entry's header */

/* What a compiler puts around a fatbin, and the runtime hands to the driver: addresses of the program's. */
struct image_wrapper {
	uint32_t magic, version;
	const void *data, *extra;
};

/* Words of an image, which lie anywhere. */
static inline uint16_t u16(const void *p)
{
	uint16_t v;
	memcpy(&v, p, sizeof v);
	return v;
}
static inline uint32_t u32(const void *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof v);
	return v;
}
static inline uint64_t u64(const void *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

/* Bytes of the fatbin at p, 0 when it is none; at most `max`. */
size_t image_fatbin_size(const void *p, size_t max);

/* The end of an ELF file: of its tables, its segments and every section with bytes. 0: not an ELF64 that
 * fits. */
size_t image_elf_size(const void *p, size_t max);

/* Whether a fatbin's n bytes hold all that its headers speak of. */
bool image_fatbin_whole(const void *p, size_t n);

/* The same of any image that a driver knows by its first bytes. False of a wrapper, which is addresses;
 * text is whole, and ends at the tail. */
bool image_whole(const void *p, size_t n);
