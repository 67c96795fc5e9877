/* SPDX-License-Identifier: Apache-2.0 */
/* Servers' names and GPUs' numbers. Thread rule: as inventory.h. */
#include "scudafs/inventory.h"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "scudafs/text.h"
#include "wire/limits.h"

struct inventory inventory;

static struct {
	pthread_mutex_t lock;
	struct gpu_place gpus[MOUNT_SERVERS * LIMIT_DEVICES];
	unsigned count, numbered[MOUNT_SERVERS];
} numbers = {.lock = PTHREAD_MUTEX_INITIALIZER};

unsigned inventory_gpus(void)
{
	pthread_mutex_lock(&numbers.lock);
	for (unsigned i = 0; i < inventory.count; i++) {
		unsigned n = monitor_lock(inventory.monitors[i])->snapshot.count;
		monitor_unlock(inventory.monitors[i]);
		while (numbers.numbered[i] < n)
			numbers.gpus[numbers.count++] = (struct gpu_place){i, numbers.numbered[i]++};
	}
	unsigned count = numbers.count;
	pthread_mutex_unlock(&numbers.lock);
	return count;
}

bool inventory_place(unsigned number, struct gpu_place *p)
{
	if (number >= inventory_gpus())
		return false;
	pthread_mutex_lock(&numbers.lock);
	*p = numbers.gpus[number];
	pthread_mutex_unlock(&numbers.lock);
	return true;
}

bool inventory_gpu(unsigned number, struct gpu *g, struct gpu_place *p)
{
	if (!inventory_place(number, p))
		return false;
	monitor_touch(inventory.monitors[p->server]);
	const struct monitor_view *v = monitor_lock(inventory.monitors[p->server]);
	bool there = p->index < v->snapshot.count;
	if (there)
		*g = v->snapshot.gpus[p->index];
	monitor_unlock(inventory.monitors[p->server]);
	return there;
}

/* The folder's name of a server: its host, with the port when two have the same, with a number when that
 * is not enough. */
static void name_server(unsigned i)
{
	char host[LIMIT_NAME + 1];
	const char *address = monitor_address(inventory.monitors[i]);
	snprintf(host, sizeof(host), "%s", *address == '[' ? address + 1 : address);
	char *end = *address == '[' ? strchr(host, ']') : strrchr(host, ':');
	if (end && strncmp(address, "unix:", 5))
		*end = '\0';
	text_name(inventory.names[i], host);
	for (unsigned attempt = 0, j = 0; j < i; j++)
		if (!strcmp(inventory.names[j], inventory.names[i])) {
			text_name(inventory.names[i], address);
			if (attempt++)
				snprintf(inventory.names[i] + strlen(inventory.names[i]), 12, "-%u", i);
			j = (unsigned)-1;
			if (attempt > 2)
				break;
		}
}

int inventory_init(struct monitor *const *monitors, unsigned count)
{
	if (!count || count > MOUNT_SERVERS)
		return -EINVAL;
	inventory.monitors = monitors;
	inventory.count = count;
	for (unsigned i = 0; i < count; i++)
		name_server(i);
	inventory_gpus();
	return 0;
}

void inventory_finish(void)
{
	inventory.count = numbers.count = 0;
	memset(numbers.numbered, 0, sizeof(numbers.numbered));
}
