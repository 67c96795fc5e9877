/* SPDX-License-Identifier: Apache-2.0 */
/* What never changes while a session lasts: versions, how many devices there are, and the name, UUID, serial
 * number, PCI address and so on of each. One record asks for all of it, with the codes that NVML gave where
 * it gave no value. A device that is not in the list (a MIG device) is asked by itself.
 *
 * Thread rule: any thread; `lock` guards the list, and is held while it is fetched. */
#include <pthread.h>
#include <time.h>
#include "devshim/nvml/ahead.h"
#include "nvml.calls.h"
#include "nvml.remote.h"
#include "wire/limits.h"
#include "wire/nvml.h"

struct text {
	int result;
	char text[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
};

struct device {
	int result;                 /* of the handle: the rest is there when it is 0 */
	nvmlDevice_t handle;
	struct text name, uuid, serial;
	int index_result, minor_result, pci_result, mig_result;
	unsigned index, minor, mig; /* mig: how many MIG devices there may be */
	nvmlPciInfo_t pci;
};

static struct {
	pthread_mutex_t lock;
	unsigned session;           /* whose answers these are; 0: none */
	int64_t fetched;            /* ms */
	struct text driver_version, nvml_version;
	int cuda_result, cuda_version, count_result;
	unsigned count;
	struct device devices[LIMIT_DEVICES];
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void take_text(struct msg *m, struct text *t)
{
	t->result = (int)get_i64(m);
	get_text(m, t->text, sizeof t->text);
}

static void take_device(struct call *c, struct device *d)
{
	*d = (struct device){.result = (int)get_i64(&c->in)};
	if (d->result)
		return;
	d->handle = get_handle(c, HANDLE_nvmlDevice_t);
	take_text(&c->in, &d->name);
	take_text(&c->in, &d->uuid);
	take_text(&c->in, &d->serial);
	d->index_result = (int)get_i64(&c->in);
	d->index = (unsigned)get_u64(&c->in);
	d->minor_result = (int)get_i64(&c->in);
	d->minor = (unsigned)get_u64(&c->in);
	d->pci_result = (int)get_i64(&c->in);
	get_bytes(&c->in, &d->pci, sizeof d->pci);
	d->mig_result = (int)get_i64(&c->in);
	d->mig = (unsigned)get_u64(&c->in);
}

/* The lock is held. 0, or a code as call_wait gives it. */
static int fetch(void)
{
	struct call c;
	int r = call_begin(&c, CALL_nvmlScudaDevices);

	if (r)
		return r;
	r = call_wait(&c);
	if (!r) {
		take_text(&c.in, &known.driver_version);
		take_text(&c.in, &known.nvml_version);
		known.cuda_result = (int)get_i64(&c.in);
		known.cuda_version = (int)get_i64(&c.in);
		known.count_result = (int)get_i64(&c.in);
		known.count = (unsigned)get_u64(&c.in);
		size_t n = get_array(&c.in, LIMIT_DEVICES);
		memset(known.devices, 0, sizeof known.devices);
		for (size_t i = 0; i < LIMIT_DEVICES; i++)
			if (i < n)
				take_device(&c, &known.devices[i]);
			else
				known.devices[i].result = NVML_ERROR_NOT_FOUND;
	}
	return call_end(&c, r);
}

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Locks, with the list there; false, unlocked, when it cannot be had: then the call goes to the server. */
static bool enter(void)
{
	unsigned session = session_number();
	struct call c;

	/* Before nvmlInit and after nvmlShutdown nothing is known. */
	if (call_begin(&c, CALL_nvmlScudaDevices))
		return false;
	pthread_mutex_lock(&known.lock);
	if (known.session != session && !fetch()) {
		known.session = session;
		known.fetched = now_ms();
	}
	if (known.session == session)
		return true;
	pthread_mutex_unlock(&known.lock);
	return false;
}

static void leave(void)
{
	pthread_mutex_unlock(&known.lock);
}

/* As enter, and the device's entry. */
static const struct device *enter_device(nvmlDevice_t handle)
{
	if (!handle || !enter())
		return NULL;
	for (const struct device *d = known.devices; d < known.devices + LIMIT_DEVICES; d++)
		if (!d->result && d->handle == handle)
			return d;
	leave();
	return NULL;
}

/* Gives a text the way NVML does, and leaves. */
static nvmlReturn_t give_text(const struct text *t, char *out, unsigned length)
{
	nvmlReturn_t r = (nvmlReturn_t)t->result;

	if (!out)
		r = NVML_ERROR_INVALID_ARGUMENT;
	else if (!r && strlen(t->text) >= length)
		r = NVML_ERROR_INSUFFICIENT_SIZE;
	if (!r)
		strcpy(out, t->text);
	leave();
	return r;
}

static nvmlReturn_t give_number(int result, unsigned value, unsigned *out)
{
	nvmlReturn_t r = out ? (nvmlReturn_t)result : NVML_ERROR_INVALID_ARGUMENT;

	if (!r)
		*out = value;
	leave();
	return r;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	return enter() ? give_text(&known.driver_version, version, length)
		       : remote_nvmlSystemGetDriverVersion(version, length);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
	return enter() ? give_text(&known.nvml_version, version, length)
		       : remote_nvmlSystemGetNVMLVersion(version, length);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	if (!enter())
		return remote_nvmlSystemGetCudaDriverVersion_v2(version);
	return give_number(known.cuda_result, (unsigned)known.cuda_version, (unsigned *)version);
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
	return nvmlSystemGetCudaDriverVersion_v2(version);
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
	return enter() ? give_number(known.count_result, known.count, count)
		       : remote_nvmlDeviceGetCount_v2(count);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
	if (!device || index >= LIMIT_DEVICES || !enter())
		return remote_nvmlDeviceGetHandleByIndex_v2(index, device);
	const struct device *d = &known.devices[index];
	bool there = !d->result;
	if (there)
		*device = d->handle;
	leave();
	return there ? NVML_SUCCESS : remote_nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
	const struct device *d = enter_device(device);

	return d ? give_text(&d->name, name, length) : remote_nvmlDeviceGetName(device, name, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
	const struct device *d = enter_device(device);

	return d ? give_text(&d->uuid, uuid, length) : remote_nvmlDeviceGetUUID(device, uuid, length);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned length)
{
	const struct device *d = enter_device(device);

	return d ? give_text(&d->serial, serial, length) : remote_nvmlDeviceGetSerial(device, serial, length);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
	const struct device *d = enter_device(device);

	return d ? give_number(d->index_result, d->index, index) : remote_nvmlDeviceGetIndex(device, index);
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor)
{
	const struct device *d = enter_device(device);

	return d ? give_number(d->minor_result, d->minor, minor)
		 : remote_nvmlDeviceGetMinorNumber(device, minor);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	const struct device *d = pci ? enter_device(device) : NULL;

	if (!d)
		return remote_nvmlDeviceGetPciInfo_v3(device, pci);
	nvmlReturn_t r = (nvmlReturn_t)d->pci_result;
	if (!r)
		*pci = d->pci;
	leave();
	return r;
}

/* This may change: the list's is good for a moment, so that a program that only lists the devices asks
 * once. */
nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count)
{
	const struct device *d = count ? enter_device(device) : NULL;

	if (d && now_ms() - known.fetched < AHEAD_FRESH)
		return give_number(d->mig_result, d->mig, count);
	if (d)
		leave();
	return remote_nvmlDeviceGetMaxMigDeviceCount(device, count);
}
