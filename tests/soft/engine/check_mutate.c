/* SPDX-License-Identifier: Apache-2.0 */
/* check_mutate COUNT[:SEED] FILE.ptx ...: PTX arrives from a client, so whatever the text is, the engine must read,
 * decode and run it or say no, in bounded time. Each round changes a text in a few places, loads it, decodes
 * every kernel and runs them; the sanitizers watch. Time per round is checked.
 *
 * Thread rule: one thread; the engine has its own workers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "server/soft/engine.h"
#include "server/soft/memory.h"

enum { MAX_TEXT = 4 << 20, BUFFER = 1 << 16, MAX_SECONDS = 20 };

static uint64_t state = 88172645463325252ull;
static uint32_t random_below(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return n ? (uint32_t)(state >> 20) % n : 0;
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The start of a token near a random place. */
static size_t token(const char *s, size_t n)
{
	size_t i = random_below((uint32_t)n);
	while (i < n && strchr(" \t\n,;[]{}()", s[i]))
		i++;
	while (i > 0 && !strchr(" \t\n,;[]{}()", s[i - 1]))
		i--;
	return i;
}

static size_t token_end(const char *s, size_t n, size_t i)
{
	while (i < n && !strchr(" \t\n,;[]{}()", s[i]))
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

static size_t mutate(char *s, size_t n)
{
	static const char *const words[] = {"0xffffffffffffffff", "4294967295", "-1", "0", "1000000000",
		".b8", ".b128", ".f16x2", ".v4", "{", "}", "[", "]", "(", ")", ";", "ret", "%r1", "%d1",
		"%p1", ".param", ".shared", ".global", "numbers", "recurse", "bra", "call", ".align 65536",
		"0f7F800000", "@%p1", "|", "<1000000>", "/*", "\"", ".reg .b32 %r<1048575>;", ":", "bar.sync",
		"_", "!", "%clock64", "dyn", "exit"};
	char tmp[256];
	size_t a = token(s, n), ae = token_end(s, n, a), b = token(s, n), be = token_end(s, n, b), len;
	const char *w = words[random_below(sizeof words / sizeof *words)];
	switch (random_below(8)) {
	case 0: s[random_below((uint32_t)n)] = (char)random_below(256); return n;
	case 1: return replace(s, n, a, ae, w, strlen(w));
	case 2: return replace(s, n, a, a, w, strlen(w));
	case 3: return replace(s, n, a, ae, "", 0);
	case 4: /* one token in another's place: mostly still a program */
	case 5:
		len = be - b < sizeof tmp ? be - b : sizeof tmp;
		memcpy(tmp, s + b, len);
		return replace(s, n, a, ae, tmp, len);
	case 6:
		len = random_below(200);
		len = b + len > n ? n - b : len;
		memcpy(tmp, s + b, len);
		return replace(s, n, a, a, tmp, len);
	default: return random_below(20) ? n : random_below((uint32_t)n);
	}
}

static void run(struct engine_module *m, uint64_t buffer)
{
	static uint64_t params[1 << 12];
	for (unsigned i = 0; i < sizeof params / sizeof *params; i++)
		params[i] = buffer;
	params[1] = 100;
	struct engine_function *f;
	for (unsigned i = 0; (f = engine_function_at(m, i)); i++) {
		const struct engine_function_info *info = engine_function_info(f);
		if (info->param_bytes > sizeof params || info->shared_bytes > 1 << 20)
			continue;
		struct engine_launch l = {.function = f,
			.grid = {2, 1, 1},
			.block = {random_below(2) ? 64 : 37, 1, 1},
			.cluster = {1, 1, 1},
			.dynamic_shared = 64,
			.params = params,
			.time_limit_s = 0.2,
			.cooperative = !random_below(4)};
		struct engine_error error;
		engine_launch(&l, &error);
	}
}

int main(int argc, char **argv)
{
	unsigned count = argc > 1 ? (unsigned)atoi(argv[1]) : 100, loaded = 0, rounds = 0;
	const char *seed = argc > 1 ? strchr(argv[1], ':') : NULL;
	state += count * 977ull + (seed ? strtoull(seed + 1, NULL, 10) * 0x9e3779b97f4a7c15ull : 0);
	char *original = malloc(MAX_TEXT), *text = malloc(MAX_TEXT);
	if (!original || !text || soft_mem_init((size_t)1 << 30))
		return 1;
	engine_init(2);
	engine_set_printf_fifo(4096);
	uint64_t buffer = soft_alloc(BUFFER, 256);
	for (int a = 2; a < argc; a++) {
		FILE *f = fopen(argv[a], "r");
		size_t n = f ? fread(original, 1, MAX_TEXT, f) : 0;
		if (f)
			fclose(f);
		for (unsigned i = 0; n && i <= count; i++) {
			memcpy(text, original, n);
			size_t len = n;
			for (unsigned k = i ? 1 + random_below(2) : 0; k && len; k--)
				len = mutate(text, len);
			char *exact = malloc(len + 1); /* so that a read past its end is seen */
			if (!exact)
				return 1;
			memcpy(exact, text, len);
			const char *one = exact;
			struct engine_module *m;
			struct engine_error error;
			double start = seconds();
			FILE *last = getenv("MUTATE_LAST") ? fopen(getenv("MUTATE_LAST"), "w") : NULL;
			if (last) {
				fwrite(exact, 1, len, last);
				fclose(last);
			}
			if (!engine_module_load(&one, &len, 1, &m, &error)) {
				run(m, buffer);
				loaded++;
				engine_module_unload(m);
			} else if (!i) {
				printf("FAILED %s: %u: %s\n", argv[a], error.line, error.text);
				return 1;
			}
			free(exact);
			rounds++;
			if (seconds() - start > MAX_SECONDS) {
				printf("FAILED %s: round %u took %.1f s\n", argv[a], i, seconds() - start);
				return 1;
			}
		}
	}
	printf("%u mutated texts, %u of them loaded and ran or failed as they should\n", rounds, loaded);
	free(original);
	free(text);
	return 0;
}
