/* SPDX-License-Identifier: Apache-2.0 */
/* Notes are in memory for each image of which something is loaded, and in its file (server/notes_list.h).
 *
 * Thread rule: see notes.h; `lock` guards the lists. */
#include "server/notes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/cache.h"
#include "server/image.h"
#include "server/notes_list.h"
#include "server/serve.h"
#include "wire/image.h"
#include "wire/limits.h"

#define LIMIT_AHEAD_IMAGES 64
#define READERS_MOST 4 /* threads that read them */
#define LIMIT_AHEAD_BYTES (32u << 20) /* of images that are read and may not be loaded */
/* Modules and libraries. Of one that ends with its context nobody tells us. */
#define LIMIT_LOADED 16384
#define NO_NAME 0xc0 /* an entry that is not told: nil in place of a name */

struct loaded {
	struct loaded *next;
	uint64_t id;
	struct notes *notes;
};

struct held {
	struct held *next;
	uint8_t digest[DIGEST];
	size_t n;
	void *bytes; /* with IMAGE_TAIL zeros behind */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct notes *all;
static struct loaded *loaded; /* the last one first */
static unsigned loaded_count;
static struct held *held;
static unsigned held_count;
static size_t held_bytes;
static uint8_t last[DIGEST]; /* the image that was loaded last ... */
static bool have_last; /* ... if there is one */

/* ---- of what is loaded ---- */

/* Under the lock, like all of these. */
static struct loaded **find(uint64_t id)
{
	struct loaded **l = &loaded;

	while (*l && (*l)->id != id)
		l = &(*l)->next;
	return l;
}

static struct notes *notes_of(uint64_t id)
{
	struct loaded *l = *find(id);

	return l ? l->notes : NULL;
}

/* The image's notes, read when none of it is loaded. NULL without memory. */
static struct notes *open_notes(const uint8_t d[DIGEST])
{
	struct notes *t = all;

	while (t && memcmp(t->digest, d, DIGEST))
		t = t->next;
	if (!t && (t = calloc(1, sizeof *t))) {
		memcpy(t->digest, d, DIGEST);
		notes_read(t);
		t->next = all;
		all = t;
	}
	return t;
}

/* Forgets them when nothing of the image is loaded any more. */
static void close_notes(struct notes *t)
{
	struct notes **p = &all;

	if (t->loaded)
		return;
	while (*p != t)
		p = &(*p)->next;
	*p = t->next;
	free(t->bytes);
	free(t);
}

static void unload(struct loaded **p)
{
	struct loaded *l = *p;

	*p = l->next;
	loaded_count--;
	l->notes->loaded--;
	close_notes(l->notes);
	free(l);
}

/* What compiler options make of an image is another one. Those that only say where to write do not count. */
static bool add_options(uint8_t d[DIGEST], const struct jit *j)
{
	uint64_t pairs[DIGEST / 8 + 2 * LIMIT_JIT_OPTIONS];
	unsigned n = DIGEST / 8;

	memcpy(pairs, d, DIGEST);
	for (unsigned i = 0; i < j->n; i++) {
		switch ((int)j->option[i]) {
		case CU_JIT_INFO_LOG_BUFFER:
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
		case CU_JIT_ERROR_LOG_BUFFER:
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
		case CU_JIT_LOG_VERBOSE:
		case CU_JIT_WALL_TIME: continue;
		}
		pairs[n++] = (uint64_t)j->option[i];
		pairs[n++] = (uintptr_t)j->value[i];
	}
	if (n > DIGEST / 8)
		digest(pairs, n * sizeof *pairs, d);
	return n > DIGEST / 8;
}

void notes_add(uint64_t id, const void *entry, size_t n, size_t same)
{
	pthread_mutex_lock(&lock);
	struct notes *t = notes_of(id);

	if (t)
		notes_append(t, entry, n, same);
	pthread_mutex_unlock(&lock);
}

void notes_put(uint64_t id, struct msg *out, size_t most)
{
	size_t at = 0, n;

	pthread_mutex_lock(&lock);
	struct notes *t = notes_of(id);

	for (const uint8_t *e; t && (e = notes_next(t, &at, &n));)
		if (n && *e != NO_NAME && out->len + n <= most)
			put_encoded(out, e, n);
	pthread_mutex_unlock(&lock);
}

/* ---- which image comes next ---- */

/* Under the lock: notes that it followed the image that was loaded last. */
static void note_next(const struct image *i)
{
	uint8_t entry[DIGEST + 32];
	struct notes *t = have_last && memcmp(last, i->digest, DIGEST) ? open_notes(last) : NULL;
	struct msg m;

	if (t) {
		msg_init(&m, entry, sizeof entry);
		put_nil(&m);
		put_u64(&m, NOTE_NEXT);
		put_bytes(&m, i->digest, DIGEST);
		put_u64(&m, i->n);
		if (!m.bad)
			notes_append(t, entry, m.len, m.len);
		close_notes(t);
	}
	memcpy(last, i->digest, DIGEST);
	have_last = true;
}

void notes_begin(uint64_t id, const struct image *i, const struct jit *j)
{
	struct loaded *l = cache_is_open() && i->n >= IMAGE_KEPT ? malloc(sizeof *l) : NULL;
	uint8_t d[DIGEST];

	if (!l)
		return;
	memcpy(d, i->digest, DIGEST);
	bool plain = !add_options(d, j);

	pthread_mutex_lock(&lock);
	/* The driver gives a handle again whose bearer died with its context. */
	if (*find(id))
		unload(find(id));
	struct notes *t = open_notes(d);

	if (plain)
		note_next(i);
	if (t && loaded_count < LIMIT_LOADED) {
		*l = (struct loaded){.next = loaded, .id = id, .notes = t};
		loaded = l;
		loaded_count++;
		t->loaded++;
		l = NULL;
	} else if (t) {
		close_notes(t);
	}
	pthread_mutex_unlock(&lock);
	free(l);
}

void notes_end(uint64_t id)
{
	pthread_mutex_lock(&lock);
	if (*find(id))
		unload(find(id));
	pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static bool is_known(const uint8_t d[DIGEST])
{
	for (const struct notes *t = all; t; t = t->next)
		if (!memcmp(t->digest, d, DIGEST))
			return true;
	for (const struct held *k = held; k; k = k->next)
		if (!memcmp(k->digest, d, DIGEST))
			return true;
	return false;
}

/* An image that is to be read, found in the notes of another. */
struct wanted {
	uint8_t digest[DIGEST];
	size_t size;
	struct notes *notes;
	void *bytes;
};

/* Those that followed the image of `t`; returns how many there are then. */
static unsigned follow(const struct notes *t, struct wanted *list, unsigned count)
{
	size_t at = 0, n;

	for (const uint8_t *e; (e = notes_next(t, &at, &n)) && count < LIMIT_AHEAD_IMAGES;) {
		struct wanted w = {.bytes = NULL};
		struct msg m;
		unsigned i = 0;

		msg_init(&m, (void *)e, n);
		if (!get_nil(&m) || get_u64(&m) != NOTE_NEXT)
			continue;
		get_bytes(&m, w.digest, DIGEST);
		w.size = get_u64(&m);
		while (i < count && memcmp(list[i].digest, w.digest, DIGEST))
			i++;
		if (get_end(&m) && i == count)
			list[count++] = w;
	}
	return count;
}

/* A load of an image that was told is posted: the program takes it that the driver says yes. Another kind of
 * device may have said so, and this one not run it. */
bool notes_has_next(uint64_t id)
{
	struct wanted list[LIMIT_AHEAD_IMAGES];

	pthread_mutex_lock(&lock);
	struct notes *t = notes_of(id);
	bool some = t && notes_one_kind() && follow(t, list, 0);

	pthread_mutex_unlock(&lock);
	return some;
}

/* Threads that read images take the next one each. */
struct reading {
	struct wanted **list;
	unsigned count;
	atomic_uint next;
};

static void *read_images(void *arg)
{
	struct reading *r = arg;

	for (unsigned i; (i = atomic_fetch_add(&r->next, 1)) < r->count;)
		r->list[i]->bytes = cache_read(r->list[i]->digest, r->list[i]->size, IMAGE_TAIL);
	return NULL;
}

/* A reader makes sure of the digest, which takes longer than the reading. */
static void read_all(struct wanted **list, unsigned count)
{
	struct reading r = {.list = list, .count = count};
	pthread_t thread[READERS_MOST - 1];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned n = 0, most = count < READERS_MOST ? count : READERS_MOST;

	while (n + 1 < most && n + 1 < cpus && !pthread_create(&thread[n], NULL, read_images, &r))
		n++;
	read_images(&r);
	while (n)
		pthread_join(thread[--n], NULL);
}

/* Under the lock: what is noted of an image that was read; a load finds it then. */
static void hold(struct wanted *w, struct msg *out)
{
	struct held *k = w->bytes ? calloc(1, sizeof *k) : NULL;
	size_t before = out->len, at = 0, n;

	if (!k) {
		free(w->bytes);
		return;
	}
	put_bytes(out, w->digest, DIGEST);
	for (const uint8_t *e; (e = notes_next(w->notes, &at, &n));)
		if (n && *e != NO_NAME)
			put_encoded(out, e, n);
	put_nil(out);
	if (out->bad) {
		out->bad = false;
		out->len = before;
		free(w->bytes);
		free(k);
		return;
	}
	*k = (struct held){.next = held, .n = w->size, .bytes = w->bytes};
	memcpy(k->digest, w->digest, DIGEST);
	held = k;
	held_count++;
	held_bytes += w->size;
}

void notes_put_ahead(uint64_t id, struct msg *out)
{
	struct wanted list[LIMIT_AHEAD_IMAGES], *chosen[LIMIT_AHEAD_IMAGES];
	unsigned count = 0, n = 0;

	pthread_mutex_lock(&lock);
	const struct notes *first = notes_of(id);
	size_t room = LIMIT_AHEAD_BYTES - held_bytes;

	if (first)
		count = follow(first, list, 0);
	for (unsigned i = 0; i < count && held_count + n < LIMIT_AHEAD_IMAGES; i++) {
		struct wanted *w = &list[i];

		if (is_known(w->digest) || w->size > room || !(w->notes = open_notes(w->digest)))
			continue;
		room -= w->size;
		chosen[n++] = w;
		count = follow(w->notes, list, count);
	}
	read_all(chosen, n);
	for (unsigned i = 0; i < n; i++) {
		hold(chosen[i], out);
		close_notes(chosen[i]->notes);
	}
	pthread_mutex_unlock(&lock);
	put_nil(out);
}

void *notes_take(const uint8_t d[DIGEST], size_t n)
{
	struct held **p = &held, *k;
	void *bytes = NULL;

	pthread_mutex_lock(&lock);
	while ((k = *p) && (k->n != n || memcmp(k->digest, d, DIGEST)))
		p = &k->next;
	if (k) {
		*p = k->next;
		bytes = k->bytes;
		held_count--;
		held_bytes -= k->n;
	}
	pthread_mutex_unlock(&lock);
	free(k);
	return bytes;
}
