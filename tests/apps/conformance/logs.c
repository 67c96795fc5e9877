/* SPDX-License-Identifier: Apache-2.0 */
/* The logs of the driver's compiler and linker: which line of a text is wrong, and how the log ends; what is
 * written of one that does not fit its room; which values of options are refused. */
#include "check.h"

#define HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"

static const struct {
	const char *name, *text;
} wrong[] = {
	{"nothing", ""},
	{"no text", "hello"},
	{"no version", ".target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n"},
	{"version too new", ".version 99.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n"},
	{"target unknown", ".version 7.5\n.target sm_999\n.address_size 64\n.visible .entry k() { ret; }\n"},
	{"instruction", HEAD ".visible .entry k() {\n wrong.instruction;\n ret; }\n"},
	{"type", HEAD ".visible .entry k() {\n .reg .b32 %r<2>;\n add.q32 %r0, %r1, %r1;\n ret; }\n"},
	{"register", HEAD ".visible .entry k() {\n .reg .b32 %r<2>;\n\n mov.u32 %r0, %r7;\n ret; }\n"},
	{"label", HEAD ".visible .entry k() {\n bra nowhere;\n ret; }\n"},
	{"function", HEAD ".visible .entry k() {\n call.uni nobody;\n ret; }\n"},
	{"twice", HEAD ".visible .entry k() { ret; }\n.visible .entry k() { ret; }\n"},
	{"semicolon", HEAD ".visible .entry k() {\n .reg .b32 %r<2>;\n mov.u32 %r0, 1\n ret; }\n"},
	{"brace", HEAD ".visible .entry k() {\n ret;\n"},
	{"width", HEAD ".visible .entry k() {\n .reg .b64 %p;\n mov.u32 %p, 1;\n ret; }\n"},
	{"operands", HEAD ".visible .entry k() {\n .reg .b32 %r<2>;\n add.u32 %r0, %r1;\n ret; }\n"},
	{"two of them", HEAD ".visible .entry k() {\n bra nowhere;\n bra nobody;\n ret; }\n"},
	{"unresolved", HEAD ".extern .func other;\n.visible .entry k() {\n call.uni other;\n ret; }\n"},
};

/* Words are the compiler's own, and its version's: which line it speaks of first, and how it ends, is
 * compared. */
static void tell(const char *log)
{
	const char *line = strstr(log, "line "), *last = log;

	SAY("of line %d", line ? atoi(line + 5) : 0);
	for (const char *at = log; *at; at += strcspn(at, "\n"), at += *at == '\n')
		last = at;
	vary(log);
	SAY("aborted %d, ends with a newline %d",
		!strncmp(last, "ptxas fatal   : Ptx assembly aborted due to errors", 50),
		*log && log[strlen(log) - 1] == '\n');
}

static void texts(void)
{
	static char info[4096], error[4096];
	CUjit_option o[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	CUmodule m;

	begin();
	for (size_t i = 0; i < COUNT(wrong); i++) {
		void *v[] = {info, (void *)sizeof info, error, (void *)sizeof error};
		CUresult r;

		memset(info, 0, sizeof info);
		memset(error, 0, sizeof error);
		r = cuModuleLoadDataEx(&m, wrong[i].text, COUNT(o), o, v);
		SAY("- %s -> %s", wrong[i].name, name_of(r));
		SAY("sizes right %d %d", (size_t)v[1] == strlen(info), (size_t)v[3] == strlen(error));
		printf("~ sizes %zu %zu, %zu %zu\n", (size_t)v[1], strlen(info), (size_t)v[3], strlen(error));
		tell(error);
		vary(info);
	}
}

/* A room too small for the log: how many bytes are written, and what the size says. */
static void rooms(void)
{
	static char room[512];
	CUjit_option o[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
	static const size_t sizes[] = {0, 1, 2, 8, 16, 40, 512};
	CUmodule m;

	begin();
	for (size_t i = 0; i < COUNT(sizes); i++) {
		void *v[] = {room, (void *)sizes[i]};
		size_t written = sizeof room, n = sizes[i];
		CUresult r;

		memset(room, 'x', sizeof room);
		r = cuModuleLoadDataEx(&m, wrong[5].text, 2, o, v);
		while (written && room[written - 1] == 'x')
			written--;
		SAY("room %zu -> %s, ended %d", n, name_of(r), n && memchr(room, 0, n) != NULL);
		if (n < 100)
			SAY("size told %zu, bytes written %zu", (size_t)v[1], written);
		else
			SAY("size told %d", (size_t)v[1] == strlen(room));
		printf("~ %zu bytes written, %zu of text\n", written, n ? strnlen(room, n) : 0);
		printf("~ [%.*s]\n", (int)(n ? strnlen(room, n) : 0), room);
	}
}

static void links(void)
{
	static char info[4096], error[4096];
	static const char *const inputs[] = {HEAD ".visible .entry k() {\n wrong.instruction;\n ret; }\n",
		HEAD ".extern .func nobody;\n.visible .entry k() {\n call.uni nobody;\n ret; }\n",
		HEAD ".visible .func twofold { ret; }\n.visible .entry k() { ret; }\n"};
	CUjit_option o[] = {CU_JIT_INFO_LOG_BUFFER, CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
		CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_LOG_VERBOSE};

	begin();
	for (size_t i = 0; i < COUNT(inputs); i++) {
		void *v[] = {info, (void *)sizeof info, error, (void *)sizeof error, (void *)1};
		CUlinkState l;
		void *image;
		size_t n;

		memset(info, 0, sizeof info);
		memset(error, 0, sizeof error);
		NEED(cuLinkCreate(COUNT(o), o, v, &l));
		SAY("- %zu", i);
		if (!ASK(cuLinkAddData(l, CU_JIT_INPUT_PTX, (void *)(uintptr_t)inputs[i],
			    strlen(inputs[i]) + 1, "an input", 0, NULL, NULL))) {
			if (i == 2)
				ASK(cuLinkAddData(l, CU_JIT_INPUT_PTX, (void *)(uintptr_t)inputs[i],
					strlen(inputs[i]) + 1, NULL, 0, NULL, NULL));
			ASK(cuLinkComplete(l, &image, &n));
		}
		SAY("sizes right %d %d", (size_t)v[1] == strlen(info), (size_t)v[3] == strlen(error));
		printf("~ sizes %zu %zu, %zu %zu\n", (size_t)v[1], strlen(info), (size_t)v[3], strlen(error));
		tell(error);
		vary(info);
		ASK(cuLinkDestroy(l));
	}
}

/* Each option alone, with a value that is right, and one that is not. */
static void options(void)
{
	static const struct {
		CUjit_option o;
		const char *name;
		uintptr_t good, bad;
	} each[] = {{CU_JIT_MAX_REGISTERS, "registers", 32, 100000},
		{CU_JIT_THREADS_PER_BLOCK, "threads", 128, 5000}, {CU_JIT_OPTIMIZATION_LEVEL, "level", 2, 9},
		{CU_JIT_TARGET, "target", 75, 31},
		{CU_JIT_FALLBACK_STRATEGY, "fallback", CU_PREFER_BINARY, 77},
		{CU_JIT_GENERATE_DEBUG_INFO, "debug", 1, 77}, {CU_JIT_LOG_VERBOSE, "verbose", 1, 77},
		{CU_JIT_GENERATE_LINE_INFO, "lines", 1, 77},
		{CU_JIT_CACHE_MODE, "cache", CU_JIT_CACHE_OPTION_CG, 77}, {CU_JIT_LTO, "lto", 0, 77},
		{CU_JIT_FTZ, "ftz", 1, 77}, {CU_JIT_PREC_DIV, "div", 1, 77},
		{CU_JIT_PREC_SQRT, "sqrt", 1, 77}, {CU_JIT_FMA, "fma", 1, 77},
		{CU_JIT_POSITION_INDEPENDENT_CODE, "position", 1, 77},
		{CU_JIT_MIN_CTA_PER_SM, "blocks", 2, 100000},
		{CU_JIT_MAX_THREADS_PER_BLOCK, "most threads", 256, 5000},
		{CU_JIT_OVERRIDE_DIRECTIVE_VALUES, "override", 1, 77},
		{CU_JIT_SPLIT_COMPILE, "split", 1, (uintptr_t)-7}, {(CUjit_option)99, "unknown", 0, 1}};
	CUmodule m;
	CUlinkState l;

	begin();
	for (size_t i = 0; i < COUNT(each); i++)
		for (int bad = 0; bad < 2; bad++) {
			CUjit_option o[] = {each[i].o};
			void *v[] = {(void *)(bad ? each[i].bad : each[i].good)};
			CUresult r = cuModuleLoadDataEx(&m, kernels, 1, o, v);

			SAY("%s %s: module -> %s", each[i].name, bad ? "bad" : "good", name_of(r));
			if (!r)
				NEED(cuModuleUnload(m));
			v[0] = (void *)(bad ? each[i].bad : each[i].good);
			r = cuLinkCreate(1, o, v, &l);
			SAY("%s %s: linker -> %s", each[i].name, bad ? "bad" : "good", name_of(r));
			if (!r)
				NEED(cuLinkDestroy(l));
		}
}

SECTIONS({"texts", texts}, {"rooms", rooms}, {"links", links}, {"options", options})
