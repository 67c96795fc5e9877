/* SPDX-License-Identifier: Apache-2.0 */
/* Functions without a body that kernels may call: vprintf, __assertfail, malloc, free, what sets the condition
 * of a graph. The device heap has the limit of cuCtxSetLimit and lives in device memory, each block an
 * allocation with a header, so that it survives its launch as on a GPU.
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
	HEAP_ALIGN = 16,
	CLASSES = 40,
	MAX_NAME = 256
};
#define MAGIC 0x70616568636f7331ull

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

/* Freed pieces wait in a list per power of two. A piece's header is in front of it. */
struct piece {
	uint64_t magic, size;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t heap_limit = 8 << 20, heap_used, chunk, chunk_end;
static uint64_t free_list[CLASSES];

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

uint64_t heap_alloc(uint64_t bytes)
{
	uint64_t p = 0;
	pthread_mutex_lock(&lock);
	unsigned k = class_of(bytes + sizeof(struct piece));
	if (!bytes || bytes > heap_limit || k >= CLASSES || heap_used + (1ull << k) > heap_limit)
		goto out;
	uint64_t size = 1ull << k;
	if (free_list[k]) {
		p = free_list[k];
		memcpy(&free_list[k], (void *)(p + sizeof(struct piece)), 8);
	} else if (size >= CHUNK) {
		p = soft_alloc(size, 256);
	} else {
		if (chunk_end - chunk < size) {
			chunk = soft_alloc(CHUNK, 256);
			chunk_end = chunk ? chunk + CHUNK : 0;
		}
		if (chunk) {
			p = chunk;
			chunk += size;
		}
	}
	if (p) {
		heap_used += size;
		*(struct piece *)p = (struct piece){MAGIC, size};
		p += sizeof(struct piece);
	}
out:
	pthread_mutex_unlock(&lock);
	return p;
}

bool heap_free(uint64_t p)
{
	if (!p)
		return true;
	uint64_t base;
	size_t bytes;
	bool ok = false;
	pthread_mutex_lock(&lock);
	if (!(p % HEAP_ALIGN) && soft_find(p - sizeof(struct piece), &base, &bytes) && p - base < bytes) {
		struct piece *h = (struct piece *)(p - sizeof *h);
		if (h->magic == MAGIC && h->size >= MIN_PIECE && !(h->size & (h->size - 1))) {
			unsigned k = class_of(h->size);
			ok = true;
			h->magic = 0;
			heap_used -= h->size;
			if (h->size >= CHUNK) {
				soft_free((uint64_t)h);
			} else {
				memcpy((void *)p, &free_list[k], 8);
				free_list[k] = (uint64_t)h;
			}
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
			if (!on_condition || !on_condition(word(w, ci, 0, l, 8), (uint32_t)word(w, ci, 1, l, 4)))
				r = LAUNCH_FAILED;
			break;
		case BUILTIN_NANO: break;
		default: return LAUNCH_FAILED;
		}
	}
	return r;
}
