/* SPDX-License-Identifier: Apache-2.0 */
/* check_mutate COUNT[:FIRST] FILE.ptx ...: PTX arrives from a client, so whatever the text is, the engine
 * must read, decode and run it or say no, in bounded time and memory. Input number n, which depends on n and
 * the files alone, is a text changed in a few places, with pieces of the other texts in it; it is loaded, its
 * kernels are decoded, and some of them run. A file with many kernels counts as many texts of one kernel
 * each. tests/soft/mutate.h says who watches.
 *
 * Thread rule: one thread; the engine has its own workers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/engine.h"
#include "server/soft/memory.h"
#include "tests/soft/mutate.h"

enum {
	MAX_FILE = 16 << 20,
	MAX_TEXT = 1 << 20,
	MAX_PIECES = 1 << 16,
	BUFFER = 1 << 16,
	LARGE = 32 << 10, /* from here on a file is taken kernel by kernel */
	MAX_KERNELS = 2, /* that run */
};

/* A text is a head that all kernels of its file have, and a body. */
struct piece {
	const char *head, *body;
	size_t head_n, n;
};
static struct piece pieces[MAX_PIECES];
static uint32_t npieces;

static bool is_break(char c)
{
	return c && strchr(" \t\n,;[]{}()", c);
}

/* The start of a token near a random place. */
static size_t token(const char *s, size_t n)
{
	size_t i = random_below((uint32_t)n);
	while (i < n && is_break(s[i]))
		i++;
	while (i > 0 && !is_break(s[i - 1]))
		i--;
	return i;
}

static size_t token_end(const char *s, size_t n, size_t i)
{
	while (i < n && !is_break(s[i]))
		i++;
	return i;
}

static size_t replace(char *s, size_t n, size_t from, size_t to, const char *with, size_t len)
{
	if (n - (to - from) + len > MAX_TEXT)
		return n;
	memmove(s + from + len, s + to, n - to);
	memcpy(s + from, with, len);
	return n - (to - from) + len;
}

/* A line or a token of any text. */
static size_t other(char *to, size_t room, bool line)
{
	const struct piece *p = &pieces[random_below(npieces)];
	size_t a, e;
	if (line) {
		a = random_below((uint32_t)p->n);
		while (a > 0 && p->body[a - 1] != '\n')
			a--;
		e = a;
		while (e < p->n && p->body[e] != '\n')
			e++;
	} else {
		a = token(p->body, p->n);
		e = token_end(p->body, p->n, a);
	}
	size_t len = e - a < room ? e - a : room;
	memcpy(to, p->body + a, len);
	return len;
}

static size_t mutate(char *s, size_t n)
{
	static const char *const words[] = {"0xffffffffffffffff", "4294967295", "-1", "0", "1000000000",
		".b8", ".b128", ".f16x2", ".v4", ".v8", "{", "}", "[", "]", "(", ")", ";", "ret", "%r1",
		"%d1", "%p1", ".param", ".shared", ".global", ".local", "numbers", "recurse", "bra", "call",
		".align 65536", "0f7F800000", "@%p1", "|", "<1000000>", "/*", "\"",
		".reg .b32 %r<1048575>;", ":", "bar.sync", "_", "!", "%clock64", "dyn", "exit", ".f32",
		".f64",
		".u64", ".pred", "END", "targets", "4096", "255", "31"};
	char tmp[512];
	size_t a = token(s, n), ae = token_end(s, n, a), len;
	const char *w = words[random_below(sizeof words / sizeof *words)];
	switch (random_below(12)) {
	case 0: s[random_below((uint32_t)n)] = (char)random_below(256); return n;
	case 1: return replace(s, n, a, ae, w, strlen(w));
	case 2: return replace(s, n, a, a, w, strlen(w));
	case 3: return replace(s, n, a, ae, "", 0);
	case 4: /* one token in another's place: mostly still a program */
	case 5:
	case 6: {
		size_t b = token(s, n), be = token_end(s, n, b);
		len = be - b < sizeof tmp ? be - b : sizeof tmp;
		memcpy(tmp, s + b, len);
		return replace(s, n, a, ae, tmp, len);
	}
	case 7: return replace(s, n, a, ae, tmp, other(tmp, sizeof tmp, false));
	case 8:
	case 9: { /* an instruction of another text between two of this one */
		while (a > 0 && s[a - 1] != '\n')
			a--;
		len = other(tmp, sizeof tmp - 1, true);
		tmp[len++] = '\n';
		return replace(s, n, a, a, tmp, len);
	}
	case 10: {
		size_t b = token(s, n);
		len = random_below(200);
		len = b + len > n ? n - b : len;
		memcpy(tmp, s + b, len);
		return replace(s, n, a, a, tmp, len);
	}
	default: return random_below(20) ? n : random_below((uint32_t)n);
	}
}

static void launch(const struct engine_function *f, uint64_t buffer)
{
	static uint64_t params[1 << 12];
	const struct engine_function_info *info = engine_function_info(f);
	if (info->param_bytes > sizeof params || info->shared_bytes > 1 << 20)
		return;
	for (unsigned i = 0; i < sizeof params / sizeof *params; i++)
		params[i] = buffer;
	params[1] = 100;
	struct engine_launch l = {.function = f,
		.grid = {random_below(8) ? 1 : 2, 1, 1},
		.block = {random_below(2) ? 64 : 37, 1, 1},
		.cluster = {random_below(8) ? 1 : 2, 1, 1},
		.dynamic_shared = 64,
		.params = params,
		.time_limit_s = 0.02,
		.cooperative = !random_below(8)};
	l.grid[0] *= l.cluster[0];
	struct engine_error error;
	engine_launch(&l, &error);
}

static void run(struct engine_module *m, uint64_t buffer)
{
	unsigned n = 0;
	while (engine_function_at(m, n))
		n++;
	for (unsigned k = 0; n && k < (n < MAX_KERNELS ? n : MAX_KERNELS); k++)
		launch(engine_function_at(m, n <= MAX_KERNELS ? k : random_below(n)), buffer);
}

static void add_piece(const char *head, size_t head_n, const char *body, size_t n)
{
	if (npieces < MAX_PIECES && n && head_n + n < MAX_TEXT)
		pieces[npieces++] = (struct piece){head, body, head_n, n};
}

static bool read_file(const char *name)
{
	char *text = malloc(MAX_FILE + 1);
	FILE *f = fopen(name, "r");
	size_t n = f && text ? fread(text, 1, MAX_FILE, f) : 0;
	if (f)
		fclose(f);
	if (!n)
		return false;
	text[n] = 0;
	static const char entry[] = "\n.visible .entry";
	char *first = n > LARGE ? strstr(text, entry) : NULL;
	if (!first) {
		add_piece("", 0, text, n);
		return true;
	}
	for (char *p = first + 1, *next; p; p = next) {
		next = strstr(p, entry);
		next = next ? next + 1 : NULL;
		add_piece(text, (size_t)(first + 1 - text), p, next ? (size_t)(next - p) : strlen(p));
	}
	return true;
}

static bool try(const char *text, size_t len, uint64_t buffer, struct engine_error *error)
{
	char *exact = malloc(len + !len); /* no byte behind it, so that a read past its end is seen */
	if (!exact)
		exit(1);
	memcpy(exact, text, len);
	const char *one = exact;
	struct engine_module *m;
	bool ok = !engine_module_load(&one, &len, 1, &m, error);
	if (ok) {
		run(m, buffer);
		engine_module_unload(m);
	}
	free(exact);
	return ok;
}

int main(int argc, char **argv)
{
	struct rounds rounds = rounds_begin(argc > 1 ? argv[1] : NULL);
	static char text[MAX_TEXT];
	if (soft_mem_init((size_t)256 << 20))
		return 1;
	engine_init(1);
	engine_set_printf_fifo(4096);
	uint64_t buffer = soft_alloc(BUFFER, 256);
	struct engine_error error;
	for (int a = 2; a < argc; a++)
		if (!read_file(argv[a])) {
			printf("FAILED %s: nothing to read\n", argv[a]);
			return 1;
		}
	/* what is not changed has to load, or the rest says nothing */
	for (uint32_t i = 0; i < npieces; i++) {
		const struct piece *p = &pieces[i];
		if (rounds.first && i)
			break;
		memcpy(text, p->head, p->head_n);
		memcpy(text + p->head_n, p->body, p->n);
		seed(i);
		if (!try(text, p->head_n + p->n, buffer, &error)) {
			printf("FAILED text %u as it is: %u: %s\n", i, error.line, error.text);
			return 1;
		}
	}
	while (npieces && rounds_next(&rounds)) {
		const struct piece *p = &pieces[random_below(npieces)];
		memcpy(text, p->head, p->head_n);
		memcpy(text + p->head_n, p->body, p->n);
		size_t len = p->head_n + p->n;
		for (unsigned k = 1 + random_below(3); k && len; k--)
			len = mutate(text, len);
		rounds_keep(text, len);
		rounds_start(&rounds);
		rounds_end(&rounds, try(text, len, buffer, &error));
	}
	rounds_report(&rounds, "texts");
	return 0;
}
