/* SPDX-License-Identifier: Apache-2.0 */
/* What the linker takes: PTX, host objects and archives of them, whole and damaged; that nobody waits while
 * it reads; and what is told of an image that has no code.
 *
 * Thread rule: one thread adds a long text while the main thread calls. */
#include <elf.h>
#include <pthread.h>
#include <stdint.h>
#include <stdatomic.h>
#include "tests/soft/driver/test.h"

static const char caller[] = PTX_HEAD ".extern .func (.param .b32 r) twice(.param .b32 x);\n"
				      ".visible .entry go(.param .u64 p) { .reg .b32 %r<3>; .reg .b64 %d; "
				      "ld.param.u64 %d,[p]; ld.u32 %r0,[%d];\n"
				      " { .param .b32 a; .param .b32 b; st.param.b32 [a],%r0; call.uni (b), "
				      "twice, (a); ld.param.b32 %r1,[b]; }\n"
				      " st.u32 [%d],%r1; ret; }\n";
static const char callee[] = PTX_HEAD
	".visible .func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<2>; ld.param.b32 %r0,[x];\n"
	" shl.b32 %r1,%r0,1; st.param.b32 [r],%r1; ret; }\n";

/* A fat binary with one entry: 1 is PTX, 2 machine code. */
static size_t fatbin(char *to, uint16_t kind, const char *text)
{
	uint64_t n = (strlen(text) + 8) & ~7ull, whole = 64 + n;
	uint32_t magic = 0xba55ed50, header = 64, sm = 75;
	memset(to, 0, 16 + whole);
	memcpy(to, &magic, 4);
	to[4] = 1;
	to[6] = 16;
	memcpy(to + 8, &whole, 8);
	memcpy(to + 16, &kind, 2);
	memcpy(to + 16 + 4, &header, 4);
	memcpy(to + 16 + 8, &n, 8);
	memcpy(to + 16 + 28, &sm, 4);
	memcpy(to + 16 + 64, text, strlen(text));
	return 16 + whole;
}

/* A host object whose section `name` holds the fat binary. */
static size_t host_object(char *to, const char *name, uint16_t kind, const char *text)
{
	Elf64_Ehdr h = {.e_type = ET_REL,
		.e_machine = EM_X86_64,
		.e_version = 1,
		.e_ehsize = sizeof h,
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 3,
		.e_shstrndx = 1};
	Elf64_Shdr s[3] = {0};
	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	size_t at = sizeof h, names = at;
	memset(to + at, 0, 32);
	strcpy(to + at + 1, name);
	at += 32;
	s[1] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = 32};
	s[2] = (Elf64_Shdr){.sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = at};
	memset(to + at, 0, 8);
	s[2].sh_size = 8 + fatbin(to + at + 8, kind, text); /* behind what aligns it */
	h.e_shoff = at + s[2].sh_size;
	memcpy(to, &h, sizeof h);
	memcpy(to + h.e_shoff, s, sizeof s);
	return h.e_shoff + sizeof s;
}

static size_t member(char *to, const char *name, const char *data, size_t n)
{
	char head[64];
	snprintf(head, sizeof head, "%-16s%-12d%-6d%-6d%-8s%-10zu`\n", name, 0, 0, 0, "644", n);
	memcpy(to, head, 60);
	memcpy(to + 60, data, n);
	if (n & 1)
		to[60 + n] = '\n';
	return 60 + n + (n & 1);
}

static size_t archive(char *to, const char *section, uint16_t kind)
{
	static char one[8192];
	size_t n = 8;
	memcpy(to, "!<arch>\n", 8);
	n += member(to + n, "/", "symbols", 7);
	n += member(to + n, "host.o/", "no device code, nor even an object, in this one", 47);
	return n + member(to + n, "twice.o/", one, host_object(one, section, kind, callee));
}

static char errors[256];
static CUlinkState started(void)
{
	static CUjit_option o[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	static void *v[] = {errors, NULL}; /* written to as long as the link lives */
	CUlinkState l;
	v[1] = (void *)sizeof errors;
	OK(cuLinkCreate_v2(2, o, v, &l));
	OK(cuLinkAddData_v2(
		l, CU_JIT_INPUT_PTX, (void *)(uintptr_t)caller, sizeof caller, "caller", 0, NULL, NULL));
	return l;
}

/* A kernel that calls a function of another text, which is in this. */
static void runs_with(CUjitInputType type, const void *data, size_t size)
{
	CUlinkState l = started();
	CUmodule m;
	CUfunction f;
	CUdeviceptr p;
	void *image;
	size_t n;
	IS(cuLinkComplete(l, &image, &n), CUDA_ERROR_INVALID_SOURCE);
	CHECK(!strcmp(errors, "error   : Undefined reference to 'twice' in 'caller'"));
	IS(cuLinkAddData_v2(l, type, (void *)(uintptr_t)data, size, "library", 0, NULL, NULL),
		CUDA_ERROR_INVALID_VALUE);
	OK(cuLinkDestroy(l));
	l = started();
	OK(cuLinkAddData_v2(l, type, (void *)(uintptr_t)data, size, "library", 0, NULL, NULL));
	OK(cuLinkComplete(l, &image, &n));
	void *copy = malloc(n); /* the image needs nothing of the linker's */
	CHECK(copy);
	memcpy(copy, image, n);
	OK(cuLinkDestroy(l));
	OK(cuModuleLoadData(&m, copy));
	free(copy);
	OK(cuModuleGetFunction(&f, m, "go"));
	OK(cuMemAlloc_v2(&p, 4));
	OK(cuMemsetD32_v2(p, 21, 1));
	OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){&p}, NULL));
	CHECK(word(p) == 42);
	OK(cuMemFree_v2(p));
	OK(cuModuleUnload(m));
}

static CUresult taken(CUjitInputType type, void *data, size_t size)
{
	CUlinkState l = started();
	CUresult r = cuLinkAddData_v2(l, type, data, size, "library", 0, NULL, NULL);
	OK(cuLinkDestroy(l));
	return r;
}

static void inputs(void)
{
	static char data[16384];
	size_t n = host_object(data, "__nv_relfatbin", 1, callee);
	runs_with(CU_JIT_INPUT_PTX, callee, sizeof callee);
	runs_with(CU_JIT_INPUT_OBJECT, data, n);
	n = host_object(data, ".nv_fatbin", 1, callee);
	runs_with(CU_JIT_INPUT_OBJECT, data, n);
	n = archive(data, "__nv_relfatbin", 1);
	runs_with(CU_JIT_INPUT_LIBRARY, data, n);
	/* Cut off anywhere, it is refused or holds less; nothing is read beyond its end. */
	for (size_t cut = 1; cut < n; cut++) {
		char *part = malloc(cut);
		CHECK(part);
		memcpy(part, data, cut);
		CUresult r = taken(CU_JIT_INPUT_LIBRARY, part, cut);
		CHECK(r == CUDA_SUCCESS || r == CUDA_ERROR_INVALID_IMAGE);
		free(part);
	}
	n = archive(data, "__nv_relfatbin", 2);
	IS(taken(CU_JIT_INPUT_LIBRARY, data, n), CUDA_ERROR_NO_BINARY_FOR_GPU);
	n = archive(data, ".text", 1);
	OK(taken(CU_JIT_INPUT_LIBRARY, data, n));
	IS(taken(CU_JIT_INPUT_LIBRARY, (char[]){"no library"}, 11), CUDA_ERROR_INVALID_IMAGE);
}

/* ---- nobody waits for a text that is read */

static char *long_text;
static size_t long_size;
static atomic_bool adding;
static CUcontext context;

static void *adder(void *l)
{
	OK(cuCtxSetCurrent(context));
	OK(cuLinkAddData_v2(l, CU_JIT_INPUT_PTX, long_text, long_size, "long", 0, NULL, NULL));
	adding = false;
	return NULL;
}

static void unhindered(void)
{
	static const char begin[] = PTX_HEAD ".visible .entry slow() { .reg .b32 %r<3>;\n",
			  line[] = " add.u32 %r0, %r1, %r2;\n", end[] = " ret; }\n";
	size_t lines = 300000, n = strlen(begin), each = strlen(line);
	CUlinkState l;
	CUcontext c;
	pthread_t t;
	void *image;
	unsigned calls = 0;
	long_size = n + lines * each + strlen(end); /* no byte behind it */
	long_text = malloc(long_size);
	CHECK(long_text);
	memcpy(long_text, begin, n);
	for (size_t i = 0; i < lines; i++, n += each)
		memcpy(long_text + n, line, each);
	memcpy(long_text + n, end, strlen(end));
	OK(cuCtxGetCurrent(&context));
	OK(cuLinkCreate_v2(0, NULL, NULL, &l));
	adding = true;
	CHECK(!pthread_create(&t, NULL, adder, l));
	while (adding) {
		OK(cuCtxGetCurrent(&c));
		calls++;
	}
	CHECK(!pthread_join(t, NULL));
	CHECK(calls > 1000);
	/* One link is one thread's at a time; the others wait. */
	IS(cuLinkComplete(l, NULL, &n), CUDA_ERROR_INVALID_VALUE);
	OK(cuLinkComplete(l, &image, &n));
	OK(cuLinkDestroy(l));
	IS(cuLinkDestroy(l), CUDA_ERROR_INVALID_HANDLE);
	free(long_text);
}

/* ---- what is told of it */

static void wall_time(void)
{
	char log[256] = "";
	CUjit_option o[] = {CU_JIT_WALL_TIME, CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	void *v[] = {NULL, log, (void *)sizeof log};
	float ms;
	CUmodule m;
	OK(cuModuleLoadDataEx(&m, add_ptx, 3, o, v));
	memcpy(&ms, &v[0], sizeof ms);
	CHECK(ms > 0 && ms < 10000);
	OK(cuModuleUnload(m));
	v[2] = (void *)sizeof log;
	IS(cuModuleLoadDataEx(&m, PTX_HEAD ".visible .entry k() {\n wrong.u32; }", 3, o, v),
		CUDA_ERROR_INVALID_PTX);
	CHECK(strstr(log, "ptxas application ptx input, line 5; error   : ") == log);
	CHECK(strstr(log, "\nptxas fatal   : Ptx assembly aborted due to errors"));
	v[2] = (void *)sizeof log;
	IS(cuModuleLoadDataEx(&m, PTX_HEAD ".visible .entry k() {\n\n mov.u32 %r0, 1; }", 3, o, v),
		CUDA_ERROR_INVALID_PTX);
	CHECK(strstr(log, "ptxas application ptx input, line 6; error   : ") == log);
}

/* Beside what tests/apps/conformance/logs.c compares: what right texts may say, and weak names. */
static void right_and_wrong(void)
{
	static const char *const right[] = {
		".reg .b16 %h<3>; shl.b16 %h0,%h1,%r0;",
		"mul.wide.u32 %d,%r0,%r1;",
		"mad.wide.s32 %d,%r0,3,%d;",
		"mov.b64 %d,{%r0,%r1};",
		"and.pred %p,%p,%p;",
		"popc.b64 %r0,%d;",
		"selp.b64 %d,%d,1,%p;",
		"max.u32 %r0,%r1,2;",
	};
	static const char *const wrong[] = {
		"mul.wide.u32 %r0,%r0,%r1;",
		"popc.b64 %d,%d;",
		"mov.u32 %p,1;",
		"selp.b32 %r0,%r1,%r1,%r1;",
		"add.u32 %r0;",
		"add %r0,%r1,%r1;",
	};
	static const char weak[] = PTX_HEAD ".weak .func f { ret; }\n";
	char text[512];
	CUlinkState l;
	CUmodule m;
	for (size_t i = 0; i < sizeof right / sizeof *right + sizeof wrong / sizeof *wrong; i++) {
		size_t n = sizeof right / sizeof *right;
		snprintf(text, sizeof text,
			PTX_HEAD ".visible .entry k() { .reg .b32 %%r<2>; .reg .b64 %%d; .reg .pred %%p;\n"
				 "%s ret; }\n",
			i < n ? right[i] : wrong[i - n]);
		IS(cuModuleLoadData(&m, text), i < n ? CUDA_SUCCESS : CUDA_ERROR_INVALID_PTX);
		if (i < n)
			OK(cuModuleUnload(m));
	}
	OK(cuLinkCreate_v2(0, NULL, NULL, &l));
	for (int i = 0; i < 2; i++)
		OK(cuLinkAddData_v2(
			l, CU_JIT_INPUT_PTX, (void *)(uintptr_t)weak, sizeof weak, "weak", 0, NULL, NULL));
	OK(cuLinkDestroy(l));
}

static void no_code(void)
{
	static const uint32_t nothing[4] = {0xba55ed50u, 0x00100001u, 0, 0};
	CUlibrary l;
	CUkernel k;
	OK(cuLibraryLoadData(&l, nothing, NULL, NULL, 0, NULL, NULL, 0));
	IS(cuLibraryGetKernel(&k, l, "add"), CUDA_ERROR_NO_BINARY_FOR_GPU);
	OK(cuLibraryUnload(l));
}

static unsigned told;
static void listens(void *data, CUlogLevel level, char *text, size_t n)
{
	CUdeviceptr p;
	(void)level;
	told++;
	CHECK(*(int *)data == 5 && strlen(text) == n && !strncmp(text, "kernel add ", 11));
	OK(cuMemAlloc_v2(&p, 4)); /* a callback may call */
	OK(cuMemFree_v2(p));
}

static void listener(void)
{
	CUlogsCallbackHandle h;
	int five = 5;
	CUfunction f = function(add_ptx, "add");
	OK(cuLogsRegisterCallback(listens, &five, &h));
	IS(cuLaunchKernel(f, 1, 1, 1, 5000, 1, 1, 0, NULL, (void *[]){&five, &five}, NULL),
		CUDA_ERROR_INVALID_VALUE);
	CHECK(told == 1);
	OK(cuLogsUnregisterCallback(h));
}

int main(void)
{
	setenv("SCUDAFS_LOG", "error", 1); /* it is told of thousands of damaged archives */
	device_up();
	inputs();
	unhindered();
	wall_time();
	right_and_wrong();
	no_code();
	listener();
	puts("PASS linking");
	return 0;
}
