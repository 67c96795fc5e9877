/* SPDX-License-Identifier: Apache-2.0 */
/* mutate_images COUNT[:FIRST]: code arrives from a client as fat binaries, wrappers around them, ELF files,
 * texts and inputs of the linker. Input number n is one that is built of parts and then damaged: words of
 * headers get values that mean something, payloads are cut, compressed anew after a change or expand to far
 * more than they say, pieces stand twice or not at all, one kind stands in another. Each is loaded as the
 * server does it, sizes checked first and none told, and given to the linker with its size; what loads is
 * listed and sometimes run. tests/soft/mutate.h says who watches.
 *
 * Thread rule: one thread; the device has its own workers. */
#include <lz4.h>
#include <zstd.h>
#include "tests/soft/driver/test.h"
#include "tests/soft/mutate.h"
#include "wire/image.h"

enum {
	MAX_IMAGE = 1 << 18,
	MAX_PARTS = 6, /* of a wrapper of version 2 */
	BOMB = 48 << 20, /* bytes that a few compressed ones expand to */
	STORED = 0,
	LZ4,
	ZSTD,
	WAYS,
	FLAG_LZ4 = 0x2000,
	FLAG_ZSTD = 0x8000,
};
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
	uint32_t sm, name, name_bytes;
	uint64_t flags, zero, unpacked;
};

static const char *const texts[] = {add_ptx,
	PTX_HEAD ".extern .func (.param .b32 r) half(.param .b32 x);\n"
		 ".visible .entry call_it(.param .u64 p) { .reg .b32 %r<2>; .reg .b64 %d<2>; "
		 "ld.param.u64 %d0,[p];\n"
		 " { .param .b32 x; .param .b32 r; mov.u32 %r0, 8; st.param.b32 [x], %r0; call (r), half, "
		 "(x);\n"
		 " ld.param.b32 %r1, [r]; } st.u32 [%d0], %r1; ret; }\n",
	PTX_HEAD ".visible .func (.param .b32 r) half(.param .b32 x) { .reg .b32 %r<2>; "
			"ld.param.b32 %r0,[x];\n"
		 " shr.u32 %r1, %r0, 1; st.param.b32 [r], %r1; ret; }\n",
	PTX_HEAD ".visible .global .align 8 .u64 where[2] = {generic(word), 3};\n.global .u32 word = 7;\n"
		 ".visible .entry share(.param .u64 p) { .shared .u32 s[64]; .reg .b32 %r<3>; "
		 "mov.u32 %r0,%tid.x;\n"
		 " st.shared.u32 [s], %r0; bar.sync 0; ret; }\n",
	PTX_HEAD ".visible .entry wrong(.param .u64 p) { .reg .b32 %r<3>; add.q32 %r0,%r0; ret }\n", "", ".",
	"//\n",
	"\177ELF", "!<arch>\n"};
enum { TEXTS = sizeof texts / sizeof *texts, GOOD = 4 /* the first ones */ };

static unsigned some_text(void)
{
	return random_below(random_below(8) ? GOOD : TEXTS);
}

/* What goes into entries, packed once. */
struct payload {
	char *bytes;
	size_t n, unpacked;
};
static struct payload pool[TEXTS][WAYS], bomb[WAYS];

static struct payload pack(int way, const char *text, size_t n)
{
	struct payload p = {.unpacked = n};
	size_t room = way == LZ4 ? (size_t)LZ4_compressBound((int)n) : way == ZSTD ? ZSTD_compressBound(n) :
			n;
	p.bytes = malloc(room + 1);
	CHECK(p.bytes);
	if (way == STORED)
		memcpy(p.bytes, text, p.n = n);
	else if (way == LZ4)
		p.n = (size_t)LZ4_compress_default(text, p.bytes, (int)n, (int)room);
	else
		p.n = ZSTD_compress(p.bytes, room, text, n, 1);
	return p;
}

static void fill_pool(void)
{
	for (int t = 0; t < TEXTS; t++)
		for (int w = 0; w < WAYS; w++)
			pool[t][w] = pack(w, texts[t], strlen(texts[t]) + 1);
	char *spaces = malloc(BOMB);
	CHECK(spaces);
	memset(spaces, ' ', BOMB);
	bomb[ZSTD] = pack(ZSTD, spaces, BOMB);
	bomb[LZ4] = pack(LZ4, spaces, MAX_IMAGE * 32); /* LZ4 shrinks by 255 at best */
	free(spaces);
}

/* Numbers that mean something somewhere. */
static uint64_t a_word(size_t n)
{
	static const uint64_t w[] = {0, 1, 2, 3, 7, 8, 15, 16, 63, 64, 65, 75, 80, 255, 256, 4096, 0x7fff,
			0xffff, 0x10000,
		0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000,
		~0ull,
		0x466243b1, 0xba55ed50, FLAG_LZ4, FLAG_ZSTD, FLAG_LZ4 | FLAG_ZSTD, 1ull << 62,
		1ull << 62 | FLAG_ZSTD,
		BOMB, 64 << 20, (64 << 20) + 1};
	switch (random_below(4)) {
	case 0: return random_below(2) ? n - random_below(70) : n + random_below(70);
	case 1: return random_below(300);
	default: return w[random_below(sizeof w / sizeof *w)];
	}
}

static size_t append(char *to, size_t n, const void *what, size_t len)
{
	if (len > MAX_IMAGE - n)
		return n;
	memcpy(to + n, what, len);
	return n + len;
}

static size_t build(char *to, unsigned depth);

/* One entry behind n bytes of a fat binary. */
static size_t build_entry(char *to, size_t n, unsigned depth)
{
	unsigned t = some_text(), way = random_below(WAYS);
	struct payload p = pool[t][way], own = {0};
	static char nested[3][MAX_IMAGE];
	unsigned what = random_below(64);
	if (what == 0 && way != STORED && !random_below(64)) {
		p = bomb[way];
	} else if (what < 4) { /* a text that was changed before it was packed */
		char text[2048];
		size_t len = strlen(texts[t]);
		memcpy(text, texts[t], len + 1);
		for (unsigned k = 1 + random_below(3); len && k; k--)
			text[random_below((uint32_t)len)] = (char)random_below(256);
		p = own = pack((int)way, text, random_below(2) ? len : len + 1);
	} else if (what < 10 && depth < 2) {
		way = STORED;
		p = (struct payload){.bytes = nested[depth]};
		p.n = p.unpacked = build(nested[depth], depth + 1);
	} else if (what < 12) { /* several of our own linker's */
		char *two = nested[2];
		size_t len = append(two, 0, texts[1], strlen(texts[1]) + 1);
		len = append(two, len, texts[2], strlen(texts[2]) + 1);
		p = (struct payload){two, len, len};
		way = WAYS;
	}
	static const unsigned sm[] = {50, 70, 75, 75, 75, 80, 90, 120};
	struct entry e = {.kind = (uint16_t)(random_below(4) ? 1 : 1 + random_below(3)),
		.unknown = 0x0101,
		.header = sizeof e,
		.bytes = (p.n + 7) & ~(size_t)7,
		.sm = sm[random_below(sizeof sm / sizeof *sm)],
		.flags = 0x11};
	e.flags |= way == LZ4 ? FLAG_LZ4 : way == ZSTD ? FLAG_ZSTD : way == WAYS ? 1ull << 62 : 0;
	if (way == LZ4 || way == ZSTD) {
		e.packed = (uint32_t)p.n;
		e.unpacked = p.unpacked;
	}
	if (n + sizeof e + e.bytes <= MAX_IMAGE) {
		n = append(to, n, &e, sizeof e);
		n = append(to, n, p.bytes, p.n);
		n = append(to, n, "\0\0\0\0\0\0\0", e.bytes - p.n);
	}
	free(own.bytes);
	return n;
}

static size_t build_fatbin(char *to, unsigned depth)
{
	struct fatbin f = {IMAGE_FATBIN_MAGIC, 1, sizeof f, 0};
	size_t n = append(to, 0, &f, sizeof f);
	for (unsigned k = random_below(8) ? 1 + random_below(3) : random_below(8); k; k--)
		n = build_entry(to, n, depth);
	f.bytes = n - sizeof f;
	memcpy(to, &f, sizeof f);
	return n;
}

/* An ELF file with two sections and one segment. */
static size_t build_elf(char *to)
{
	static unsigned char h[64 + 56 + 2 * 64 + 64];
	const uint64_t phoff = 64, shoff = 64 + 56, body = shoff + 2 * 64, bytes = 64;
	memcpy(h, "\177ELF\2\1\1", 7);
	h[16] = 2;
	h[18] = 190; /* the machine: CUDA */
	h[49] = 75;
	memcpy(h + 32, &phoff, 8);
	memcpy(h + 40, &shoff, 8);
	h[52] = 64, h[54] = 56, h[56] = 1, h[58] = 64, h[60] = 2;
	for (unsigned s = 0; s < 2; s++) {
		memcpy(h + shoff + s * 64 + 24, &body, 8);
		memcpy(h + shoff + s * 64 + 32, &bytes, 8);
		h[shoff + s * 64 + 4] = (unsigned char)(s ? 8 : 1);
	}
	memcpy(h + phoff + 8, &body, 8);
	memcpy(h + phoff + 32, &bytes, 8);
	return append(to, 0, h, sizeof h);
}

static size_t build(char *to, unsigned depth)
{
	unsigned t = some_text();
	switch (random_below(16)) {
	case 0: return build_elf(to);
	case 1: return append(to, 0, texts[t], strlen(texts[t]) + random_below(2));
	case 2: { /* a wrapper where none may be: its addresses are the client's */
		uint64_t w[4] = {1ull << 32 | IMAGE_WRAPPER_MAGIC, random_below(2) ? 8 : a_word(MAX_IMAGE), 0,
				0};
		return append(to, 0, w, sizeof w);
	}
	case 3: { /* an archive, of the linker's */
		char head[61];
		size_t n = build_fatbin(to + 68, depth);
		snprintf(head, sizeof head, "%-16s%-12u%-6u%-6u%-8u%-10zu`\n", "part.o/", 0, 0, 0, 644, n);
		memcpy(to, "!<arch>\n", 8);
		memcpy(to + 8, head, 60);
		return n + 68 < MAX_IMAGE ? n + 68 : MAX_IMAGE;
	}
	default: return build_fatbin(to, depth);
	}
}

static size_t damage(char *s, size_t n)
{
	char tmp[256];
	size_t at = random_below((uint32_t)n), len = random_below(sizeof tmp);
	uint64_t w = a_word(n);
	if (len > n - at)
		len = n - at;
	memcpy(tmp, s + at, len);
	switch (random_below(10)) {
	case 0: s[at] ^= (char)(1 << random_below(8)); return n;
	case 1: return at; /* cut */
	case 2: /* a piece is gone */
		memmove(s + at, s + at + len, n - at - len);
		return n - len;
	case 3: /* or stands twice */
		if (n + len > MAX_IMAGE)
			return n;
		memmove(s + at + len, s + at, n - at);
		memcpy(s + at, tmp, len);
		return n + len;
	case 4: s[at] = (char)random_below(256); return n;
	case 5: at = random_below(16); break; /* the first header */
	case 6: at = 16 + random_below(64); break; /* the first entry's */
	default: { /* some entry's: they begin at multiples of eight */
		static const unsigned char field[] = {0, 2, 4, 8, 16, 20, 28, 40, 42, 56, 60};
		at = (at & ~(size_t)7) + field[random_below(sizeof field)];
	}
	}
	size_t width = (size_t)1 << random_below(4);
	if (at + width <= n)
		memcpy(s + at, &w, width);
	return n;
}

/* ---- what a client's image goes through */

static CUdeviceptr buffer;
static bool dead; /* a kernel stepped out, as a changed one may: nothing of the context works any more */

/* Success, as long as there is a context. */
#define SURE(call)                                                                                           \
	do {                                                                                                 \
		CUresult sure_ = (call);                                                                     \
		CHECK(!sure_ || dead);                                                                       \
	} while (0)

static void start(void)
{
	if (dead)
		OK(cuDevicePrimaryCtxReset_v2(0));
	dead = false;
	device_up();
	OK(cuMemAlloc_v2(&buffer, 1 << 16));
}

static void use(CUmodule m)
{
	CUfunction f[4];
	unsigned n = 0;
	const char *name;
	OK(cuModuleGetFunctionCount(&n, m));
	if (!n)
		return;
	OK(cuModuleEnumerateFunctions(f, 4, m));
	OK(cuFuncGetName(&name, f[0]));
	if (random_below(8))
		return;
	struct {
		CUdeviceptr p;
		unsigned v;
	} params = {buffer, 1};
	void *v[] = {&params.p, &params.v, &params, &params};
	size_t offset, size;
	for (unsigned k = 0; !cuFuncGetParamInfo(f[0], k, &offset, &size); k++)
		if (k == 2 || size > 8)
			return;
	if (!cuLaunchKernel(f[0], 1, 1, 1, 32, 1, 1, 0, NULL, v, NULL))
		dead = cuCtxSynchronize() != CUDA_SUCCESS;
}

static bool load(const void *code)
{
	char log[40];
	CUjit_option o[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	char *exact = malloc(sizeof log);
	CHECK(exact);
	void *v[] = {exact, (void *)(uintptr_t)random_below(sizeof log)};
	CUmodule m = NULL;
	CUlibrary l = NULL;
	bool library = random_below(2);
	CUresult r = library ? cuLibraryLoadData(&l, code, o, v, 2, NULL, NULL, 0)
			     : cuModuleLoadDataEx(&m, code, 2, o, v);
	if (!r && library && !cuLibraryGetModule(&m, l))
		use(m);
	else if (!r && m)
		use(m);
	if (!r)
		SURE(library ? cuLibraryUnload(l) : cuModuleUnload(m));
	free(exact);
	return !r;
}

/* A copy with nothing behind it but what the server puts there. */
static char *exact_copy(const char *s, size_t n, size_t tail)
{
	char *p = aligned_alloc(8, (n + tail + 7) & ~(size_t)7);
	CHECK(p);
	/* at the end, so that the first byte behind is not ours; images lie anywhere */
	size_t shift = tail ? 0 : ((n + 7) & ~(size_t)7) - n;
	memcpy(p + shift, s, n);
	memset(p + shift + n, 0, tail);
	return p;
}

/* As server/image.c does it: nothing that is not whole reaches the driver. */
static bool load_whole(const char *s, size_t n)
{
	if (!image_whole(s, n))
		return false;
	char *p = exact_copy(s, n, IMAGE_TAIL);
	bool ok = load(p);
	free(p);
	return ok;
}

static bool load_wrapped(const char *s, const size_t *size, unsigned parts)
{
	char *p[MAX_PARTS + 1] = {0};
	const void *extra[MAX_PARTS + 1] = {0};
	bool whole = true, ok = false;
	unsigned k = 0;
	for (size_t at = 0; k < parts; at += size[k++]) {
		whole &= image_fatbin_whole(s + at, size[k]);
		p[k] = exact_copy(s + at, size[k], IMAGE_TAIL);
		if (k)
			extra[k - 1] = p[k];
	}
	struct image_wrapper w = {IMAGE_WRAPPER_MAGIC, parts > 1 ? 2 : 1, p[0], parts > 1 ? extra : NULL};
	if (whole)
		ok = load(&w);
	while (k)
		free(p[--k]);
	return ok;
}

static bool link_it(const char *s, const size_t *size, unsigned parts)
{
	CUlinkState l;
	void *out;
	size_t n = 0, at = 0;
	bool ok = true;
	OK(cuLinkCreate_v2(0, NULL, NULL, &l));
	for (unsigned k = 0; k < parts; at += size[k++]) {
		static const CUjitInputType types[] = {CU_JIT_INPUT_FATBINARY, CU_JIT_INPUT_PTX,
				CU_JIT_INPUT_OBJECT,
			CU_JIT_INPUT_LIBRARY, CU_JIT_INPUT_CUBIN, CU_JIT_INPUT_NVVM};
		if (size[k] >= 4 && u32(s + at) == IMAGE_WRAPPER_MAGIC)
			continue; /* refused by the server, addresses of the client's */
		char *p = exact_copy(s + at, size[k], 0);
		unsigned type = random_below(12);
		ok &= !cuLinkAddData_v2(l, types[type < 6 ? type : 0],
				p + (((size[k] + 7) & ~(size_t)7) - size[k]),
			size[k], "part", 0, NULL, NULL);
		free(p);
	}
	bool done = !cuLinkComplete(l, &out, &n);
	if (done) { /* what comes out is good, and stays so without what went in */
		CUmodule m;
		OK(cuModuleLoadData(&m, out));
		use(m);
		SURE(cuModuleUnload(m));
		if (!dead)
			ok &= load_whole(out, n);
	}
	SURE(cuLinkDestroy(l));
	return ok && done;
}

static bool round_of(char *s)
{
	size_t size[MAX_PARTS], n = 0;
	unsigned parts = random_below(3) ? 1 : 1 + random_below(MAX_PARTS);
	for (unsigned k = 0; k < parts; k++) {
		char *one = s + n;
		size[k] = build(one, 0);
		for (unsigned d = random_below(2) ? random_below(4) : 0; d && size[k]; d--)
			size[k] = damage(one, size[k]);
		n += size[k];
	}
	rounds_keep(s, n);
	bool ok = parts == 1 && load_whole(s, n);
	if (!dead)
		ok |= load_wrapped(s, size, parts);
	if (!dead)
		ok |= link_it(s, size, parts);
	return ok;
}

int main(int argc, char **argv)
{
	setenv("SCUDAFS_LOG", "error", 0);
	setenv("SCUDAFS_SOFT_WORKERS", "1", 0);
	setenv("SCUDAFS_SOFT_MEMORY", "256M", 0);
	setenv("SCUDAFS_SOFT_TIME_LIMIT", "1", 0);
	start();
	fill_pool();
	char *s = malloc((size_t)MAX_IMAGE * (MAX_PARTS + 1));
	CHECK(s);
	struct rounds r = rounds_begin(argc > 1 ? argv[1] : NULL);
	while (rounds_next(&r)) {
		rounds_start(&r);
		rounds_end(&r, round_of(s));
		if (dead)
			start();
	}
	free(s);
	rounds_report(&r, "images");
	CHECK(r.accepted > r.count / 4 || r.count < 1000); /* or the mutation says nothing */
	return 0;
}
