/* SPDX-License-Identifier: Apache-2.0 */
/* The handle table: two arrays of chunks indexed by the handle's number, one for the numbers that we choose
 * and one for the server's. A chunk, once there, stays mapped, so that a look-up needs no lock; the memory of
 * one that emptied goes back to the system.
 *
 * Thread rule: changes are made under `table`; a look-up reads the entry's type, which is written last when a
 * handle is noted and first when it dies. */
#include "devshim/handle.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "cuda.calls.h"
#include "devshim/call.h"
#include "devshim/context.h"
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#define CHUNK 4096u
#define CHUNKS (HANDLE_SERVER / CHUNK)

struct entry {
	_Atomic uint32_t type;      /* HANDLE_NONE: dead */
	uint32_t owner;             /* number of the context, or 0 */
	void *_Atomic data;
};

static struct {
	struct entry *_Atomic chunk[2][CHUNKS];
	uint32_t live[2][CHUNKS];
	uint32_t used[2];           /* chunks up to here were made */
	uint32_t next;              /* our next number, counted from HANDLE_OWN */
	pthread_mutex_t lock;
	void (*release[HANDLE_TYPES])(const void *h, void *data);
} table;    /* all zero, a good mutex too: it is large, and must not be in the file */

bool handle_is_owned(unsigned type)
{
	switch (type) {
	case HANDLE_CUmodule:
	case HANDLE_CUfunction:
	case HANDLE_CUstream:
	case HANDLE_CUevent:
	case HANDLE_CUarray:
	case HANDLE_CUmipmappedArray:
	case HANDLE_CUtexref:
	case HANDLE_CUsurfref:
	case HANDLE_CUexternalMemory:
	case HANDLE_CUexternalSemaphore:
	case HANDLE_CUlinkState:
		return true;
	default:
		return false;
	}
}

CUresult handle_error(unsigned type)
{
	switch (type) {
	case HANDLE_CUcontext:
	case HANDLE_CUgreenCtx:
		return CUDA_ERROR_INVALID_CONTEXT;
	case HANDLE_CUgraph:
	case HANDLE_CUgraphNode:
	case HANDLE_CUgraphExec:
	case HANDLE_CUmemoryPool:
	case HANDLE_CUuserObject:
	case HANDLE_CUlinkState:
		return CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_INVALID_HANDLE;
	}
}

static uint32_t number_of(const void *h) { return HANDLE_NUMBER((uintptr_t)h); }

/* A value with bits between type and number set is none of ours. */
static bool well_formed(unsigned type, const void *h)
{
	return type > HANDLE_NONE && type < HANDLE_TYPES && handle_value(type, number_of(h)) == h;
}

static struct entry *entry_of(uint32_t number)
{
	unsigned side = number >= HANDLE_SERVER;
	uint32_t index = number & (HANDLE_SERVER - 1);
	struct entry *c = atomic_load_explicit(&table.chunk[side][index / CHUNK], memory_order_acquire);
	return c ? &c[index % CHUNK] : NULL;
}

/* Other names of handles. They are the driver's addresses, of which there are few: one stays when its handle
 * dies, until it is given again. */
struct name {
	const void *given;
	const void *_Atomic own;
	struct name *next;
};
static struct name *_Atomic names;

static struct name *name_of(const void *given)
{
	struct name *n = atomic_load_explicit(&names, memory_order_acquire);

	while (n && n->given != given)
		n = n->next;
	return n;
}

static const void *own_name(const void *h)
{
	struct name *n = well_formed(handle_type(h), h) ? NULL : name_of(h);

	return n ? atomic_load_explicit(&n->own, memory_order_acquire) : h;
}

static struct entry *live_entry(unsigned type, const void *h)
{
	h = own_name(h);
	if (!well_formed(type, h))
		return NULL;
	struct entry *e = entry_of(number_of(h));
	return e && atomic_load_explicit(&e->type, memory_order_acquire) == type ? e : NULL;
}

/* Under the lock. */
static struct entry *make_entry(uint32_t number)
{
	unsigned side = number >= HANDLE_SERVER;
	uint32_t i = (number & (HANDLE_SERVER - 1)) / CHUNK;
	if (!table.chunk[side][i]) {
		void *p = mmap(NULL, CHUNK * sizeof(struct entry), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return NULL;
#ifdef __SANITIZE_ADDRESS__
		/* The leak checker looks into no mapping by itself. */
		__lsan_register_root_region(p, CHUNK * sizeof(struct entry));
#endif
		atomic_store_explicit(&table.chunk[side][i], p, memory_order_release);
		if (table.used[side] <= i)
			table.used[side] = i + 1;
	}
	return entry_of(number);
}

/* Under the lock. */
static bool note(unsigned type, uint32_t number, uint32_t owner)
{
	struct entry *e = make_entry(number);
	if (!e)
		return false;
	if (!atomic_load_explicit(&e->type, memory_order_relaxed))
		table.live[number >= HANDLE_SERVER][(number & (HANDLE_SERVER - 1)) / CHUNK]++;
	e->owner = owner;
	atomic_store_explicit(&e->data, NULL, memory_order_relaxed);
	atomic_store_explicit(&e->type, type, memory_order_release);
	return true;
}

static uint32_t owner_number(unsigned type, CUcontext owner)
{
	return handle_is_owned(type) ? number_of(owner) : 0;
}

bool handle_note(unsigned type, const void *h, CUcontext owner)
{
	if (!well_formed(type, h))
		return false;
	if (live_entry(type, h))
		return true;
	int saved = errno;
	pthread_mutex_lock(&table.lock);
	bool ok = note(type, number_of(h), owner_number(type, owner));
	pthread_mutex_unlock(&table.lock);
	errno = saved;
	return ok;
}

static void *new_in(unsigned type, CUcontext owner)
{
	int saved = errno;
	void *h = NULL;
	pthread_mutex_lock(&table.lock);
	/* Numbers are not used again before all others were, so that a destroyed handle stays
	 * recognisable. */
	for (unsigned tries = 0; tries < HANDLE_SERVER - HANDLE_OWN; tries++) {
		uint32_t number = HANDLE_OWN + table.next;
		table.next = number + 1 == HANDLE_SERVER ? 0 : table.next + 1;
		struct entry *e = entry_of(number);
		if (e && atomic_load_explicit(&e->type, memory_order_relaxed))
			continue;
		if (note(type, number, owner_number(type, owner)))
			h = handle_value(type, number);
		break;
	}
	pthread_mutex_unlock(&table.lock);
	errno = saved;
	return h;
}

void *handle_new(unsigned type)
{
	struct context *current = context_current();
	return new_in(type, current ? current->handle : NULL);
}

void *handle_new_of(unsigned type, unsigned parent_type, const void *parent)
{
	CUcontext owner = handle_owner(parent_type, parent);
	return owner ? new_in(type, owner) : handle_new(type);
}

/* Under the lock. Returns the word that the release function gets. */
static void *kill_entry(struct entry *e, uint32_t number)
{
	unsigned side = number >= HANDLE_SERVER;
	uint32_t i = (number & (HANDLE_SERVER - 1)) / CHUNK;
	void *data = atomic_load_explicit(&e->data, memory_order_relaxed);
	atomic_store_explicit(&e->type, HANDLE_NONE, memory_order_release);
	atomic_store_explicit(&e->data, NULL, memory_order_relaxed);
	/* The chunk that is being filled is left alone. */
	if (--table.live[side][i] == 0 && i + 1 < table.used[side])
		madvise(table.chunk[side][i], CHUNK * sizeof(struct entry), MADV_DONTNEED);
	return data;
}

void handle_drop(unsigned type, const void *h)
{
	int saved = errno;
	void *data = NULL;
	h = own_name(h);
	pthread_mutex_lock(&table.lock);
	struct entry *e = live_entry(type, h);
	if (e)
		data = kill_entry(e, number_of(h));
	pthread_mutex_unlock(&table.lock);
	if (data && table.release[type])
		table.release[type](h, data);
	errno = saved;
}

/* Under the lock: the next handle of that owner at or after *number; its entry dies. */
static bool next_of_owner(unsigned side, uint32_t owner, uint32_t *index, unsigned *type, void **data)
{
	for (uint32_t end = table.used[side] * CHUNK; *index < end; ++*index) {
		uint32_t number = *index | (side ? HANDLE_SERVER : 0);
		if (*index % CHUNK == 0 && !table.live[side][*index / CHUNK]) {
			*index += CHUNK - 1;
			continue;
		}
		struct entry *e = entry_of(number);
		*type = e ? atomic_load_explicit(&e->type, memory_order_relaxed) : HANDLE_NONE;
		if (*type && e->owner == owner) {
			*data = kill_entry(e, number);
			return true;
		}
	}
	return false;
}

void handle_drop_owner(CUcontext owner)
{
	int saved = errno;
	for (unsigned side = 0; side < 2; side++) {
		uint32_t index = 0;
		for (;;) {
			unsigned type;
			void *data = NULL;
			pthread_mutex_lock(&table.lock);
			bool found = next_of_owner(side, number_of(owner), &index, &type, &data);
			pthread_mutex_unlock(&table.lock);
			if (!found)
				break;
			if (data && table.release[type])
				table.release[type](handle_value(type, index | (side ? HANDLE_SERVER : 0)),
						data);
		}
	}
	errno = saved;
}

bool handle_rename(unsigned type, const void *h, const void *name)
{
	bool fit = live_entry(type, h) && !well_formed(handle_type(name), name);
	struct name *n;

	pthread_mutex_lock(&table.lock);
	n = fit ? name_of(name) : NULL;
	if (n) {
		atomic_store_explicit(&n->own, h, memory_order_release);
	} else if (fit && (n = calloc(1, sizeof *n))) {
		n->given = name;
		atomic_init(&n->own, h);
		n->next = atomic_load_explicit(&names, memory_order_relaxed);
		atomic_store_explicit(&names, n, memory_order_release);
	}
	pthread_mutex_unlock(&table.lock);
	return n;
}

bool handle_live(unsigned type, const void *h) { return live_entry(type, h); }

void *handle_data(unsigned type, const void *h)
{
	struct entry *e = live_entry(type, h);
	return e ? atomic_load_explicit(&e->data, memory_order_acquire) : NULL;
}

bool handle_set_data(unsigned type, const void *h, void *data)
{
	struct entry *e = live_entry(type, h);
	if (e)
		atomic_store_explicit(&e->data, data, memory_order_release);
	return e;
}

CUcontext handle_owner(unsigned type, const void *h)
{
	struct entry *e = live_entry(type, h);
	return e && e->owner ? handle_value(HANDLE_CUcontext, e->owner) : NULL;
}

void handle_on_drop(unsigned type, void (*release)(const void *h, void *data))
{
	if (type < HANDLE_TYPES)
		table.release[type] = release;
}

bool put_handle(struct call *c, unsigned type, const void *h)
{
	uintptr_t v = (uintptr_t)h;
	if (type == HANDLE_CUstream && v <= 2) {
		put_u64(&c->out, v == 0 && ptds_active() ? 2 : v);
		return true;
	}
	/* A kernel is accepted wherever a function is. */
	struct entry *e = live_entry(type, h);
	if (!e && !(type == HANDLE_CUfunction && live_entry(HANDLE_CUkernel, h)))
		return false;
	if (e && e->owner && !c->owner)
		c->owner = handle_value(HANDLE_CUcontext, e->owner);
	put_u64(&c->out, (uintptr_t)own_name(h));
	return true;
}

void *get_handle(struct call *c, unsigned type)
{
	uint64_t v = get_u64(&c->in);
	void *h = (void *)(uintptr_t)v;
	if (c->in.bad || !h)
		return NULL;
	if (type == HANDLE_CUstream && v <= 2)
		return h;
	if (type == HANDLE_CUfunction && handle_type(h) == HANDLE_CUkernel)
		type = HANDLE_CUkernel;
	struct context *current = context_current();
	CUcontext owner = c->owner ? c->owner : current ? current->handle : NULL;
	/* Our own numbers are known already, or were destroyed meanwhile. */
	if (!well_formed(type, h) || (number_of(h) >= HANDLE_SERVER &&
			!handle_note(type, h, owner))) {
		c->in.bad = true;
		return NULL;
	}
	return h;
}
