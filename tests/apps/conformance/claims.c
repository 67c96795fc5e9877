/* SPDX-License-Identifier: Apache-2.0 */
/* What a program sees of device asserts and device printf: the text, on which of its outputs, in which order,
 * and at which call. Its standard error is a file here, so that its lines are told with the others. */
#include "check.h"

#define HEAD ".version 7.5\n.target sm_75\n.address_size 64\n"
#define ASSERTFAIL \
	".extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, " \
	".param .b64 e);\n"
#define CALL(what, file, line, function) \
	" mov.u64 %p0, " what "; cvta.global.u64 %p1, %p0; mov.u64 %p0, " file "; cvta.global.u64 %p2, " \
	"%p0;\n" \
	" mov.u64 %p0, " function "; cvta.global.u64 %p3, %p0;\n" \
	" { .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e; st.param.b64 [a], " \
	"%p1; st.param.b64 [b], %p2;\n" \
	" st.param.b32 [c], " line "; st.param.b64 [d], %p3; st.param.b64 [e], 1; call.uni __assertfail, " \
	"(a, b, c, d, e); }\n"

static const char code[] =
	HEAD ASSERTFAIL
	".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
	/* x < 100 */
	".global .align 1 .b8 what[] = {120, 32, 60, 32, 49, 48, 48, 0};\n"
	/* /a/b.cu */
	".global .align 1 .b8 file[] = {47, 97, 47, 98, 46, 99, 117, 0};\n"
	/* void k(int) */
	".global .align 1 .b8 name[] = {118, 111, 105, 100, 32, 107, 40, 105, 110, 116, 41, 0};\n"
	".global .align 1 .b8 empty[] = {0};\n"
	/* "%s" != `\n'<newline>x */
	".global .align 1 .b8 odd[] = {34, 37, 115, 34, 32, 33, 61, 32, 96, 92, 110, 39, 10, 120, 0};\n"
	".global .align 1 .b8 hello[] = {104, 101, 108, 108, 111, 10, 0};\n"
	".visible .entry all(.param .u64 p) { .reg .b64 %p<4>;\n"
	CALL("what", "file", "42", "name") " ret; }\n"
	".visible .entry one(.param .u64 p) { .reg .b64 %p<4>; .reg .pred %q; .reg .b32 %r<2>; mov.u32 %r0, "
	"%tid.x; mov.u32 %r1, %ctaid.y;\n"
	" mad.lo.u32 %r0, %r1, 1000, %r0; setp.ne.u32 %q, %r0, 2033; @%q ret;\n"
	CALL("what", "file", "7", "name") " ret; }\n"
	".visible .entry no_names(.param .u64 p) { .reg .b64 %p<4>;\n"
	CALL("empty", "empty", "0", "empty") " ret; }\n"
	".visible .entry strange(.param .u64 p) { .reg .b64 %p<4>;\n"
	CALL("odd", "odd", "-1", "odd") " ret; }\n"
	".visible .entry says(.param .u64 p) { .reg .b64 %p<4>; mov.u64 %p0, hello; cvta.global.u64 %p1, "
	"%p0; mov.u64 %p2, 0;\n"
	" { .param .b64 f; .param .b64 v; .param .b32 r; st.param.b64 [f], %p1; st.param.b64 [v], %p2; "
	"call.uni (r), vprintf, (f, v); }\n"
	CALL("what", "file", "9", "name") " ret; }\n";

static int from;

static void told(const char *when)
{
	static char text[65536];
	ssize_t n;

	fflush(stdout);
	n = pread(2, text, sizeof text - 1, from);
	text[n > 0 ? n : 0] = 0;
	from += n > 0 ? (int)n : 0;
	SAY("%s:", when);
	for (char *at = text; *at;) {
		size_t k = strcspn(at, "\n");

		/* What the software device logs is no driver's. */
		printf("%s[%.*s]%s\n", strncmp(at, "scuda", 5) ? "" : "~ ", (int)k, at,
				at[k] ? "" : " without an end");
		at += k + (at[k] == '\n');
	}
}

static void claims(const char *name, unsigned blocks, unsigned rows, unsigned threads)
{
	char path[] = "/tmp/conformance-claims-XXXXXX";
	int fd = mkstemp(path);
	CUdeviceptr p;
	CUmodule m;
	CUfunction f;
	CUstream s;

	if (fd < 0 || dup2(fd, 2) < 0)
		exit(4);
	unlink(path);
	begin();
	p = zeroed(64);
	NEED(cuModuleLoadData(&m, code));
	NEED(cuModuleGetFunction(&f, m, name));
	NEED(cuFuncLoad(f));
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ASK(cuLaunchKernel(f, blocks, rows, 1, threads, 1, 1, 0, s, (void *[]){&p}, NULL));
	ASK(cuStreamSynchronize(s));
	told("synchronised");
	ASK(cuStreamSynchronize(s));
	ASK(cuMemFree(p));
	told("later");
	ASK(cuCtxSynchronize());
}

static void all(void) { claims("all", 1, 1, 1); }
static void one(void) { claims("one", 1, 4, 64); }
static void no_names(void) { claims("no_names", 1, 1, 1); }
static void strange(void) { claims("strange", 1, 1, 1); }
static void says(void) { claims("says", 1, 1, 1); }
static void warp(void) { claims("all", 1, 1, 4); }

SECTIONS({"all", all}, {"one", one}, {"no_names", no_names}, {"strange", strange}, {"says", says},
		{"warp", warp})
