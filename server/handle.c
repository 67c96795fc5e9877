/* SPDX-License-Identifier: Apache-2.0 */
/* Two chained hash tables over one array of entries. Entries are named by index, so that the array may grow.
 * Each thread remembers the handles that it looked up last, which for launches are the same again and again.
 *
 * Thread rule: one mutex, held for a lookup only. What a thread remembers is its own, and nothing any more
 * when `removed` has moved. */
#include "server/handle.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "wire/limits.h"

#define NONE UINT32_MAX

struct entry {
	uint64_t id, parent;
	void *real;
	uint32_t next_id, next_real;    /* chains; next_id also links the free list */
	uint32_t children;              /* live entries whose parent this is */
	bool changed;
	bool ending;                    /* not in a chain of by_real */
};

struct handles {
	pthread_mutex_t lock;
	struct entry *entry;
	uint32_t *by_id, *by_real;      /* `buckets` heads each */
	uint32_t buckets, used, free;   /* used: entries ever taken; free: head of the free list */
	uint32_t live;
	uint32_t next_number;
};

#define RECENT 16
static _Atomic uint64_t removed;        /* handles of all tables that were forgotten */
static _Thread_local struct {
	const struct handles *h;
	uint64_t id, removed;
	void *real;
} recent[RECENT];

struct handles *handles_create(void)
{
	struct handles *h = calloc(1, sizeof *h);

	if (!h)
		return NULL;
	pthread_mutex_init(&h->lock, NULL);
	h->free = NONE;
	h->next_number = HANDLE_SERVER;
	return h;
}

void handles_destroy(struct handles *h)
{
	if (!h)
		return;
	atomic_fetch_add(&removed, 1);
	pthread_mutex_destroy(&h->lock);
	free(h->entry);
	free(h->by_id);
	free(h->by_real);
	free(h);
}

static uint32_t hash(const struct handles *h, uint64_t v)
{
	return (v * 0x9e3779b97f4a7c15ull >> 32) & (h->buckets - 1);
}

static uint32_t hash_real(const struct handles *h, unsigned type, const void *real)
{
	return hash(h, (uint64_t)real ^ (uint64_t)type << 48);
}

static uint32_t find_id(const struct handles *h, uint64_t id)
{
	uint32_t i = h->buckets ? h->by_id[hash(h, id)] : NONE;

	while (i != NONE && h->entry[i].id != id)
		i = h->entry[i].next_id;
	return i;
}

static uint32_t find_real(const struct handles *h, unsigned type, const void *real)
{
	uint32_t i = h->buckets ? h->by_real[hash_real(h, type, real)] : NONE;

	while (i != NONE && (h->entry[i].real != real || HANDLE_TYPE(h->entry[i].id) != type))
		i = h->entry[i].next_real;
	return i;
}

static void link_entry(struct handles *h, uint32_t i)
{
	struct entry *e = &h->entry[i];
	uint32_t *id = &h->by_id[hash(h, e->id)];
	uint32_t *real = &h->by_real[hash_real(h, HANDLE_TYPE(e->id), e->real)];

	e->next_id = *id;
	*id = i;
	if (e->ending)
		return;
	e->next_real = *real;
	*real = i;
}

static void unlink_entry(struct handles *h, uint32_t i)
{
	struct entry *e = &h->entry[i];
	uint32_t *p = &h->by_id[hash(h, e->id)];

	while (*p != i)
		p = &h->entry[*p].next_id;
	*p = e->next_id;
	if (e->ending)
		return;
	p = &h->by_real[hash_real(h, HANDLE_TYPE(e->id), e->real)];
	while (*p != i)
		p = &h->entry[*p].next_real;
	*p = e->next_real;
}

/* Doubles the arrays and links everything anew; dead entries are told by id 0. */
static bool grow(struct handles *h)
{
	uint32_t n = h->buckets ? h->buckets * 2 : 256;
	struct entry *entry = realloc(h->entry, n * sizeof *entry);
	uint32_t *by_id, *by_real;

	if (!entry)
		return false;
	h->entry = entry;
	by_id = malloc(n * sizeof *by_id);
	by_real = malloc(n * sizeof *by_real);
	if (!by_id || !by_real) {
		free(by_id);
		free(by_real);
		return false;
	}
	free(h->by_id);
	free(h->by_real);
	h->by_id = by_id;
	h->by_real = by_real;
	h->buckets = n;
	memset(by_id, 0xff, n * sizeof *by_id);
	memset(by_real, 0xff, n * sizeof *by_real);
	for (uint32_t i = 0; i < h->used; i++)
		if (h->entry[i].id)
			link_entry(h, i);
	return true;
}

static bool insert(struct handles *h, uint64_t id, void *real, uint64_t parent)
{
	uint32_t i = h->free;

	if (h->live >= LIMIT_HANDLES)
		return false;
	if (i != NONE) {
		h->free = h->entry[i].next_id;
	} else {
		if (h->used == h->buckets && !grow(h))
			return false;
		i = h->used++;
	}
	h->entry[i] = (struct entry){.id = id, .parent = parent, .real = real};
	link_entry(h, i);
	h->live++;
	i = parent ? find_id(h, parent) : NONE;
	if (i != NONE)
		h->entry[i].children++;
	return true;
}

static void remove_entry(struct handles *h, uint32_t i)
{
	uint32_t parent = h->entry[i].parent ? find_id(h, h->entry[i].parent) : NONE;

	unlink_entry(h, i);
	h->live--;
	if (parent != NONE)
		h->entry[parent].children--;
	h->entry[i] = (struct entry){.next_id = h->free};
	h->free = i;
	atomic_fetch_add(&removed, 1);
}

/* Parents are older than their children, so this ends. */
static void remove_with_children(struct handles *h, uint32_t i)
{
	uint64_t id = h->entry[i].id;

	for (uint32_t j = 0; h->entry[i].children && j < h->used; j++)
		if (h->entry[j].id && h->entry[j].parent == id)
			remove_with_children(h, j);
	remove_entry(h, i);
}

void *handle_real(struct handles *h, unsigned type, uint64_t id)
{
	unsigned at = (HANDLE_NUMBER(id) + HANDLE_TYPE(id)) % RECENT;
	void *real = NULL;
	uint32_t i;

	if (HANDLE_TYPE(id) != type)
		return NULL;
	if (recent[at].h == h && recent[at].id == id && recent[at].removed == atomic_load(&removed))
		return recent[at].real;
	pthread_mutex_lock(&h->lock);
	i = find_id(h, id);
	if (i != NONE) {
		real = h->entry[i].real;
		recent[at].h = h;
		recent[at].id = id;
		recent[at].real = real;
		recent[at].removed = atomic_load(&removed);
	}
	pthread_mutex_unlock(&h->lock);
	return real;
}

uint64_t handle_id(struct handles *h, unsigned type, const void *real)
{
	uint64_t id = 0;
	uint32_t i;

	pthread_mutex_lock(&h->lock);
	i = find_real(h, type, real);
	if (i != NONE)
		id = h->entry[i].id;
	pthread_mutex_unlock(&h->lock);
	return id;
}

uint64_t handle_add(struct handles *h, unsigned type, void *real, uint64_t parent)
{
	uint64_t id;
	uint32_t i;

	pthread_mutex_lock(&h->lock);
	i = find_real(h, type, real);
	if (i != NONE) {
		id = h->entry[i].id;
	} else {
		/* A number comes again only after all others were given; LIMIT_HANDLES of them are alive at
		 * most. */
		do {
			id = HANDLE_ID(type, h->next_number);
			h->next_number = h->next_number == UINT32_MAX ? HANDLE_SERVER : h->next_number + 1;
		} while (find_id(h, id) != NONE);
		if (!insert(h, id, real, parent))
			id = 0;
	}
	pthread_mutex_unlock(&h->lock);
	return id;
}

static bool bind(struct handles *h, unsigned type, uint64_t id, void *real, uint64_t parent)
{
	uint32_t number = HANDLE_NUMBER(id);
	uint32_t i;
	bool ok;

	if (id != HANDLE_ID(type, number) || number < HANDLE_FIRST || number >= HANDLE_SERVER)
		return false;
	pthread_mutex_lock(&h->lock);
	i = find_id(h, id);
	if (i != NONE) {
		ok = h->entry[i].real == real;
	} else {
		/* The driver uses a number again whose last bearer died with its context: the old id is
		 * dead. */
		i = parent ? NONE : find_real(h, type, real);
		if (i != NONE)
			remove_with_children(h, i);
		ok = insert(h, id, real, parent);
	}
	pthread_mutex_unlock(&h->lock);
	return ok;
}

bool handle_bind(struct handles *h, unsigned type, uint64_t id, void *real)
{
	return bind(h, type, id, real, 0);
}

bool handle_bind_child(struct handles *h, unsigned type, uint64_t id, void *real, uint64_t parent)
{
	return bind(h, type, id, real, parent);
}

void handle_ending(struct handles *h, uint64_t id, bool ending)
{
	uint32_t i;

	pthread_mutex_lock(&h->lock);
	i = find_id(h, id);
	if (i != NONE) {
		unlink_entry(h, i);
		h->entry[i].ending = ending;
		link_entry(h, i);
	}
	pthread_mutex_unlock(&h->lock);
}

void handle_replace(struct handles *h, uint64_t id, void *real)
{
	uint32_t i;

	pthread_mutex_lock(&h->lock);
	i = find_id(h, id);
	if (i != NONE) {
		unlink_entry(h, i);
		h->entry[i].real = real;
		link_entry(h, i);
		atomic_fetch_add(&removed, 1);
	}
	pthread_mutex_unlock(&h->lock);
}

void handle_change(struct handles *h, uint64_t id)
{
	uint32_t i;

	pthread_mutex_lock(&h->lock);
	i = find_id(h, id);
	if (i != NONE)
		h->entry[i].changed = true;
	pthread_mutex_unlock(&h->lock);
}

bool handle_changed(struct handles *h, uint64_t id)
{
	bool changed;
	uint32_t i;

	pthread_mutex_lock(&h->lock);
	i = find_id(h, id);
	changed = i != NONE && h->entry[i].changed;
	pthread_mutex_unlock(&h->lock);
	return changed;
}

uint64_t handle_parent(struct handles *h, uint64_t id)
{
	uint64_t parent = 0;
	uint32_t i;

	pthread_mutex_lock(&h->lock);
	i = find_id(h, id);
	if (i != NONE)
		parent = h->entry[i].parent;
	pthread_mutex_unlock(&h->lock);
	return parent;
}

void handle_drop(struct handles *h, uint64_t id)
{
	uint32_t i;

	pthread_mutex_lock(&h->lock);
	i = find_id(h, id);
	if (i != NONE)
		remove_with_children(h, i);
	pthread_mutex_unlock(&h->lock);
}
