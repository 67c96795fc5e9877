/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA_VISIBLE_DEVICES is a list of indices or of (unambiguous beginnings of) UUIDs, read up to the first
 * entry that names no device or one that was named already. Indices count in the order that CUDA_DEVICE_ORDER
 * chooses: the server's own, or by PCI address.
 *
 * Thread rule: no state. */
#include "devshim/visible.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static unsigned long pci_key(const struct device *d)
{
	unsigned domain = 0, bus = 0, slot = 0, function = 0;
	sscanf(d->pci_bus_id, "%x:%x:%x.%x", &domain, &bus, &slot, &function);
	return (unsigned long)domain << 32 | bus << 16 | slot << 8 | function;
}

static void sort_by_address(const struct device *all, unsigned *order, unsigned n)
{
	for (unsigned i = 1; i < n; i++) {
		unsigned one = order[i], j = i;
		for (; j && pci_key(&all[order[j - 1]]) > pci_key(&all[one]); j--)
			order[j] = order[j - 1];
		order[j] = one;
	}
}

static void uuid_text(const struct device *d, char out[41])
{
	const uint8_t *u = d->uuid;
	snprintf(out, 41, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0],
			u[1], u[2], u[3], u[4], u[5],
		u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]);
}

static int by_uuid(const struct device *all, unsigned n, const char *text, size_t len)
{
	int found = -1;
	for (unsigned i = 0; i < n; i++) {
		char uuid[41];
		uuid_text(&all[i], uuid);
		if (len > 4 && len <= 40 && strncasecmp(uuid, text, len) == 0) {
			if (found >= 0)
				return -1;
			found = (int)i;
		}
	}
	return found;
}

/* The index in all[] that one entry of the list names, or -1. */
static int entry(const struct device *all, const unsigned *order, unsigned n, const char *text, size_t len)
{
	if (len >= 4 && strncasecmp(text, "GPU-", 4) == 0)
		return by_uuid(all, n, text, len);
	if (!len || len > 9)
		return -1;
	unsigned long index = 0;
	for (size_t i = 0; i < len; i++) {
		if (!isdigit((unsigned char)text[i]))
			return -1;
		index = index * 10 + (unsigned long)(text[i] - '0');
	}
	return index < n ? (int)order[index] : -1;
}

unsigned visible_select(const struct device *all, unsigned n, const char *order_text, const char *visible,
		unsigned *out)
{
	unsigned order[LIMIT_DEVICES], count = 0;
	bool named[LIMIT_DEVICES] = {0};
	if (n > LIMIT_DEVICES)
		n = LIMIT_DEVICES;
	for (unsigned i = 0; i < n; i++)
		order[i] = i;
	if (order_text && strcmp(order_text, "PCI_BUS_ID") == 0)
		sort_by_address(all, order, n);
	if (!visible) {
		memcpy(out, order, n * sizeof *out);
		return n;
	}
	while (count < n) {
		visible += strspn(visible, " \t");
		size_t len = strcspn(visible, ",");
		size_t trimmed = len;
		while (trimmed && isspace((unsigned char)visible[trimmed - 1]))
			trimmed--;
		int i = entry(all, order, n, visible, trimmed);
		if (i < 0 || named[i])
			break;
		named[i] = true;
		out[count++] = (unsigned)i;
		visible += len;
		if (!*visible++)
			break;
	}
	return count;
}
