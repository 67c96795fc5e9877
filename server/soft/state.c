/* SPDX-License-Identifier: Apache-2.0 */
/* Start-up and options of the software device, handles, and the state of each calling thread.
 *
 * Thread rule: see state.h; everything here but state_init and thread_self is called with the lock held. */
#include "server/soft/allocation.h"
#include "server/soft/state.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "server/soft/context.h"
#include "server/soft/engine.h"
#include "server/soft/logs.h"
#include "server/soft/memory.h"
#include "server/soft/stream.h"
#include "server/soft/usage.h"
#include "wire/log.h"

_Static_assert(USAGE_DEVICES == ALLOCATION_DEVICES, "what is counted is told");

#define MEMORY_MOST (4ull << 30)
#define WORKERS_MOST 256
#define DEVICES_MOST 8
#define HANDLES_MOST (1u << 24)

struct state soft = {.lock = PTHREAD_MUTEX_INITIALIZER, .progress = PTHREAD_COND_INITIALIZER, .next_id = 1};

/* ---- handles: (generation, index), so that a stale one is noticed */

struct slot {
	struct object *object;
	uint32_t generation;
	uint32_t next_free;
};
static struct slot *slots;
static uint32_t nslots, free_slot; /* index 0 is never given out */

#define HANDLE_SHIFT 4 /* handles look like aligned pointers and are never CUDA's stream values 0, 1 and 2   \
			*/

static bool slots_grow(void)
{
	uint32_t n = nslots ? nslots * 2 : 1024;
	if (n > HANDLES_MOST)
		return false;
	struct slot *s = realloc(slots, n * sizeof *s);
	if (!s)
		return false;
	slots = s;
	memset(slots + nslots, 0, (n - nslots) * sizeof *s);
	for (uint32_t i = n - 1; i >= (nslots ? nslots : 1); i--) {
		slots[i].next_free = free_slot;
		free_slot = i;
	}
	nslots = n;
	return true;
}

bool object_open(struct object *o, enum kind kind, struct context *context, void (*finish)(struct object *))
{
	if (!free_slot && !slots_grow())
		return false;
	uint32_t i = free_slot;
	free_slot = slots[i].next_free;
	slots[i].object = o;
	slots[i].generation = (slots[i].generation + 1) & 0xfffff;
	o->kind = kind;
	o->refs = 1;
	o->context = context;
	o->finish = finish;
	o->handle = ((uint64_t)slots[i].generation << 24 | i) << HANDLE_SHIFT;
	return true;
}

void *object_find(const void *handle, enum kind kind)
{
	uint64_t h = (uint64_t)(uintptr_t)handle, i = h >> HANDLE_SHIFT & 0xffffff;
	if (!h || i >= nslots)
		return NULL;
	struct object *o = slots[i].object;
	return o && o->handle == h && o->kind == kind ? o : NULL;
}

void object_close(struct object *o)
{
	if (o->handle) {
		uint32_t i = o->handle >> HANDLE_SHIFT & 0xffffff;
		slots[i].object = NULL;
		slots[i].next_free = free_slot;
		free_slot = i;
		o->handle = 0;
	}
	object_unref(o);
}

void *object_ref(void *p)
{
	struct object *o = p;
	if (o)
		o->refs++;
	return o;
}

void object_unref(void *p)
{
	struct object *o = p;
	if (o && !--o->refs)
		o->finish(o);
}

struct object *object_next(enum kind kind, uint32_t *i)
{
	while (++*i < nslots) {
		struct object *o = slots[*i].object;
		if (o && o->kind == kind)
			return o;
	}
	return NULL;
}

struct object *object_of(const struct context *c, enum kind kind)
{
	for (uint32_t i = 1; i < nslots; i++) {
		struct object *o = slots[i].object;
		if (o && o->context == c && o->kind == kind)
			return o;
	}
	return NULL;
}

/* ---- threads */

static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static __thread struct thread self;
static __thread bool known; /* thread_end will be told */

static void thread_end(void *p)
{
	struct thread *t = p;
	pthread_mutex_lock(&soft.lock);
	stream_thread_ended(t);
	context_thread_ended(t);
	pthread_mutex_unlock(&soft.lock);
	known = false; /* a later destructor of the program may use the API once more */
}

static void thread_key_make(void)
{
	if (pthread_key_create(&thread_key, thread_end))
		log_error("no thread key: per-thread streams end with the process only");
}

struct thread *thread_self(void)
{
	if (!known) {
		known = true;
		pthread_once(&thread_once, thread_key_make);
		pthread_setspecific(thread_key, &self);
	}
	return &self;
}

/* ---- start */

uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* A number from the environment with an optional K, M or G; `fallback` when unset or out of range (and then
 * says so). */
static uint64_t option(const char *name, uint64_t least, uint64_t most, uint64_t fallback)
{
	const char *s = getenv(name);
	if (!s || !*s)
		return fallback;
	char *end;
	errno = 0;
	unsigned long long v = strtoull(s, &end, 10);
	unsigned shift = *end == 'K' || *end == 'k'   ? 10
			 : *end == 'M' || *end == 'm' ? 20
			 : *end == 'G' || *end == 'g' ? 30
						      : 0;
	if (shift)
		end++;
	if (errno || *s == '-' || end == s || *end || v > most >> shift || v << shift < least) {
		log_warning("%s=%s: not a number from %llu to %llu; using %llu", name, s,
			(unsigned long long)least, (unsigned long long)most, (unsigned long long)fallback);
		return fallback;
	}
	return v << shift;
}

static void options(void)
{
	uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t memory = ram / 2 < MEMORY_MOST ? ram / 2 : MEMORY_MOST;
	soft.memory = option("SCUDAFS_SOFT_MEMORY", 1 << 20, 1ull << 40, memory) & ~4095ull;
	soft.devices = (int)option("SCUDAFS_SOFT_DEVICES", 1, DEVICES_MOST, 1);
	soft.workers = (unsigned)option("SCUDAFS_SOFT_WORKERS", 1, WORKERS_MOST, 0);
	soft.time_limit = (double)option("SCUDAFS_SOFT_TIME_LIMIT", 0, 1u << 30, 0);
	soft.major = 7;
	soft.minor = 5;
	const char *s = getenv("SCUDAFS_SOFT_CAPABILITY");
	if (s && *s) {
		bool good = s[0] >= '7' && s[0] <= '9' && s[1] == '.' && s[2] >= '0' && s[2] <= '9' && !s[3];
		if (good) {
			soft.major = s[0] - '0';
			soft.minor = s[2] - '0';
		} else {
			log_warning("SCUDAFS_SOFT_CAPABILITY=%s: not one of 7.0 to 9.9; using 7.5", s);
		}
	}
}

static void forked_child(void)
{
	/* only the forking thread lives on: the lock may have been held by another, and no runner exists any
	 * more */
	soft.forked = soft.initialised;
	pthread_mutex_init(&soft.lock, NULL);
	pthread_cond_init(&soft.progress, NULL);
}

CUresult state_init(void)
{
	pthread_mutex_lock(&soft.lock);
	CUresult result = CUDA_SUCCESS;
	if (soft.forked) {
		result = CUDA_ERROR_NOT_INITIALIZED;
	} else if (!soft.initialised) {
		log_init("scuda-soft", LOG_LEVEL_WARNING);
		options();
		devices_choose();
		int r = soft_mem_init(soft.memory);
		if (!soft.devices) {
			result = CUDA_ERROR_NO_DEVICE;
		} else if (r) {
			log_errno(r, "reserve address space for device memory: %m");
			result = CUDA_ERROR_OUT_OF_MEMORY;
		} else {
			char why[128];
			const char *wanted = getenv("SCUDAFS_SOFT_CHECK");
			if (!engine_set_check(wanted, why, sizeof why))
				log_error("SCUDAFS_SOFT_CHECK=%s: %s; nothing is checked", wanted, why);
			engine_init(soft.workers);
			soft.workers = engine_workers();
			if (!contexts_init())
				result = CUDA_ERROR_OUT_OF_MEMORY;
			_Atomic uint64_t *shown = usage_open();
			if (shown)
				memory_show(shown);
		}
		if (!result) {
			pthread_atfork(NULL, NULL, forked_child);
			soft.initialised = true;
		}
	}
	pthread_mutex_unlock(&soft.lock);
	return result;
}

/* ---- guards */

struct guard enter(void)
{
	pthread_mutex_lock(&soft.lock);
	if (soft.initialised && !soft.forked)
		return (struct guard){.held = true};
	pthread_mutex_unlock(&soft.lock);
	return (struct guard){.error = CUDA_ERROR_NOT_INITIALIZED};
}

void guard_leave(struct guard *g)
{
	if (g->held)
		pthread_mutex_unlock(&soft.lock);
	g->held = false;
	logs_tell();
}
