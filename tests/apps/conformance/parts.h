/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of links that tests/apps/link is compiled to: two that need each other, in every form. They lie
 * beside the programs. Threads: none. */
#pragma once
#include "check.h"

struct part {
	char path[4096];
	void *bytes;
	size_t size;
};

/* "caller.ptx" and so on. Without it the program ends. */
static inline struct part part(const char *name)
{
	struct part p = {.bytes = NULL};
	char self[3000];
	ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
	FILE *f;

	if (n < 0)
		exit(4);
	self[n] = 0;
	for (int up = 0; up < 2; up++)
		if (strrchr(self, '/'))
			*strrchr(self, '/') = 0;
	snprintf(p.path, sizeof p.path, "%s/link/%s", self, name);
	f = fopen(p.path, "rb");
	p.bytes = malloc(1 << 20);
	if (!f || !p.bytes || !(p.size = fread(p.bytes, 1, (1 << 20) - 1, f))) {
		SAY("%s is not there", name);
		exit(4);
	}
	((char *)p.bytes)[p.size++] = 0; /* texts end with it, and no other form minds */
	if (!strstr(name, "ptx"))
		p.size--;
	fclose(f);
	return p;
}

static inline CUresult add_part(CUlinkState l, CUjitInputType type, const char *name, bool file)
{
	struct part p = part(name);
	CUresult r = file ? cuLinkAddFile(l, type, p.path, 0, NULL, NULL)
			  : cuLinkAddData(l, type, p.bytes, p.size, name, 0, NULL, NULL);

	SAY("%s as %d by %s -> %s", name, type, file ? "file" : "data", name_of(r));
	free(p.bytes);
	return r;
}

/* The kernel of what was linked: twice 21 and the other input's 100. */
static inline void use_image(void *image, size_t n)
{
	CUdeviceptr p = zeroed(64), counter;
	CUfunction f;
	CUmodule m;
	unsigned v = 21;
	size_t size;

	SAY("an image %d", image && n);
	if (ASK(cuModuleLoadData(&m, image)))
		return;
	ASK(cuModuleGetGlobal(&counter, &size, m, "counter"));
	if (!ASK(cuModuleGetFunction(&f, m, "call"))) {
		ASK(LAUNCH(f, NULL, &p, &v));
		SAY("value %u", word(p));
	}
	ASK(cuModuleUnload(m));
}

/* Both inputs, or an archive of both when `second` is NULL. */
static inline void link_parts(CUjitInputType one, const char *first, CUjitInputType two, const char *second,
	bool file, CUjit_option option, uintptr_t value)
{
	static char info[4096], error[4096];
	CUjit_option o[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, option};
	void *v[] = {info, (void *)sizeof info, error, (void *)sizeof error, (void *)value};
	CUlinkState l;
	void *image = NULL;
	size_t n = 0;
	CUresult r;

	memset(info, 0, sizeof info);
	memset(error, 0, sizeof error);
	SAY("- %s and %s", first, second ? second : "nothing");
	if (ASK(cuLinkCreate(COUNT(o) - !value, o, v, &l)))
		return;
	r = add_part(l, one, first, file);
	if (!r && second)
		r = add_part(l, two, second, file);
	if (!r)
		r = ASK(cuLinkComplete(l, &image, &n));
	SAY("error log empty %d, sizes right %d %d", !error[0], (size_t)v[1] == strlen(info),
		(size_t)v[3] == strlen(error));
	vary(info);
	vary(error);
	if (!r)
		use_image(image, n);
	ASK(cuLinkDestroy(l));
}
