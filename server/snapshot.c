/* SPDX-License-Identifier: Apache-2.0 */
/* Everything a program asks of a device before it uses it, so that device queries need no round trip.
 *
 * Thread rule: as snapshot.h. */
#include "server/snapshot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/driver.h"
#include "server/nvml.h"
#include "server/values.h"
#include "wire/cuda_types.h"
#include "wire/msg.h"

#define DEVICE_MOST 4096        /* bytes of a device's map with its values */
#define ATTRIBUTES (CU_DEVICE_ATTRIBUTE_MAX < LIMIT_ATTRIBUTES ? CU_DEVICE_ATTRIBUTE_MAX : LIMIT_ATTRIBUTES)

struct device {
	char name[256], pci[32];
	CUuuid uuid;
	char luid[8];
	unsigned node_mask;
	uint64_t total;
	int attribute[LIMIT_ATTRIBUTES];
	bool known[LIMIT_ATTRIBUTES];
};

struct snapshot {
	bool soft, values;          /* values: NVML is there */
	char library[512], nvidia_version[80], host[LIMIT_NAME + 1];
	int version;
	int count;
	struct device device[];
};

static bool read_device(struct device *d, int ordinal)
{
	size_t total = 0;
	CUdevice dev;

	if (drv.cuDeviceGet(&dev, ordinal) || drv.cuDeviceGetName(d->name, sizeof d->name, dev) ||
	    drv.cuDeviceTotalMem_v2(&total, dev) || drv.cuDeviceGetUuid_v2(&d->uuid, dev))
		return false;
	d->name[sizeof d->name - 1] = 0;
	d->total = total;
	/* These two may be unknown: a LUID is a matter of another system, a software device has no bus. */
	if (drv.cuDeviceGetLuid(d->luid, &d->node_mask, dev)) {
		memset(d->luid, 0, sizeof d->luid);
		d->node_mask = 0;
	}
	if (drv.cuDeviceGetPCIBusId(d->pci, sizeof d->pci, dev))
		d->pci[0] = 0;
	for (int i = 1; i < ATTRIBUTES; i++)
		d->known[i] = !drv.cuDeviceGetAttribute(&d->attribute[i], (CUdevice_attribute)i, dev);
	return true;
}

struct snapshot *snapshot_read(const struct driver_choice *choice, int devices, const char **why)
{
	struct snapshot *s;

	if (devices > LIMIT_DEVICES)
		devices = LIMIT_DEVICES;
	s = calloc(1, sizeof *s + devices * sizeof s->device[0]);
	*why = "out of memory";
	if (!s)
		return NULL;
	s->soft = choice->soft;
	s->count = devices;
	snprintf(s->library, sizeof s->library, "%s", choice->path);
	*why = "the driver does not tell its version";
	if (drv.cuDriverGetVersion(&s->version))
		goto failed;
	*why = "the driver does not tell what a device is";
	for (int i = 0; i < devices; i++)
		if (!read_device(&s->device[i], i))
			goto failed;
	if (gethostname(s->host, sizeof s->host - 1))
		s->host[0] = 0;
	if (s->soft) {
		nvml_open_soft();
		s->values = true;
	} else if (nvml_open()) {
		nvml_driver_version(s->nvidia_version, sizeof s->nvidia_version);
		nvml_translate_processes();
		s->values = true;
	}
	return s;
failed:
	free(s);
	return NULL;
}

/* What this machine could still give, for the software device. */
static uint64_t memory_available(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	uint64_t kib = 0;
	char line[128];

	if (!f)
		return UINT64_MAX;
	while (fgets(line, sizeof line, f))
		if (sscanf(line, "MemAvailable: %" SCNu64 " kB", &kib) == 1)
			break;
	fclose(f);
	return kib ? kib << 10 : UINT64_MAX;
}

static uint64_t free_bytes(const struct snapshot *s, const struct device *d)
{
	uint64_t n, most = s->soft ? memory_available() : d->total;

	if (!nvml_free_memory((unsigned)(d - s->device), d->pci, &n))
		n = d->total;
	most = most < d->total ? most : d->total;
	return n < most ? n : most;
}

/* Where there are very many devices, their values have no room. */
static void encode_device(const struct snapshot *s, const struct device *d, bool values, struct msg *m)
{
	put_map(m, values ? 9 : 8);
	put_text(m, "name");
	put_text(m, d->name);
	put_text(m, "uuid");
	put_bytes(m, &d->uuid, sizeof d->uuid);
	put_text(m, "luid");
	put_bytes(m, d->luid, sizeof d->luid);
	put_text(m, "node_mask");
	put_u64(m, d->node_mask);
	put_text(m, "total");
	put_u64(m, d->total);
	put_text(m, "free");
	put_u64(m, free_bytes(s, d));
	put_text(m, "pci_bus_id");
	put_text(m, d->pci);
	put_text(m, "attributes");
	put_array(m, ATTRIBUTES);
	for (int i = 0; i < ATTRIBUTES; i++) {
		if (d->known[i])
			put_i64(m, d->attribute[i]);
		else
			put_nil(m);
	}
	if (values) {
		put_text(m, "values");
		values_encode((unsigned)(d - s->device), s->soft ? "" : d->pci, m);
	}
}

void snapshot_encode(const struct snapshot *s, unsigned sessions, bool values, struct msg *m)
{
	values = values && s->values && s->count * DEVICE_MOST <= (int)m->cap;
	put_map(m, 6);
	put_text(m, "driver_version");
	put_i64(m, s->version);
	put_text(m, "nvidia_version");
	put_text(m, s->nvidia_version);
	put_text(m, "driver");
	put_text(m, s->soft ? "soft" : "real");
	put_text(m, "host");
	put_text(m, s->host);
	put_text(m, "sessions");
	put_u64(m, sessions);
	put_text(m, "devices");
	put_array(m, s->count);
	for (int i = 0; i < s->count; i++)
		encode_device(s, &s->device[i], values, m);
}

void snapshot_describe(const struct snapshot *s, char *out, size_t cap)
{
	const char *slash = strrchr(s->library, '/');
	int n;

	n = snprintf(out, cap, "%s %s %d.%d%s%s, %d device%s", s->soft ? "software device" : "real",
			slash && s->soft ? slash + 1 : s->library, s->version / 1000, s->version % 1000 / 10,
			*s->nvidia_version ? ", NVIDIA " : "", s->nvidia_version, s->count,
			s->count == 1 ? "" : "s");
	for (int i = 0; i < s->count && n > 0 && (size_t)n < cap; i++)
		n += snprintf(out + n, cap - n, "%s %s", i ? "," : ":", s->device[i].name);
}
