/* SPDX-License-Identifier: Apache-2.0 */
/* cuGetExportTable: tables of functions that CUDA's own libraries use and no header names. Each is an
 * array of words, the first of which is its size in bytes; slots that nobody was seen to call hold a
 * function that says so in the log. Everything is answered here, from public functions, before cuInit
 * too.
 *
 * Thread rule: the tables are constant once the library is loaded; context-local storage has a lock and a
 * small cache per thread. */
#include "devshim/tables.h"
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "devshim/compiled.h"
#include "wire/cuda.h"
#include "wire/image.h"
#include "wire/log.h"

typedef const void *word;
#define SIZE(words) ((word)((words) * sizeof(word)))

/* ---- slots that nobody was seen to call: each has a function of its own, which knows its number. */

static CUresult unknown(const char *table, int slot)
{
	log_warning("an unknown function of a private table was called: %s[%d]", table, slot);
	return CUDA_ERROR_NOT_SUPPORTED;
}

#define SLOT(table, n) \
	static CUresult table##_slot_##n(void) \
	{ \
		return unknown(#table, n); \
	}
#define NAMED(table, n) table##_slot_##n,
#define TEN(what, table, tens) \
	what(table, tens##0) what(table, tens##1) what(table, tens##2) what(table, tens##3) \
	what(table, tens##4) what(table, tens##5) what(table, tens##6) what(table, tens##7) \
	what(table, tens##8) what(table, tens##9)
#define TWENTY(what, table) TEN(what, table, ) TEN(what, table, 1)
#define NINETY(what, table) \
	TWENTY(what, table) TEN(what, table, 2) TEN(what, table, 3) TEN(what, table, 4) TEN(what, table, 5) \
	TEN(what, table, 6) TEN(what, table, 7) TEN(what, table, 8)
#define UNKNOWN(table, all) \
	all(SLOT, table) static CUresult (*const table##_slots[])(void) = {all(NAMED, table)};
UNKNOWN(cudart, TWENTY)
UNKNOWN(hooks, TWENTY)
UNKNOWN(tls, TWENTY)
UNKNOWN(checks, TWENTY)
UNKNOWN(integrity, TWENTY)
UNKNOWN(ctx_id, NINETY)
UNKNOWN(func, NINETY)
UNKNOWN(lt_list, TWENTY)
UNKNOWN(compiled, TWENTY)

/* ---- the runtime's own interface */

static CUresult cudart_load(CUmodule *out, const struct image_wrapper *w)
{
	if (!out || !w)
		return CUDA_ERROR_INVALID_VALUE;
	if (w->magic != IMAGE_WRAPPER_MAGIC)
		return CUDA_ERROR_INVALID_IMAGE;
	return cuModuleLoadData(out, w->data);
}

static CUresult cudart_primary(CUcontext *out, CUdevice device)
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = tables_primary_context(device);
	return *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult cudart_load_with(CUmodule *out, const struct image_wrapper *w, void *a, void *b, unsigned n)
{
	return a || b || n ? CUDA_ERROR_NOT_SUPPORTED : cudart_load(out, w);
}

static void cudart_unload(size_t unused) { (void)unused; }

static CUresult cudart_load_fatbin(const void *fatbin, CUmodule *out, void *a, void *b, unsigned n)
{
	if (a || b || n)
		return CUDA_ERROR_NOT_SUPPORTED;
	return out && fatbin ? cuModuleLoadData(out, fatbin) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult cudart_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		unsigned bz, unsigned shared, CUstream stream, void **extra)
{
	return cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, NULL, extra);
}

static CUresult cudart_preload(void) { return CUDA_SUCCESS; }

static word cudart[13] = {SIZE(13), cudart_load, cudart_primary, [6] = cudart_load_with, cudart_unload,
	cudart_load_fatbin, cudart_launch, [12] = cudart_preload};

/* ---- profiler hooks: flags by the number of a runtime function, all off. Counts are of entries; newer
 * runtimes want more than older ones had. */

static uint32_t hooks_flags[4096], hooks_more[64];

static void hooks_api(void **flags, size_t *count)
{
	*flags = hooks_flags;
	*count = sizeof hooks_flags / sizeof *hooks_flags;
}

static void hooks_other(void **flags, size_t *count)
{
	*flags = hooks_more;
	*count = sizeof hooks_more / sizeof *hooks_more;
}

static word hooks[7] = {SIZE(7), [2] = hooks_api, [6] = hooks_other};

static CUresult tls_current(CUcontext *out) { return cuCtxGetCurrent(out); }
static word tls[4] = {SIZE(4), [2] = tls_current};

/* ---- context-local storage: what a runtime keeps for each context. Asked by nearly every call of the
 * runtime, so each thread remembers what it found. */

struct kept {
	struct kept *next;
	CUcontext ctx;
	void *key, *value;
	void (*destroy)(CUcontext ctx, void *key, void *value);
};
#define KEPT_BUCKETS 64
static struct kept *kept[KEPT_BUCKETS];
static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t kept_version = 1;   /* changes with every change of the table */

#define SEEN 4
struct seen { uint64_t version; CUcontext ctx; void *key, *value; };
static _Thread_local struct seen seen[SEEN] __attribute__((tls_model("initial-exec")));

static unsigned bucket(CUcontext ctx, const void *key)
{
	return (unsigned)((((uintptr_t)ctx ^ (uintptr_t)key >> 3) * 0x9e3779b97f4a7c15ull) >> 58);
}

static struct kept **find_kept(CUcontext ctx, const void *key)
{
	struct kept **k = &kept[bucket(ctx, key)];
	while (*k && ((*k)->ctx != ctx || (*k)->key != key))
		k = &(*k)->next;
	return k;
}

/* NULL stands for the current context. */
static CUresult cls_context(CUcontext *ctx)
{
	if (*ctx)
		return CUDA_SUCCESS;
	CUresult r = cuCtxGetCurrent(ctx);
	return r ? r : *ctx ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

static CUresult cls_put(CUcontext ctx, void *key, void *value, void (*destroy)(CUcontext, void *, void *))
{
	CUresult r = cls_context(&ctx);
	if (r)
		return r;
	int saved = errno;
	struct kept *fresh = malloc(sizeof *fresh);
	pthread_mutex_lock(&kept_lock);
	struct kept **k = find_kept(ctx, key);
	if (!*k && fresh) {
		*fresh = (struct kept){.ctx = ctx, .key = key};
		*k = fresh;
		fresh = NULL;
	}
	if (*k) {
		(*k)->value = value;
		(*k)->destroy = destroy;
	} else {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	atomic_fetch_add(&kept_version, 1);
	pthread_mutex_unlock(&kept_lock);
	free(fresh);
	errno = saved;
	return r;
}

static CUresult cls_delete(CUcontext ctx, void *key)
{
	/* Comes at the exit of the process too, when no context can be asked for any more. */
	CUresult r = cls_context(&ctx);
	if (r)
		return r;
	int saved = errno;
	pthread_mutex_lock(&kept_lock);
	struct kept **k = find_kept(ctx, key), *gone = *k;
	if (gone)
		*k = gone->next;
	atomic_fetch_add(&kept_version, 1);
	pthread_mutex_unlock(&kept_lock);
	free(gone);
	errno = saved;
	return gone ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult cls_get(void **value, CUcontext ctx, void *key)
{
	CUresult r = cls_context(&ctx);
	if (r)
		return r;
	uint64_t version = atomic_load_explicit(&kept_version, memory_order_acquire);
	for (unsigned i = 0; i < SEEN; i++) {
		if (seen[i].key == key && seen[i].ctx == ctx && seen[i].version == version) {
			*value = seen[i].value;
			return CUDA_SUCCESS;
		}
	}
	static _Thread_local unsigned next __attribute__((tls_model("initial-exec")));
	pthread_mutex_lock(&kept_lock);
	struct kept *k = *find_kept(ctx, key);
	if (k) {
		seen[next].version = atomic_load(&kept_version);
		seen[next].ctx = ctx;
		seen[next].key = key;
		*value = seen[next].value = k->value;
		next = (next + 1) % SEEN;
	}
	pthread_mutex_unlock(&kept_lock);
	return k ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

void tables_context_died(CUcontext ctx)
{
	struct kept *dead = NULL, **end = &dead;
	pthread_mutex_lock(&kept_lock);
	for (unsigned i = 0; i < KEPT_BUCKETS; i++) {
		for (struct kept **k = &kept[i]; *k;) {
			if ((*k)->ctx != ctx) {
				k = &(*k)->next;
				continue;
			}
			*end = *k;
			*k = (*k)->next;
			end = &(*end)->next;
			*end = NULL;
		}
	}
	atomic_fetch_add(&kept_version, 1);
	pthread_mutex_unlock(&kept_lock);
	while (dead) {
		struct kept *k = dead;
		dead = k->next;
		if (k->destroy)
			k->destroy(ctx, k->key, k->value);
		free(k);
	}
}

/* The only table without its size in front. */
static const word cls[4] = {cls_put, cls_delete, cls_get, NULL};

/* ---- is a context a wrapper around another? Never. */

static CUresult checks_wrapped(CUcontext ctx, unsigned *wrapped, CUcontext *inner)
{
	(void)ctx;
	(void)inner;
	if (!wrapped)
		return CUDA_ERROR_INVALID_VALUE;
	*wrapped = 0;
	return CUDA_SUCCESS;
}

static unsigned checks_flag(void) { return 0; }

static word checks[16] = {SIZE(16), [2] = checks_wrapped, checks_flag};

/* ---- the runtime's self-test */

static CUresult integrity_answer(uint32_t version, uint64_t seconds, uint8_t out[16]);
static word integrity[3] = {SIZE(3), integrity_answer};

static CUresult integrity_answer(uint32_t version, uint64_t seconds, uint8_t out[16])
{
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (!handshake_answer)
		return unknown("integrity", 1);
	return handshake_answer(version, seconds, cudart, integrity, integrity[1], out);
}

/* ---- ids of contexts and streams. An internal stream object is the stream's own value here, but for the
 * default streams, whose values are no pointers. */

static char default_streams[3];

static CUresult ctx_id_device(CUcontext ctx, CUdevice *device) { return cuCtxGetDevice_v2(device, ctx); }

static CUresult ctx_id_id(CUcontext ctx, uint64_t *id)
{
	unsigned long long n = 0;
	CUresult r = id ? cuCtxGetId(ctx, &n) : CUDA_ERROR_INVALID_VALUE;
	if (!r)
		*id = n;
	return r;
}

static CUresult ctx_id_stream(CUcontext ctx, CUstream stream, void **internal, int per_thread)
{
	(void)ctx;
	uintptr_t v = (uintptr_t)stream;
	if (!internal)
		return CUDA_ERROR_INVALID_VALUE;
	if (v == 0 && per_thread)
		v = 2;
	*internal = v < sizeof default_streams ? &default_streams[v] : (void *)stream;
	return CUDA_SUCCESS;
}

static CUresult ctx_id_stream_id(CUcontext ctx, void *internal, uint64_t *id)
{
	CUstream stream = internal;
	for (uintptr_t v = 0; v < sizeof default_streams; v++)
		if (internal == &default_streams[v])
			stream = (CUstream)v;
	if (!id || !internal)
		return CUDA_ERROR_INVALID_VALUE;
	CUcontext current;
	CUresult r = cuCtxGetCurrent(&current);
	bool foreign = !r && ctx && ctx != current;
	unsigned long long n = 0;
	if (foreign)
		r = cuCtxPushCurrent_v2(ctx);
	if (r)
		return r;
	r = cuStreamGetId(stream, &n);
	if (foreign)
		cuCtxPopCurrent_v2(&current);
	if (!r)
		*id = n;
	return r;
}

static word ctx_id[90] = {
	SIZE(90), [3] = ctx_id_device, ctx_id_id, [39] = ctx_id_stream_id, [51] = ctx_id_stream};

/* ---- functions of a module. Answers their number, not a code. */

static unsigned func_enumerate(CUcontext ctx, CUmodule module,
		void (*each)(void *user, CUfunction f, uint64_t unused), void *user)
{
	(void)ctx;
	unsigned n = 0;
	if (!each || cuModuleGetFunctionCount(&n, module) || !n)
		return 0;
	CUfunction *f = calloc(n, sizeof *f);
	if (!f || cuModuleEnumerateFunctions(f, n, module))
		n = 0;
	for (unsigned i = 0; i < n; i++)
		each(user, f[i], 0);
	free(f);
	return n;
}

static word func[64] = {SIZE(64), [7] = func_enumerate};

/* ---- a list that cuBLASLt can do without, but whose absence kills it. */

static CUresult lt_list_get(void **list, size_t *n)
{
	(void)list;
	(void)n;
	return CUDA_ERROR_NOT_SUPPORTED;
}

static word lt_list[16] = {SIZE(16), [4] = lt_list_get};

/* ---- what NVRTC and nvJitLink compiled before */

static word compiled[16] = {SIZE(16), compiled_key, compiled_forget, compiled_find, compiled_keep,
	[6] = compiled_free};

/* ---- the tables by name. Those without one are a driver's, too; that they are missing here all callers take
 * well, with the code that is seen of it. What no driver knows is an invalid value. */

static const struct { const char *id; const word *table; } tables[] = {
	{"\x6b\xd5\xfb\x6c\x5b\xf4\xe7\x4a\x89\x87\xd9\x39\x12\xfd\x9d\xf9", cudart},
	{"\xa0\x94\x79\x8c\x2e\x74\x2e\x74\x93\xf2\x08\x00\x20\x0c\x0a\x66", hooks},
	{"\x42\xd8\x5a\x81\x23\xf6\xcb\x47\x82\x98\xf6\xe7\x8a\x3a\xec\xdc", tls},
	{"\xc6\x93\x33\x6e\x11\x21\xdf\x11\xa8\xc3\x68\xf3\x55\xd8\x95\x93", cls},
	{"\x26\x3e\x88\x60\x7c\xd2\x61\x43\x92\xf6\xbb\xd5\x00\x6d\xfa\x7e", checks},
	{"\xd4\x08\x20\x55\xbd\xe6\x70\x4b\x8d\x34\xba\x12\x3c\x66\xe1\xf2", integrity},
	{"\x21\x31\x8c\x60\x97\x14\x32\x48\x8c\xa6\x41\xff\x73\x24\xc8\xf2", ctx_id},
	{"\x6e\x16\x3f\xbe\xb9\x58\x44\x4d\x83\x5c\xe1\x82\xaf\xf1\x99\x1e", func},
	{"\x17\x34\xdc\x26\x80\x0d\x47\x45\x87\x26\xc0\xf1\xe7\xdd\x8b\xca", lt_list},
	{"\xf8\xcf\xf9\x51\x21\x46\x8b\x4e\xb9\xe2\xfb\x46\x9e\x7c\x0d\xd9", NULL}, /* what cudart may skip */
	{"\xda\x91\x51\xd3\x3a\xe6\xcc\x41\xa5\xc0\x4f\x26\xd5\x33\xe3\x28", compiled},
	{"\x2c\x8e\x0a\xd8\x07\x10\xab\x4e\x90\xdd\x54\x71\x9f\xe5\xf7\x4b", NULL}, /* CUPTI */
};

static void fill(word *table, CUresult (*const *slots)(void))
{
	for (size_t i = 1; i < (uintptr_t)table[0] / sizeof(word); i++)
		if (!table[i])
			table[i] = (word)slots[i];
}

__attribute__((constructor)) static void fill_tables(void)
{
	fill(cudart, cudart_slots);
	fill(hooks, hooks_slots);
	fill(tls, tls_slots);
	fill(checks, checks_slots);
	fill(integrity, integrity_slots);
	fill(ctx_id, ctx_id_slots);
	fill(func, func_slots);
	fill(lt_list, lt_list_slots);
	fill(compiled, compiled_slots);
}

static void tell_refused(const uint8_t id[16])
{
	char text[2 * 16 + 1];

	for (unsigned i = 0; i < 16; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	log_info("the private table %s is refused", text);
}

CUresult cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	if (!ppExportTable || !pExportTableId)
		return CUDA_ERROR_INVALID_VALUE;
	const uint8_t *id = (const uint8_t *)pExportTableId->bytes;
	CUresult r = CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < sizeof tables / sizeof *tables; i++) {
		if (memcmp(tables[i].id, id, sizeof *pExportTableId))
			continue;
		*ppExportTable = tables[i].table;
		if (tables[i].table)
			return CUDA_SUCCESS;
		r = CUDA_ERROR_NOT_FOUND;
	}
	tell_refused(id);
	*ppExportTable = NULL;
	return r;
}
