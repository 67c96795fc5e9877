/* SPDX-License-Identifier: Apache-2.0 */
/* scuda-softcheck: says before anything runs whether the software device can run the kernels of a PTX text, a
 * fat binary, or a program or library that was built with nvcc, and which instructions it lacks. It loads
 * the code just as the device would, and launches nothing.
 *
 * Thread rule: one thread. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "server/soft/engine.h"
#include "server/soft/image.h"
#include "server/soft/memory.h"
#include "server/soft/softcheck/sections.h"

#define MEMORY (4ull << 30) /* for the variables of all modules of one file, one after another */
#define FATBIN_MAGIC 0xba55ed50u

enum { COVERED, LACKING, UNREADABLE }; /* exit statuses, the worst last */

struct check {
	const char *file;
	int capability, status;
	unsigned kernels, lacking, images, empty; /* empty: images without PTX */
};

static void worse(struct check *c, int status)
{
	if (status > c->status)
		c->status = status;
}

static void check_module(struct check *c, const struct image *im)
{
	struct engine_module *m = NULL;
	struct engine_error error = {0};
	struct engine_function *f;
	if (engine_module_load((const char *const *)im->text, im->size, im->count, &m, &error)) {
		printf("%s: does not load: %s", c->file, error.text);
		printf(error.line ? " (PTX line %u)\n" : "\n", error.line);
		worse(c, LACKING);
		return;
	}
	for (unsigned i = 0; (f = engine_function_at(m, i)); i++) {
		const struct engine_function_info *info = engine_function_info(f);
		c->kernels++;
		if (!info->uncovered)
			continue;
		c->lacking++;
		worse(c, LACKING);
		printf("%s: kernel %s: %s\n", c->file, info->name, info->uncovered);
	}
	engine_module_unload(m);
}

/* Adds one image's texts to `im`. Machine code alone is counted and not told for each: a library has many. */
static bool take(struct check *c, struct image *im, const void *data, size_t size)
{
	bool fatbin = size >= 4 && !memcmp(data, &(uint32_t){FATBIN_MAGIC}, 4);
	char why[1024] = "";
	struct jit j = {.error = why, .error_size = sizeof why};
	CUresult r = image_add(im, data, size, c->capability, &j);
	c->images++;
	if (!r)
		return true;
	if (r == CUDA_ERROR_NO_BINARY_FOR_GPU && fatbin && !image_machine_code(data, size)) {
		c->images--;
	} else if (r == CUDA_ERROR_NO_BINARY_FOR_GPU) {
		if (!c->empty++)
			printf("%s: %s\n", c->file, why);
		worse(c, LACKING);
	} else {
		printf("%s: %s\n", c->file, *why ? why : "not an image of a known kind");
		worse(c, UNREADABLE);
	}
	return false;
}

static void check_image(struct check *c, const void *data, size_t size)
{
	struct image im = {0};
	if (take(c, &im, data, size) && im.count)
		check_module(c, &im);
	image_free(&im);
}

/* The fat binaries of a section, one behind the other. Those of relocatable code are parts of one module. */
static void check_section(struct check *c, const char *data, size_t size, bool parts)
{
	struct image all = {0};
	uint32_t magic;
	uint16_t header;
	uint64_t bytes;
	for (size_t at = 0; size - at >= 16;) {
		memcpy(&magic, data + at, 4);
		memcpy(&header, data + at + 6, 2);
		memcpy(&bytes, data + at + 8, 8);
		if (magic != FATBIN_MAGIC) {
			at += 8; /* what aligns the next one */
			continue;
		}
		if (header < 16 || header > size - at || bytes > size - at - header) {
			printf("%s: a fat binary reaches past its section's end\n", c->file);
			worse(c, UNREADABLE);
			break;
		}
		if (parts)
			take(c, &all, data + at, header + bytes);
		else
			check_image(c, data + at, header + bytes);
		at += (header + bytes + 7) & ~7ull;
		if (at > size)
			break;
	}
	if (all.count)
		check_module(c, &all);
	image_free(&all);
}

static int check_elf(struct check *c, int fd)
{
	static const struct {
		const char *name;
		bool parts;
	} sections[] = {{".nv_fatbin", false}, {"__nv_relfatbin", true}};
	unsigned found = 0;
	/* relocatable code: the first section has what nvlink made of the parts, machine code only */
	void *data;
	size_t size;
	int e = section_read(fd, sections[1].name, &data, &size);
	bool relocatable = data;
	free(data);
	for (unsigned i = relocatable; !e && i < sizeof sections / sizeof *sections; i++) {
		e = section_read(fd, sections[i].name, &data, &size);
		if (e || !data)
			continue;
		found++;
		check_section(c, data, size, sections[i].parts);
		free(data);
	}
	if (!e && !found) {
		printf("%s: no device code in it\n", c->file);
		worse(c, UNREADABLE);
	}
	return e;
}

static int check_file(const char *file, int capability)
{
	struct check c = {.file = file, .capability = capability};
	int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK), e = fd < 0 ? -errno : 0;
	if (!e && is_host_elf(fd)) {
		e = check_elf(&c, fd);
	} else if (!e) {
		void *data = NULL;
		size_t size;
		e = file_read(fd, &data, &size);
		if (!e && size)
			check_image(&c, data, size);
		else if (!e)
			e = -ENODATA;
		free(data);
	}
	if (fd >= 0)
		close(fd);
	if (e) {
		fprintf(stderr, "scuda-softcheck: %s: %s\n", file,
			e == -ENOEXEC ? "damaged: its headers contradict its length" : strerror(-e));
		return UNREADABLE;
	}
	if (c.kernels || c.status < UNREADABLE)
		printf("%s: %u kernels, %u not covered\n", file, c.kernels, c.lacking);
	if (c.empty > 1)
		printf("%s: %u of %u images have no PTX\n", file, c.empty, c.images);
	return c.status;
}

static int usage(FILE *to)
{
	fputs("usage: scuda-softcheck [--capability X.Y] FILE...\n"
	      "lists the instructions in a PTX file, a fat binary, a program or a library that the\n"
	      "software device does not have. Status: 0 none, 1 some, 2 a file cannot be read.\n",
		to);
	return to == stdout ? 0 : UNREADABLE;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"capability", required_argument, NULL, 'c'},
		{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'v'}, {0}};
	unsigned major = 7, minor = 5;
	int o, n = 0, status = COVERED;
	setenv("SCUDAFS_LOG", "error", 0); /* what the loader warns of is printed here, once */
	while ((o = getopt_long(argc, argv, "c:h", options, NULL)) >= 0) {
		switch (o) {
		case 'c':
			if (sscanf(optarg, "%1u.%1u%n", &major, &minor, &n) != 2 || optarg[n] || major < 7) {
				fprintf(stderr, "scuda-softcheck: --capability %s: it is X.Y, from 7.0 on\n",
					optarg);
				return usage(stderr);
			}
			break;
		case 'v': puts("scuda-softcheck " VERSION); return 0;
		case 'h': return usage(stdout);
		default: return usage(stderr);
		}
	}
	if (optind == argc)
		return usage(stderr);
	int e = soft_mem_init(MEMORY);
	if (e) {
		fprintf(stderr, "scuda-softcheck: memory for variables: %s\n", strerror(-e));
		return UNREADABLE;
	}
	for (int i = optind; i < argc; i++) {
		int s = check_file(argv[i], (int)(major * 10 + minor));
		status = s > status ? s : status;
		fflush(stdout);
	}
	if (ferror(stdout)) {
		fprintf(stderr, "scuda-softcheck: standard output: %s\n", strerror(errno));
		return UNREADABLE;
	}
	return status;
}
