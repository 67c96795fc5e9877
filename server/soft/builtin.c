/* SPDX-License-Identifier: Apache-2.0 */
/* Functions without a body that kernels may call: vprintf, __assertfail, malloc, free, what sets the
 * condition of a graph. The device heap has the limit of cuCtxSetLimit and lives in device memory, so that
 * what is in it survives its launch as on a GPU.
 *
 * Thread rule: the heap has a lock. */
#include "server/soft/builtin.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "server/soft/memory.h"

enum {
	ASSERT = 710,
	LAUNCH_FAILED = 719,
	CHUNK = 1 << 20,
	MIN_PIECE = 32,
	CLASSES = 40,
	MAX_NAME = 256
};

int builtin_find(const char *name)
{
	static const struct {
		const char *name;
		int id;
	} t[] = {{"vprintf", BUILTIN_PRINTF}, {"__assertfail", BUILTIN_ASSERT}, {"malloc", BUILTIN_MALLOC},
		{"free", BUILTIN_FREE}, {"__nanosleep", BUILTIN_NANO},
		{"cudaGraphSetConditional", BUILTIN_CONDITION}};
	for (unsigned k = 0; k < sizeof t / sizeof *t; k++)
		if (!strcmp(t[k].name, name))
			return t[k].id;
	return BUILTIN_NONE;
}

static bool (*on_condition)(uint64_t handle, uint32_t value);

void engine_on_condition(bool (*set)(uint64_t handle, uint32_t value))
{
	on_condition = set;
}

/* A chunk of device memory is cut into pieces of powers of two. What is known of them lies here and not in
 * the chunk: a kernel that writes past its piece must not reach it. */
struct chunk {
	uint64_t base;
	size_t bytes; /* CHUNK; or what its one piece has */
	size_t cut; /* so much of it has become pieces */
	uint8_t class[CHUNK / MIN_PIECE]; /* of the piece that starts there; 0: none, or free */
};
struct stack {
	uint64_t *piece;
	size_t n, room;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t heap_limit = 8 << 20, heap_used;
static struct chunk **chunks; /* by address */
static size_t nchunks, chunk_room;
static struct chunk *current; /* that new pieces are cut from */
static struct stack spare[CLASSES]; /* freed pieces */

void engine_set_malloc_heap(size_t bytes)
{
	pthread_mutex_lock(&lock);
	heap_limit = bytes;
	pthread_mutex_unlock(&lock);
}

static unsigned class_of(uint64_t bytes)
{
	return bytes <= MIN_PIECE ? 5 : 64 - (unsigned)__builtin_clzll(bytes - 1);
}

/* Where the chunk that holds p is, or would be. */
static size_t chunk_seek(uint64_t p)
{
	size_t lo = 0, hi = nchunks;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (chunks[mid]->base + chunks[mid]->bytes > p)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static struct chunk *chunk_new(size_t bytes)
{
	if (nchunks == chunk_room) {
		size_t n = chunk_room ? 2 * chunk_room : 16;
		struct chunk **t = reallocarray(chunks, n, sizeof *t);
		if (!t)
			return NULL;
		chunks = t;
		chunk_room = n;
	}
	struct chunk *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	*c = (struct chunk){.base = soft_alloc(bytes, 256), .bytes = bytes};
	if (!c->base) {
		free(c);
		return NULL;
	}
	size_t at = chunk_seek(c->base);
	memmove(chunks + at + 1, chunks + at, (nchunks - at) * sizeof *chunks);
	chunks[at] = c;
	nchunks++;
	return c;
}

static uint64_t piece_cut(unsigned k)
{
	size_t size = (size_t)1 << k;
	struct chunk *c = current;
	if (size >= CHUNK)
		c = chunk_new(size);
	else if (!c || c->bytes - c->cut < size)
		c = current = chunk_new(CHUNK);
	if (!c)
		return 0;
	uint64_t p = c->base + c->cut;
	c->cut += size;
	return p;
}

uint64_t heap_alloc(uint64_t bytes)
{
	uint64_t p = 0;
	pthread_mutex_lock(&lock);
	unsigned k = class_of(bytes);
	if (bytes && bytes <= heap_limit && k < CLASSES && heap_used + (1ull << k) <= heap_limit) {
		struct stack *s = &spare[k];
		p = s->n ? s->piece[--s->n] : piece_cut(k);
	}
	if (p) {
		struct chunk *c = chunks[chunk_seek(p)];
		c->class[(p - c->base) / MIN_PIECE] = (uint8_t)k;
		heap_used += 1ull << k;
	}
	pthread_mutex_unlock(&lock);
	return p;
}

/* Puts a piece among the spare ones; one that cannot be noted is lost until the end. */
static void piece_keep(uint64_t p, unsigned k)
{
	struct stack *s = &spare[k];
	if (s->n == s->room) {
		size_t n = s->room ? 2 * s->room : 64;
		uint64_t *t = reallocarray(s->piece, n, sizeof *t);
		if (!t)
			return;
		s->piece = t;
		s->room = n;
	}
	s->piece[s->n++] = p;
}

bool heap_free(uint64_t p)
{
	if (!p)
		return true;
	bool ok = false;
	pthread_mutex_lock(&lock);
	size_t i = chunk_seek(p);
	struct chunk *c = i < nchunks && chunks[i]->base <= p ? chunks[i] : NULL;
	size_t at = c ? p - c->base : 1;
	unsigned k = at % MIN_PIECE || at >= CHUNK ? 0 : c->class[at / MIN_PIECE];
	if (k) {
		ok = true;
		heap_used -= 1ull << k;
		c->class[at / MIN_PIECE] = 0;
		if (c->bytes != CHUNK || 1ull << k == CHUNK) {
			soft_free(c->base);
			memmove(chunks + i, chunks + i + 1, (--nchunks - i) * sizeof *chunks);
			free(c);
		} else {
			piece_keep(p, k);
		}
	}
	pthread_mutex_unlock(&lock);
	return ok;
}

static uint64_t word(
	const struct warp *w, const struct call_info *ci, unsigned arg, uint32_t l, unsigned bytes)
{
	if (arg >= ci->nargs)
		return 0;
	const uint32_t *s = REG(w, uint32_t, ci->args[arg].slot);
	return bytes == 8 ? s[l] | (uint64_t)s[l + LANES] << 32 : s[l];
}

static void result(struct warp *w, const struct call_info *ci, uint32_t l, uint64_t v)
{
	if (!ci->nrets)
		return;
	uint32_t *d = REG(w, uint32_t, ci->rets[0].slot);
	d[l] = (uint32_t)v;
	d[l + LANES] = (uint32_t)(v >> 32);
}

static const char *text_at(uint64_t p, char *b)
{
	uint64_t base;
	size_t bytes;
	snprintf(b, MAX_NAME, "%s", p ? "?" : "");
	if (soft_find(p, &base, &bytes)) {
		size_t room = bytes - (size_t)(p - base);
		size_t n = strnlen((const char *)p, room < MAX_NAME - 1 ? room : MAX_NAME - 1);
		memcpy(b, (const char *)p, n);
		b[n] = 0;
	}
	return b;
}

/* The same line as a GPU's driver prints, on standard error. */
static void assertion(struct warp *w, const struct call_info *ci, uint32_t l)
{
	char text[MAX_NAME], file[MAX_NAME], func[MAX_NAME];
	const struct block *b = w->block;
	const struct engine_launch *e = b->launch->l;
	uint32_t t = w->id * LANES + l;
	text_at(word(w, ci, 0, l, 8), text);
	text_at(word(w, ci, 1, l, 8), file);
	text_at(word(w, ci, 3, l, 8), func);
	fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file,
		(unsigned)word(w, ci, 2, l, 4), func, b->ctaid[0], b->ctaid[1], b->ctaid[2], t % e->block[0],
		t / e->block[0] % e->block[1], t / e->block[0] / e->block[1], text);
}

int builtin_call(struct warp *w, const struct call_info *ci)
{
	int r = 0;
	FOR_LANES(w, l)
	{
		switch (ci->builtin_id) {
		case BUILTIN_PRINTF:
			result(w, ci, l,
				(uint32_t)printf_lane(
					w->block->launch->out, word(w, ci, 0, l, 8), word(w, ci, 1, l, 8)));
			break;
		case BUILTIN_MALLOC: result(w, ci, l, heap_alloc(word(w, ci, 0, l, 8))); break;
		case BUILTIN_FREE:
			if (!heap_free(word(w, ci, 0, l, 8)))
				r = LAUNCH_FAILED;
			break;
		case BUILTIN_ASSERT:
			assertion(w, ci, l);
			r = ASSERT;
			break;
		case BUILTIN_CONDITION:
			if (!on_condition ||
					!on_condition(word(w, ci, 0, l, 8), (uint32_t)word(w, ci, 1, l, 4)))
				r = LAUNCH_FAILED;
			break;
		case BUILTIN_NANO: break;
		default: return LAUNCH_FAILED;
		}
	}
	return r;
}
