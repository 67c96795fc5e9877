/* SPDX-License-Identifier: Apache-2.0 */
/* Notes are kept in memory for each module and library that was loaded, in the order in which they came,
 * and appended to the file of its image (server/cache.h): each with its length, and a check over it and
 * over what this machine is, so that neither damage nor another driver's answers are taken for ours.
 *
 * Thread rule: see notes.h; `lock` guards the lists. */
#include "server/notes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "server/cache.h"
#include "server/image.h"
#include "server/serve.h"
#include "server/state.h"
#include "wire/image.h"
#include "wire/limits.h"

#define LIMIT_AHEAD_IMAGES 64
#define LIMIT_AHEAD_BYTES (32u << 20) /* of images that are read and may not be loaded */
#define NO_NAME 0xc0 /* an entry that is not told: nil in place of a name */
#define LIMIT_ENTRY 8192 /* bytes; what is longer is not noted */

/* In front of an entry, in memory as in the file. */
struct header {
	uint32_t len;
	uint8_t check[12];
};

struct notes {
	struct notes *next;
	uint64_t id; /* 0: only of an image */
	uint8_t digest[DIGEST]; /* of the image and how it was compiled */
	size_t n;
	uint8_t *bytes;
};

struct held {
	struct held *next;
	uint8_t digest[DIGEST];
	size_t n;
	void *bytes; /* with IMAGE_TAIL zeros behind */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct notes *all;
static struct held *held;
static uint8_t last[DIGEST]; /* the image that was loaded last ... */
static bool have_last; /* ... if there is one */
static uint8_t machine[DIGEST];

/* ---- entries ---- */

/* The snapshot without what changes: it names the driver's version and all that is known of the devices. */
static void name_machine(void)
{
	const struct session_start *s = session_self()->start;
	uint8_t *kept = malloc(s->snapshot_len + 1);
	size_t n = 0;
	struct msg m;

	msg_init(&m, (void *)s->snapshot, s->snapshot_len);
	for (size_t keys = get_map(&m, 64), devices = 0; kept && keys-- && !m.bad;) {
		char key[LIMIT_NAME];

		get_text(&m, key, sizeof key);
		if (strcmp(key, "devices")) {
			size_t at = m.len;

			get_skip(&m);
			if (!m.bad && strcmp(key, "sessions")) {
				memcpy(kept + n, m.buf + at, m.len - at);
				n += m.len - at;
			}
			continue;
		}
		for (devices = get_array(&m, LIMIT_DEVICES); devices-- && !m.bad;)
			for (size_t inner = get_map(&m, 64); inner-- && !m.bad;) {
				get_text(&m, key, sizeof key);
				size_t at = m.len;

				get_skip(&m);
				if (!m.bad && strcmp(key, "free")) {
					memcpy(kept + n, m.buf + at, m.len - at);
					n += m.len - at;
				}
			}
	}
	digest(kept ? kept : machine, kept ? n : 0, machine);
	free(kept);
}

static void check_of(const uint8_t *entry, size_t n, uint8_t out[sizeof((struct header *)0)->check])
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	uint8_t bytes[DIGEST + LIMIT_ENTRY], d[DIGEST];

	pthread_once(&once, name_machine);
	memcpy(bytes, machine, DIGEST);
	memcpy(bytes + DIGEST, entry, n);
	digest(bytes, DIGEST + n, d);
	memcpy(out, d, sizeof((struct header *)0)->check);
}

/* The entry at *at, and *at behind it; NULL at the end. */
static const uint8_t *next_entry(const struct notes *t, size_t *at, size_t *n)
{
	struct header h;

	if (t->n - *at < sizeof h)
		return NULL;
	memcpy(&h, t->bytes + *at, sizeof h);
	if (h.len > LIMIT_ENTRY || h.len > t->n - *at - sizeof h)
		return NULL;
	*n = h.len;
	*at += sizeof h + h.len;
	return t->bytes + *at - h.len;
}

/* Of what a file held, only entries that are right are left. */
static void sift(struct notes *t)
{
	size_t at = 0, kept = 0, n;

	for (const uint8_t *e; (e = next_entry(t, &at, &n));) {
		struct header h;

		memcpy(&h, e - sizeof h, sizeof h);
		uint8_t want[sizeof h.check];

		check_of(e, n, want);
		if (memcmp(want, h.check, sizeof want))
			continue;
		memmove(t->bytes + kept, e - sizeof h, sizeof h + n);
		kept += sizeof h + n;
	}
	t->n = kept;
}

/* What is noted of an image on the disk; bytes NULL: nothing. A file that holds more of other machines
 * than of this one makes room. */
static void read_notes(struct notes *t)
{
	size_t n = 0;

	t->bytes = cache_notes(t->digest, &n);
	t->n = t->bytes ? n : 0;
	sift(t);
	if (t->n >= n / 2)
		return;
	cache_forget_notes(t->digest);
	if (t->n)
		cache_note(t->digest, t->bytes, t->n);
}

/* ---- of what is loaded ---- */

static struct notes **find(uint64_t id)
{
	struct notes **t = &all;

	while (*t && (*t)->id != id)
		t = &(*t)->next;
	return t;
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

/* Under the lock. */
static bool has_entry(const struct notes *t, const uint8_t *entry, size_t same)
{
	size_t at = 0, n;

	for (const uint8_t *e; (e = next_entry(t, &at, &n));)
		if (n >= same && !memcmp(e, entry, same))
			return true;
	return false;
}

/* Under the lock. True when it is new, with the bytes for the file in *file. */
static bool append(
	struct notes *t, const uint8_t *entry, size_t n, size_t same, const uint8_t **file, size_t *len)
{
	struct header h = {.len = (uint32_t)n};
	uint8_t *more;

	if (n > LIMIT_ENTRY || t->n + sizeof h + n > LIMIT_CACHE_NOTES || has_entry(t, entry, same))
		return false;
	more = realloc(t->bytes, t->n + sizeof h + n);
	if (!more)
		return false;
	t->bytes = more;
	check_of(entry, n, h.check);
	memcpy(more + t->n, &h, sizeof h);
	memcpy(more + t->n + sizeof h, entry, n);
	*file = more + t->n;
	*len = sizeof h + n;
	t->n += *len;
	return true;
}

void notes_add(uint64_t id, const void *entry, size_t n, size_t same)
{
	const uint8_t *file;
	size_t len;

	pthread_mutex_lock(&lock);
	struct notes *t = *find(id);

	if (t && append(t, entry, n, same, &file, &len))
		cache_note(t->digest, file, len);
	pthread_mutex_unlock(&lock);
}

void notes_put(uint64_t id, struct msg *out, size_t most)
{
	size_t at = 0, n;

	pthread_mutex_lock(&lock);
	struct notes *t = *find(id);

	for (const uint8_t *e; t && (e = next_entry(t, &at, &n));)
		if (n && *e != NO_NAME && out->len + n <= most)
			put_encoded(out, e, n);
	pthread_mutex_unlock(&lock);
}

/* ---- which image comes next ---- */

/* Under the lock. */
static void note_next(const struct image *i)
{
	uint8_t entry[DIGEST + 32];
	struct notes t = {.n = 0};
	const uint8_t *file;
	size_t len;
	struct msg m;

	if (have_last && memcmp(last, i->digest, DIGEST)) {
		msg_init(&m, entry, sizeof entry);
		put_nil(&m);
		put_u64(&m, NOTE_NEXT);
		put_bytes(&m, i->digest, DIGEST);
		put_u64(&m, i->n);
		memcpy(t.digest, last, DIGEST);
		read_notes(&t);
		if (!m.bad && append(&t, entry, m.len, m.len, &file, &len))
			cache_note(last, file, len);
		free(t.bytes);
	}
	memcpy(last, i->digest, DIGEST);
	have_last = true;
}

void notes_begin(uint64_t id, const struct image *i, const struct jit *j)
{
	struct notes *t = cache_is_open() && i->n >= IMAGE_KEPT ? calloc(1, sizeof *t) : NULL;

	if (!t)
		return;
	t->id = id;
	memcpy(t->digest, i->digest, DIGEST);
	bool plain = !add_options(t->digest, j);

	read_notes(t);
	pthread_mutex_lock(&lock);
	if (plain)
		note_next(i);
	t->next = all;
	all = t;
	pthread_mutex_unlock(&lock);
}

void notes_end(uint64_t id)
{
	pthread_mutex_lock(&lock);
	struct notes **p = find(id), *t = *p;

	if (t)
		*p = t->next;
	pthread_mutex_unlock(&lock);
	if (t)
		free(t->bytes);
	free(t);
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

/* Under the lock: reads the image, and puts what is noted of it. */
static bool put_image_ahead(const struct notes *t, size_t size, struct msg *out)
{
	struct held *k = calloc(1, sizeof *k);
	size_t before = out->len, at = 0, n;

	if (!k)
		return false;
	put_bytes(out, t->digest, DIGEST);
	for (const uint8_t *e; (e = next_entry(t, &at, &n));)
		if (n && *e != NO_NAME)
			put_encoded(out, e, n);
	put_nil(out);
	*k = (struct held){.next = held, .n = size};
	memcpy(k->digest, t->digest, DIGEST);
	k->bytes = out->bad ? NULL : cache_read(k->digest, size, IMAGE_TAIL);
	if (!k->bytes) {
		out->bad = false;
		out->len = before;
		free(k);
		return false;
	}
	held = k;
	return true;
}

/* An image that is to be read, found in the notes of another. */
struct wanted {
	uint8_t digest[DIGEST];
	size_t size;
};

/* Those that followed the image of `t`; returns how many there are then. */
static unsigned follow(const struct notes *t, struct wanted *list, unsigned count)
{
	size_t at = 0, n;

	for (const uint8_t *e; (e = next_entry(t, &at, &n)) && count < LIMIT_AHEAD_IMAGES;) {
		struct wanted w;
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

bool notes_has_next(uint64_t id)
{
	struct wanted list[LIMIT_AHEAD_IMAGES];

	pthread_mutex_lock(&lock);
	struct notes *t = *find(id);
	bool some = t && follow(t, list, 0);

	pthread_mutex_unlock(&lock);
	return some;
}

void notes_put_ahead(uint64_t id, struct msg *out)
{
	struct wanted list[LIMIT_AHEAD_IMAGES];
	unsigned count = 0;
	size_t bytes = 0;

	pthread_mutex_lock(&lock);
	struct notes *first = *find(id);

	if (first)
		count = follow(first, list, 0);
	for (unsigned i = 0; i < count; i++) {
		struct notes t = {.n = 0};

		if (is_known(list[i].digest) || list[i].size > LIMIT_AHEAD_BYTES - bytes)
			continue;
		memcpy(t.digest, list[i].digest, DIGEST);
		read_notes(&t);
		if (put_image_ahead(&t, list[i].size, out)) {
			bytes += list[i].size;
			count = follow(&t, list, count);
		}
		free(t.bytes);
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
	}
	pthread_mutex_unlock(&lock);
	free(k);
	return bytes;
}
