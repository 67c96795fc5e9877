/* SPDX-License-Identifier: Apache-2.0 */
/* Images taken apart: every form in which code arrives, the choice among several, what is said when there is
 * no PTX, and what is too much. Damaged ones are mutate_images.c's.
 *
 * Thread rule: none. */
#include <lz4.h>
#include <zstd.h>
#include "server/soft/image.h"
#include "tests/soft/driver/test.h"

struct entry {
	uint16_t kind, unknown;
	uint32_t header;
	uint64_t bytes;
	uint32_t packed, options;
	uint16_t minor, major;
	uint32_t sm, name, name_bytes;
	uint64_t flags, zero, unpacked;
};
struct wrapper {
	uint32_t magic, version;
	const void *data;
	const void *extra;
};

enum { STORED, LZ4, ZSTD, CUBIN };
static _Alignas(8) char fat[1 << 16];

static void begin(void *buffer)
{
	memcpy(buffer, (uint32_t[4]){0xba55ed50u, 0x00100001u, 0, 0}, 16);
}

static void add(void *buffer, int how, unsigned sm, const char *text)
{
	uint64_t *total = (uint64_t *)((char *)buffer + 8);
	struct entry *e = (struct entry *)((char *)buffer + 16 + *total);
	char *payload = (char *)(e + 1);
	size_t n = strlen(text) + 1, packed = n;
	*e = (struct entry){.kind = how == CUBIN ? 2 : 1,
		.unknown = 0x0101,
		.header = sizeof *e,
		.sm = sm,
		.flags = 0x11};
	if (how == LZ4) {
		packed = (size_t)LZ4_compress_default(text, payload, (int)n, 4096);
		e->flags |= 0x2000;
	} else if (how == ZSTD) {
		packed = ZSTD_compress(payload, 4096, text, n, 3);
		e->flags |= 0x8000;
	} else {
		memcpy(payload, text, n);
	}
	if (how == LZ4 || how == ZSTD) {
		e->packed = (uint32_t)packed;
		e->unpacked = n;
	}
	e->bytes = (packed + 7) & ~(size_t)7;
	*total += sizeof *e + e->bytes;
}

static void gives(const void *image, size_t size, const char *want)
{
	struct image im;
	OK(image_read(&im, image, size, 75, NULL));
	CHECK(im.count == 1 && im.size[0] == strlen(want) && !strcmp(im.text[0], want));
	image_free(&im);
}

static void refused(const void *image, CUresult code, const char *says)
{
	struct image im;
	struct jit j;
	char log[512];
	CUjit_option o[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *v[] = {log, (void *)sizeof log};
	OK(jit_read(&j, 2, o, v));
	IS(image_read(&im, image, 0, 75, &j), code);
	jit_end(&j);
	CHECK(strstr(log, says) && (size_t)(uintptr_t)v[1] == strlen(log));
}

int main(void)
{
	setenv("SCUDAFS_LOG", "error", 1);
	gives("  \n// text\n.version 7.5", 0, "  \n// text\n.version 7.5");
	gives(".version 7.5 tail", 12, ".version 7.5");
	for (int how = STORED; how <= ZSTD; how++) {
		begin(fat);
		add(fat, how, 75,
			".version 7.5 // what is in the entry, with some length to it, to it, to it, to it");
		gives(fat, 0,
			".version 7.5 // what is in the entry, with some length to it, to it, to it, to it");
		struct wrapper w = {0x466243b1u, 1, fat, NULL};
		gives(&w, 0,
			".version 7.5 // what is in the entry, with some length to it, to it, to it, to it");
	}
	/* the highest at or below, else the lowest above */
	begin(fat);
	add(fat, STORED, 120, ".a120");
	add(fat, ZSTD, 50, ".a50");
	add(fat, CUBIN, 75, "machine code");
	add(fat, LZ4, 70, ".a70");
	add(fat, STORED, 90, ".a90");
	gives(fat, 0, ".a70");
	begin(fat);
	add(fat, STORED, 120, ".a120");
	add(fat, STORED, 90, ".a90");
	gives(fat, 0, ".a90");

	struct image im;
	begin(fat);
	OK(image_read(&im, fat, 0, 75, NULL));
	CHECK(!im.count);
	add(fat, CUBIN, 80, "machine code");
	add(fat, CUBIN, 90, "machine code");
	refused(fat, CUDA_ERROR_NO_BINARY_FOR_GPU, "sm_80 cubin, sm_90 cubin");
	refused(fat, CUDA_ERROR_NO_BINARY_FOR_GPU, "-gencode arch=compute_75,code=compute_75");
	static const unsigned char elf[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, [48] = 0, [49] = 86};
	refused(elf, CUDA_ERROR_NO_BINARY_FOR_GPU, "sm_86 cubin");
	refused("no image", CUDA_ERROR_INVALID_IMAGE, "neither");
	IS(image_read(&im, "", 0, 75, NULL), CUDA_ERROR_INVALID_IMAGE);
	IS(image_read(&im, NULL, 0, 75, NULL), CUDA_ERROR_INVALID_VALUE);
	char *torn = strdup("\177ELF");
	IS(image_read(&im, torn, 4, 75, NULL), CUDA_ERROR_INVALID_IMAGE);
	free(torn);

	/* relocatable code: the parts behind the wrapper */
	static _Alignas(8) char parts[2][4096];
	begin(fat);
	add(fat, CUBIN, 75, "linked machine code");
	begin(parts[0]);
	add(parts[0], ZSTD, 75, ".first");
	begin(parts[1]);
	add(parts[1], LZ4, 75, ".second");
	const void *list[] = {parts[0], parts[1], NULL};
	struct wrapper w = {0x466243b1u, 2, fat, list};
	OK(image_read(&im, &w, 0, 75, NULL));
	CHECK(im.count == 2 && !strcmp(im.text[0], ".first") && !strcmp(im.text[1], ".second"));
	/* packed by the linker and read again */
	size_t n;
	void *packed = image_pack(&im, 75, &n);
	struct image again;
	OK(image_read(&again, packed, n, 75, NULL));
	CHECK(again.count == 2 && !strcmp(again.text[0], ".first") && !strcmp(again.text[1], ".second"));
	image_free(&again);
	image_free(&im);
	free(packed);

	/* more text than an image may have, of parts that are each small enough */
	size_t half = IMAGE_BYTES / 2;
	char *spaces = malloc(half);
	CHECK(spaces);
	memset(spaces, ' ', half);
	static _Alignas(8) char large[1 << 16];
	begin(large);
	struct entry *e = (struct entry *)(large + 16);
	*e = (struct entry){.kind = 1, .header = sizeof *e, .sm = 75, .flags = 0x8000, .unpacked = half};
	e->packed = (uint32_t)ZSTD_compress(e + 1, sizeof large - 128, spaces, half, 1);
	e->bytes = (e->packed + 7ull) & ~7ull;
	*(uint64_t *)(large + 8) = sizeof *e + e->bytes;
	free(spaces);
	const void *three[] = {large, large, large, NULL};
	w.extra = three;
	refused(&w, CUDA_ERROR_INVALID_IMAGE, "MiB of PTX");
	e->unpacked = 2ull * half + 1;
	refused(large, CUDA_ERROR_INVALID_IMAGE, "MiB of PTX");

	puts("PASS images");
	return 0;
}
