/* SPDX-License-Identifier: Apache-2.0 */
/* The linker's other inputs: what a host compiler made (an ELF file with fat binaries in its sections) and
 * archives of that. They come from a client: every offset is checked against the bytes that there are before
 * it is used.
 *
 * Thread rule: no shared state. */
#include "server/soft/archive.h"
#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "wire/image.h"

#define MACHINE_CUDA 190
#define ARCHIVE_MAGIC "!<arch>\n"

struct member {
	char name[16], date[12], owner[6], group[6], mode[8], bytes[10], end[2];
};
_Static_assert(sizeof(struct member) == 60, "the header of a member as it lies in the file");

/* What an input holds, and where its texts go. */
struct input {
	struct image *image;
	int capability;
	struct jit *jit;
	unsigned fatbins; /* with PTX or without */
};

static CUresult damaged(const struct input *in, const char *what)
{
	jit_error(in->jit, "the linker's input is damaged: %s", what);
	return CUDA_ERROR_INVALID_IMAGE;
}

/* A section's fat binaries, one behind the other. */
static CUresult section(struct input *in, const char *data, size_t size)
{
	CUresult r = CUDA_SUCCESS;
	for (size_t at = 0; !r && at < size && size - at >= IMAGE_FATBIN_HEADER;) {
		if (u32(data + at) != IMAGE_FATBIN_MAGIC) {
			at += 8; /* what aligns the next one */
			continue;
		}
		uint64_t header = u16(data + at + 6), bytes = u64(data + at + 8);
		if (header < IMAGE_FATBIN_HEADER || header > size - at || bytes > size - at - header)
			return damaged(in, "a fat binary reaches past its section's end");
		in->fatbins++;
		r = image_add(in->image, data + at, header + bytes, in->capability, in->jit);
		at += (header + bytes + 7) & ~7ull;
	}
	return r;
}

bool archive_is_object(const void *data, size_t size)
{
	Elf64_Ehdr h;
	if (size < sizeof h)
		return false;
	memcpy(&h, data, sizeof h);
	return !memcmp(h.e_ident, ELFMAG, SELFMAG) && h.e_ident[EI_CLASS] == ELFCLASS64 &&
	       h.e_ident[EI_DATA] == ELFDATA2LSB && h.e_machine != MACHINE_CUDA;
}

/* All sections of that name. */
static CUresult sections(struct input *in, const char *data, size_t size, const char *name)
{
	Elf64_Ehdr h;
	Elf64_Shdr names, s;
	size_t length = strlen(name) + 1;
	memcpy(&h, data, sizeof h);
	if (!h.e_shnum)
		return CUDA_SUCCESS;
	if (h.e_shentsize != sizeof s || h.e_shstrndx >= h.e_shnum || h.e_shoff > size ||
		(size - h.e_shoff) / sizeof s < h.e_shnum)
		return damaged(in, "the table of sections is not in the file");
	memcpy(&names, data + h.e_shoff + h.e_shstrndx * sizeof s, sizeof names);
	if (names.sh_offset > size || names.sh_size > size - names.sh_offset)
		return damaged(in, "the names of its sections are not in the file");
	CUresult r = CUDA_SUCCESS;
	for (unsigned i = 0; !r && i < h.e_shnum; i++) {
		memcpy(&s, data + h.e_shoff + i * sizeof s, sizeof s);
		if (s.sh_type == SHT_NOBITS || names.sh_size < length || s.sh_name > names.sh_size - length ||
			memcmp(data + names.sh_offset + s.sh_name, name, length))
			continue;
		if (s.sh_offset > size || s.sh_size > size - s.sh_offset)
			return damaged(in, "a section is not in the file");
		r = section(in, data + s.sh_offset, s.sh_size);
	}
	return r;
}

/* Relocatable code has a section of its own; the other then holds what the device linker made of it. */
static CUresult object(struct input *in, const char *data, size_t size)
{
	unsigned before = in->fatbins;
	CUresult r = sections(in, data, size, "__nv_relfatbin");
	return r || in->fatbins > before ? r : sections(in, data, size, ".nv_fatbin");
}

static CUresult archive(struct input *in, const char *data, size_t size)
{
	CUresult r = CUDA_SUCCESS;
	for (size_t at = strlen(ARCHIVE_MAGIC); !r && at < size;) {
		struct member m;
		char digits[sizeof m.bytes + 1] = "";
		if (size - at < sizeof m)
			return damaged(in, "an archive ends within a member's header");
		memcpy(&m, data + at, sizeof m);
		memcpy(digits, m.bytes, sizeof m.bytes);
		at += sizeof m;
		size_t n = strtoull(digits, NULL, 10); /* ten digits at most */
		if (memcmp(m.end, "`\n", 2) || digits[0] < '0' || digits[0] > '9' || n > size - at)
			return damaged(in, "a member of the archive reaches past its end");
		if (archive_is_object(data + at, n))
			r = object(in, data + at, n);
		at += n + (n & 1);
	}
	return r;
}

bool archive_is(const void *data, size_t size)
{
	return size >= strlen(ARCHIVE_MAGIC) && !memcmp(data, ARCHIVE_MAGIC, strlen(ARCHIVE_MAGIC));
}

CUresult archive_add(struct image *im, const void *data, size_t size, int capability, struct jit *j)
{
	struct input in = {im, capability, j, 0};
	if (archive_is(data, size))
		return archive(&in, data, size);
	if (archive_is_object(data, size))
		return object(&in, data, size);
	return image_add(im, data, size, capability, j);
}
