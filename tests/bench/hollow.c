/* SPDX-License-Identifier: Apache-2.0 */
/* A driver in front of the software device that takes machine code for PTX whose kernels have the same names,
 * parameters and shared memory, and do nothing. Programs that come with machine code alone, as PyTorch and
 * cuBLAS do, then ask what they ask of a GPU, in the same order, and get nonsense for results: what can be
 * counted are calls and round trips (trips.sh). It also calls itself a device of 132 multiprocessors, which
 * libraries choose their kernels by.
 *
 * Thread rule: no state. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <lz4.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "wire/cuda_types.h"
#include "wire/image.h"

#define EXPORT __attribute__((visibility("default")))
#define ENTRY_ELF 2
#define FLAG_LZ4 0x2000u
#define FLAG_ZSTD 0x8000u
#define SM_MAJOR 9
#define ENTRY_POINT 0x10 /* of a symbol's st_other: a kernel */
#define INFO_VALUE 4 /* a record of .nv.info with bytes behind it */
#define INFO_MAX_THREADS 5
#define INFO_PARAMETER 0x17
#define PARAMETERS 4096

struct entry {
	uint16_t kind, unknown;
	uint32_t header;
	uint64_t bytes;
	uint32_t packed, options;
	uint16_t minor, major;
	uint32_t sm, name, name_bytes;
	uint64_t flags, zero, unpacked;
};

static void *next(const char *name)
{
	void *soft = dlopen("libscuda-soft.so", RTLD_NOW | RTLD_NOLOAD), *p = soft ? dlsym(soft, name) : NULL;

	if (!p)
		abort();
	return p;
}
#define NEXT(function) ((typeof(&function))next(#function))

/* ---- PTX for the kernels of an ELF image. The images are a framework's own, and are believed. */

struct elf {
	const uint8_t *p;
	const Elf64_Ehdr *head;
	const Elf64_Shdr *section;
	const char *names;
};

static const Elf64_Shdr *section_of(const struct elf *e, const char *kind, const char *kernel)
{
	size_t n = strlen(kind);

	for (int i = 0; i < e->head->e_shnum; i++) {
		const char *name = e->names + e->section[i].sh_name;

		if (!strncmp(name, kind, n) && !strcmp(name + n, kernel))
			return &e->section[i];
	}
	return NULL;
}

struct kernel {
	unsigned nparams, threads[3];
	struct { uint32_t offset, size; } param[PARAMETERS];
};

static void read_info(const struct elf *e, const char *name, struct kernel *k)
{
	const Elf64_Shdr *s = section_of(e, ".nv.info.", name);
	const uint8_t *p = s ? e->p + s->sh_offset : NULL, *end = s ? p + s->sh_size : NULL;

	k->nparams = 0;
	memset(k->threads, 0, sizeof k->threads);
	while (p && end - p >= 4) {
		unsigned form = p[0], what = p[1], n = u16(p + 2);

		p += 4;
		if (form != INFO_VALUE)
			continue;
		if (what == INFO_PARAMETER && n == 12 && u16(p + 4) < PARAMETERS) {
			unsigned i = u16(p + 4);

			k->param[i].offset = u16(p + 6);
			k->param[i].size = u32(p + 8) >> 18;
			k->nparams = i >= k->nparams ? i + 1 : k->nparams;
		} else if (what == INFO_MAX_THREADS && n == sizeof k->threads) {
			memcpy(k->threads, p, sizeof k->threads);
		}
		p += n;
	}
}

static void print_kernel(FILE *f, const struct elf *e, const char *name)
{
	static _Thread_local struct kernel k;
	const Elf64_Shdr *shared = section_of(e, ".nv.shared.", name);

	read_info(e, name, &k);
	fprintf(f, ".visible .entry %s(", name);
	for (unsigned i = 0; i < k.nparams; i++) {
		unsigned align = 1;

		while (align < 16 && !(k.param[i].offset & align))
			align *= 2;
		fprintf(f, "%s.param .align %u .b8 p%u[%u]", i ? ", " : "", align, i, k.param[i].size);
	}
	fputc(')', f);
	if (k.threads[0])
		fprintf(f, " .maxntid %u, %u, %u", k.threads[0], k.threads[1] ? k.threads[1] : 1,
			k.threads[2] ? k.threads[2] : 1);
	fputs(" {", f);
	if (shared && shared->sh_size)
		fprintf(f, " .shared .align 16 .b8 s[%llu]; .reg .b32 %%r; mov.u32 %%r, s;",
			(unsigned long long)shared->sh_size);
	fputs(" ret; }\n", f);
}

static void print_symbols(FILE *f, const struct elf *e, const Elf64_Shdr *table)
{
	const Elf64_Sym *s = (const void *)(e->p + table->sh_offset);
	const char *names = (const char *)e->p + e->section[table->sh_link].sh_offset;

	for (size_t i = 1; i < table->sh_size / sizeof *s; i++) {
		const char *name = names + s[i].st_name, *in;

		if (!s[i].st_name || !s[i].st_shndx || s[i].st_shndx >= e->head->e_shnum)
			continue;
		in = e->names + e->section[s[i].st_shndx].sh_name;
		bool constant = !strncmp(in, ".nv.constant3", 13);

		if (ELF64_ST_TYPE(s[i].st_info) == STT_FUNC && s[i].st_other & ENTRY_POINT)
			print_kernel(f, e, name);
		else if (ELF64_ST_TYPE(s[i].st_info) == STT_OBJECT && s[i].st_size &&
			 (constant || !strncmp(in, ".nv.global", 10)))
			fprintf(f, ".visible .%s .align 16 .b8 %s[%llu];\n", constant ? "const" : "global",
					name,
				(unsigned long long)s[i].st_size);
	}
}

static char *ptx_of(const uint8_t *p)
{
	struct elf e = {.p = p, .head = (const void *)p};
	char *text = NULL;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return NULL;
	e.section = (const void *)(p + e.head->e_shoff);
	e.names = (const char *)p + e.section[e.head->e_shstrndx].sh_offset;
	fprintf(f, ".version 8.0\n.target sm_%d0\n.address_size 64\n", SM_MAJOR);
	for (int i = 0; i < e.head->e_shnum; i++)
		if (e.section[i].sh_type == SHT_SYMTAB)
			print_symbols(f, &e, &e.section[i]);
	return fclose(f) ? NULL : text;
}

/* ---- images */

static uint8_t *unpack(const struct entry *e, const uint8_t *payload)
{
	size_t n = e->flags & (FLAG_LZ4 | FLAG_ZSTD) ? e->unpacked : e->bytes;
	uint8_t *p = malloc(n);
	bool ok = p;

	if (ok && e->flags & FLAG_ZSTD)
		ok = !ZSTD_isError(ZSTD_decompress(p, n, payload, e->packed));
	else if (ok && e->flags & FLAG_LZ4)
		ok = LZ4_decompress_safe((const char *)payload, (char *)p, (int)e->packed, (int)n) >= 0;
	else if (ok)
		memcpy(p, payload, n);
	if (ok)
		return p;
	free(p);
	return NULL;
}

/* PTX to load in place of the image, or NULL: it is one that the software device takes. */
static char *hollow(const void *image)
{
	const struct image_wrapper *w = image;
	const uint8_t *p = w->magic == IMAGE_WRAPPER_MAGIC ? w->data : image, *end, *payload = NULL;
	struct entry e, best = {0};

	if (!memcmp(p, "\x7f" "ELF", 4))
		return ptx_of(p);
	if (u32(p) != IMAGE_FATBIN_MAGIC)
		return NULL;
	end = p + IMAGE_FATBIN_HEADER + u64(p + 8);
	for (p += IMAGE_FATBIN_HEADER; p + sizeof e <= end; p += e.header + e.bytes) {
		memcpy(&e, p, sizeof e);
		if (e.kind == ENTRY_ELF && e.sm == 10 * SM_MAJOR) {
			best = e;
			payload = p + e.header;
		}
	}
	uint8_t *elf = payload ? unpack(&best, payload) : NULL;
	char *text = elf ? ptx_of(elf) : NULL;

	free(elf);
	return text;
}

EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options, void **values,
	unsigned n, CUlibraryOption *library_options, void **library_values, unsigned nlibrary)
{
	char *text = hollow(code);
	CUresult r = NEXT(cuLibraryLoadData)(library, text ? text : code, options, values, n, library_options,
		library_values, nlibrary);

	free(text);
	return r;
}

EXPORT CUresult cuModuleLoadDataEx(
	CUmodule *module, const void *code, unsigned n, CUjit_option *options, void **values)
{
	char *text = hollow(code);
	CUresult r = NEXT(cuModuleLoadDataEx)(module, text ? text : code, n, options, values);

	free(text);
	return r;
}

/* ---- the device */

EXPORT CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice device)
{
	CUresult r = NEXT(cuDeviceGetAttribute)(v, a, device);

	if (!r && a == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)
		*v = 132;
	if (!r && a == CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)
		*v = 2048;
	return r;
}

/* A shape that the software device refuses was chosen by attributes that it does not have. */
EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
	unsigned bz, unsigned shared, CUstream stream, void **params, void **extra)
{
	CUresult r = NEXT(cuLaunchKernel)(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);

	return r == CUDA_ERROR_INVALID_VALUE ? CUDA_SUCCESS : r;
}
