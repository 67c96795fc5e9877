/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about devices that the snapshot lacks and that never change: asked once, then answered from a small
 * table. And the devices' memory pools, which change only by our own calls.
 *
 * Thread rule: `lock` guards the table; two threads that ask the same at the same time both ask the
 * server. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include "cuda.calls.h"
#include "cuda.remote.h"
#include "devshim/device.h"
#include "devshim/process.h"
#include "wire/cuda.h"

#define FACTS 512

struct fact { unsigned call; long long a, b, c; unsigned long long value; };

static struct {
	pthread_mutex_t lock;
	unsigned count;
	struct fact fact[FACTS];
} facts = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* True with the value in f when it is known. */
static bool known(struct fact *f)
{
	bool found = false;
	pthread_mutex_lock(&facts.lock);
	for (unsigned i = 0; i < facts.count && !found; i++) {
		const struct fact *o = &facts.fact[i];
		found = o->call == f->call && o->a == f->a && o->b == f->b && o->c == f->c;
		if (found)
			f->value = o->value;
	}
	pthread_mutex_unlock(&facts.lock);
	return found;
}

static void learn(const struct fact *f)
{
	pthread_mutex_lock(&facts.lock);
	if (facts.count < FACTS)
		facts.fact[facts.count++] = *f;
	pthread_mutex_unlock(&facts.lock);
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *maxWidthInElements, CUarray_format format,
		unsigned numChannels, CUdevice dev)
{
	struct fact f = {CALL_cuDeviceGetTexture1DLinearMaxWidth, format, numChannels, dev, 0};
	CUresult r = process_check();
	if (r)
		return r;
	if (!maxWidthInElements)
		return CUDA_ERROR_INVALID_VALUE;
	if (known(&f)) {
		*maxWidthInElements = f.value;
		return CUDA_SUCCESS;
	}
	r = remote_cuDeviceGetTexture1DLinearMaxWidth(maxWidthInElements, format, numChannels, dev);
	if (!r) {
		f.value = *maxWidthInElements;
		learn(&f);
	}
	return r;
}

/* The three facts that are an int. */
static CUresult ask_int(struct fact f, int *out, CUresult (*ask)(int *out, const struct fact *f))
{
	CUresult r = process_check();
	if (r)
		return r;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	if (known(&f)) {
		*out = (int)f.value;
		return CUDA_SUCCESS;
	}
	r = ask(out, &f);
	if (!r) {
		f.value = (unsigned)*out;
		learn(&f);
	}
	return r;
}

static CUresult ask_affinity(int *out, const struct fact *f)
{
	return remote_cuDeviceGetExecAffinitySupport(out, (CUexecAffinityType)f->a, (CUdevice)f->b);
}

static CUresult ask_peer(int *out, const struct fact *f)
{
	return remote_cuDeviceCanAccessPeer(out, (CUdevice)f->a, (CUdevice)f->b);
}

static CUresult ask_p2p(int *out, const struct fact *f)
{
	return remote_cuDeviceGetP2PAttribute(out, (CUdevice_P2PAttribute)f->a, (CUdevice)f->b,
			(CUdevice)f->c);
}

CUresult cuDeviceGetExecAffinitySupport(int *pi, CUexecAffinityType type, CUdevice dev)
{
	return ask_int((struct fact){CALL_cuDeviceGetExecAffinitySupport, type, dev, 0, 0}, pi, ask_affinity);
}

CUresult cuDeviceCanAccessPeer(int *canAccessPeer, CUdevice dev, CUdevice peerDev)
{
	return ask_int((struct fact){CALL_cuDeviceCanAccessPeer, dev, peerDev, 0, 0}, canAccessPeer,
			ask_peer);
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
		CUdevice dstDevice)
{
	return ask_int((struct fact){CALL_cuDeviceGetP2PAttribute, attrib, srcDevice, dstDevice, 0}, value,
			ask_p2p);
}

static struct { CUmemoryPool _Atomic base, current; } pools[LIMIT_DEVICES];

static CUresult pool_check(const void *out, CUdevice dev)
{
	CUresult r = process_check();
	if (r)
		return r;
	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	return device_get(dev) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev)
{
	CUresult r = pool_check(pool_out, dev);
	if (r)
		return r;
	CUmemoryPool known_pool = pools[dev].base;
	if (!known_pool) {
		r = remote_cuDeviceGetDefaultMemPool(&known_pool, dev);
		if (r)
			return r;
		pools[dev].base = known_pool;
	}
	*pool_out = known_pool;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
	CUresult r = pool_check(pool, dev);
	if (r)
		return r;
	CUmemoryPool known_pool = pools[dev].current;
	if (!known_pool) {
		r = remote_cuDeviceGetMemPool(&known_pool, dev);
		if (r)
			return r;
		pools[dev].current = known_pool;
	}
	*pool = known_pool;
	return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool)
{
	CUresult r = remote_cuDeviceSetMemPool(dev, pool);
	if (device_get(dev))
		pools[dev].current = NULL;
	return r;
}
