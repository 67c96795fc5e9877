/* SPDX-License-Identifier: Apache-2.0 */
/* A list of keys stays until the last handshake that uses it is over.
 *
 * Thread rule: `lock` is for `now` and the counts; a list itself does not change. */
#include "server/monitor_keys.h"

#include <pthread.h>
#include <stdlib.h>

#include "wire/log.h"

struct monitor_keys {
	struct keys *keys;
	unsigned users;             /* handshakes, and one while it is `now` */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct monitor_keys *now;

void monitor_keys_give(struct monitor_keys *k)
{
	bool last;

	if (!k)
		return;
	pthread_mutex_lock(&lock);
	last = !--k->users;
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	keys_free(k->keys);
	free(k);
}

void monitor_keys_set(struct keys *keys)
{
	struct monitor_keys *k = keys ? malloc(sizeof *k) : NULL, *old;

	if (keys && !k) {
		log_error("no memory: the old keys stay");
		keys_free(keys);
		return;
	}
	if (k)
		*k = (struct monitor_keys){keys, 1};
	pthread_mutex_lock(&lock);
	old = now;
	now = k;
	pthread_mutex_unlock(&lock);
	monitor_keys_give(old);
}

struct monitor_keys *monitor_keys_take(void)
{
	struct monitor_keys *k;

	pthread_mutex_lock(&lock);
	k = now;
	if (k)
		k->users++;
	pthread_mutex_unlock(&lock);
	return k;
}

const struct keys *monitor_keys_list(const struct monitor_keys *k)
{
	return k ? k->keys : NULL;
}

bool monitor_keys_have(const struct key *key)
{
	struct monitor_keys *k = monitor_keys_take();
	const struct key *same = k ? keys_find(k->keys, key->name) : NULL;
	unsigned char differs = !same;

	for (size_t i = 0; same && i < sizeof same->secret; i++)
		differs |= same->secret[i] ^ key->secret[i];
	monitor_keys_give(k);
	return !differs;
}
