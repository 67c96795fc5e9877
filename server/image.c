/* SPDX-License-Identifier: Apache-2.0 */
/* Images on their way from a record to the driver. A program's end that takes an image for known sends its
 * digest in place of the bytes; the digest that a file in the cache bears is always one that we computed
 * ourselves over what we keep.
 *
 * Thread rule: see image.h; `lock` guards the list of what was loaded. */
#include "server/image.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/cache.h"
#include "server/serve.h"
#include "server/state.h"
#include "wire/image.h"
#include "wire/limits.h"

#define LIMIT_PARTS 4096

static bool take_bytes(struct exec *x, struct image *i, const uint8_t *wanted)
{
	if (wanted) {
		i->asked = true;
		memcpy(i->digest, wanted, DIGEST);
		i->bytes = cache_read(i->digest, i->n, IMAGE_TAIL);
		i->known = i->bytes;
		return true;
	}
	i->known = true;
	i->bytes = malloc(i->n + IMAGE_TAIL);
	if (!i->bytes || !exec_bulk(x, i->bytes, i->n))
		return false;
	memset(i->bytes + i->n, 0, IMAGE_TAIL);
	digest(i->bytes, i->n, i->digest);
	return true;
}

bool image_get(struct exec *x, struct image *i)
{
	uint64_t kind = get_u64(&x->in), total = 0;
	size_t parts = get_array(&x->in, LIMIT_PARTS), wanted_len = 0;
	size_t *size = exec_alloc(x, (parts + 1) * sizeof *size);
	const uint8_t *wanted;

	*i = (struct image){0};
	if (!size || !parts)
		return false;
	for (size_t k = 0; k < parts; k++) {
		size[k] = get_u64(&x->in);
		if (size[k] > LIMIT_IMAGE || (total += size[k]) > LIMIT_IMAGE)
			return false;
	}
	wanted = get_blob(&x->in, &wanted_len, DIGEST);
	if (x->in.bad || (wanted_len && (wanted_len != DIGEST || x->frame.bulk_len)) ||
		(!wanted_len && total != x->frame.bulk_len) || (parts > 1 && kind != IMAGE_WRAPPER2))
		return false;
	i->n = total;
	if (!take_bytes(x, i, wanted_len ? wanted : NULL))
		return false;
	if (!i->known)
		return true;
	i->code = i->bytes;
	if (kind != IMAGE_WRAPPER1 && kind != IMAGE_WRAPPER2) {
		i->whole = image_whole(i->bytes, total);
		return true;
	}
	i->whole = image_fatbin_whole(i->bytes, size[0]);
	i->wrapper = (struct image_wrapper){
		.magic = IMAGE_WRAPPER_MAGIC, .version = kind == IMAGE_WRAPPER2 ? 2 : 1, .data = i->bytes};
	if (kind == IMAGE_WRAPPER2) {
		const uint8_t *p = i->bytes + size[0];

		i->extra = exec_alloc(x, parts * sizeof *i->extra);
		if (!i->extra)
			return false;
		for (size_t k = 1; k < parts; k++) {
			i->extra[k - 1] = p;
			i->whole &= image_fatbin_whole(p, size[k]);
			p += size[k];
		}
		i->wrapper.extra = i->extra;
	}
	i->code = &i->wrapper;
	return true;
}

void image_keep(const struct image *i)
{
	if (!i->asked && i->n >= IMAGE_ASKED)
		cache_write(i->digest, i->bytes, i->n);
}

void image_finish(struct image *i)
{
	free(i->bytes);
	i->bytes = NULL;
}

/* ---- what is asked of it ---- */

struct told {
	struct told *next;
	uint64_t id;
	uint8_t digest[DIGEST];
	size_t n; /* of names, one behind the other with their NULs */
	char *names;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct told *all;

static struct told **find(uint64_t id)
{
	struct told **t = &all;

	while (*t && (*t)->id != id)
		t = &(*t)->next;
	return t;
}

/* What compiler options make of an image is another one. Those that only say where to write do not count. */
static void add_options(uint8_t d[DIGEST], const struct jit *j)
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
}

void told_begin(uint64_t id, const struct image *i, const struct jit *j)
{
	struct told *t = cache_is_open() ? calloc(1, sizeof *t) : NULL;

	if (!t)
		return;
	t->id = id;
	memcpy(t->digest, i->digest, DIGEST);
	add_options(t->digest, j);
	t->names = cache_names(t->digest, &t->n);
	t->n = t->names ? t->n : 0;
	pthread_mutex_lock(&lock);
	t->next = all;
	all = t;
	pthread_mutex_unlock(&lock);
}

/* A name is followed by a tab, which driver and device, and the attributes, "-" for one that there is not:
 *
 *     NAME[ TAB MACHINE DEVICE VALUE,VALUE,...]
 */
static char machine[17];

/* The snapshot names the driver's version and all that is known of the devices. */
static void name_machine(void)
{
	const struct session_start *s = session_self()->start;
	char text[2 * DIGEST + 1];
	uint8_t d[DIGEST];

	digest(s->snapshot, s->snapshot_len, d);
	digest_text(d, text);
	memcpy(machine, text, sizeof machine - 1);
}

static void know_machine(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, name_machine);
}

/* Returns how many bytes of the entry make it what it is; the values follow. */
static size_t join(char *entry, size_t cap, const char *name, const struct attributes *a)
{
	size_t n, same;

	know_machine();
	if (!a || a->device < 0)
		return (size_t)snprintf(entry, cap, "%s", name);
	n = same = (size_t)snprintf(entry, cap, "%s\t%s %d ", name, machine, a->device);
	for (unsigned i = 0; i < CU_FUNC_ATTRIBUTE_MAX; i++) {
		if (a->known >> i & 1)
			n += (size_t)snprintf(entry + n, cap - n, "%d,", a->value[i]);
		else
			n += (size_t)snprintf(entry + n, cap - n, "-,");
	}
	return same;
}

/* Ends the name where it ends. True, and the attributes, when they are of this machine and device and
 * whole. */
static bool split(char *entry, int device, struct attributes *a)
{
	char *p = strchr(entry, '\t'), *end;

	if (!p)
		return false;
	*p++ = 0;
	know_machine();
	*a = (struct attributes){.device = device};
	if (strncmp(p, machine, sizeof machine - 1) || strtol(p + sizeof machine - 1, &end, 10) != device)
		return false;
	p = end;
	for (unsigned i = 0; i < CU_FUNC_ATTRIBUTE_MAX; i++, p = end + 1) {
		a->value[i] = (int)strtol(p, &end, 10);
		if (end != p)
			a->known |= 1u << i;
		else if (*(end = p + (*p == ' ')) == '-')
			end++;
		if (*end != ',')
			return false;
	}
	return true;
}

void told_each(uint64_t id, int device, bool (*tell)(void *arg, const char *name, const struct attributes *a),
	void *arg)
{
	char *names = NULL;
	size_t n = 0;

	pthread_mutex_lock(&lock);
	struct told *t = *find(id);

	if (t && t->n && (names = malloc(t->n + 1))) {
		n = t->n;
		memcpy(names, t->names, n);
		names[n] = 0; /* the file may be cut off in the middle of a name */
	}
	pthread_mutex_unlock(&lock);
	for (size_t at = 0, len; at < n; at += len + 1) {
		len = strlen(names + at);
		struct attributes a;
		bool known = split(names + at, device, &a);

		if (names[at] && !tell(arg, names + at, known ? &a : NULL))
			break;
	}
	free(names);
}

/* Under the lock: whether that name is there for the same machine and device. `same` bytes of it tell. */
static bool has_name(const struct told *t, const char *entry, size_t same)
{
	for (size_t at = 0; at < t->n; at += strlen(t->names + at) + 1)
		if (!strncmp(t->names + at, entry, same) && (entry[same] || !t->names[at + same]))
			return true;
	return false;
}

/* Under the lock. */
static bool add_name(struct told *t, const char *entry)
{
	size_t len = strlen(entry) + 1;
	char *more;

	if (t->n + len > LIMIT_CACHE_NAMES || !(more = realloc(t->names, t->n + len + 1)))
		return false;
	memcpy(more + t->n, entry, len);
	t->names = more;
	t->n += len;
	t->names[t->n] = 0;
	return true;
}

void told_asked(uint64_t id, const char *name, const struct attributes *a)
{
	size_t cap = strlen(name) + 64 + CU_FUNC_ATTRIBUTE_MAX * 13, same;
	char *entry = *name && !strchr(name, '\t') ? malloc(cap) : NULL;
	uint8_t d[DIGEST];
	bool fresh = false;

	if (!entry)
		return;
	same = join(entry, cap, name, a);
	pthread_mutex_lock(&lock);
	struct told *t = *find(id);

	if (t) {
		fresh = !has_name(t, entry, same) && add_name(t, entry);
		memcpy(d, t->digest, DIGEST);
	}
	pthread_mutex_unlock(&lock);
	if (fresh)
		cache_note_name(d, entry);
	free(entry);
}

void told_end(uint64_t id)
{
	pthread_mutex_lock(&lock);
	struct told **p = find(id), *t = *p;

	if (t)
		*p = t->next;
	pthread_mutex_unlock(&lock);
	if (t)
		free(t->names);
	free(t);
}
