/* SPDX-License-Identifier: Apache-2.0 */
/* The key is copied for each connection, under a lock, and wiped after its handshake.
 *
 * Thread rule: `lock` is for the key; files and connections are not waited for under it. */
#include "scudafs/credential.h"
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "wire/keys.h"
#include "wire/log.h"
#include "wire/stream.h"

struct credential {
	pthread_mutex_t lock;
	struct key key;
	const char *path;
};

static int read_key(const char *path, struct key *out, const char **why)
{
	struct keys *keys = NULL;
	int r = keys_load(path, &keys, why);
	const struct key *only = r ? NULL : keys_first(keys);

	if (only)
		*out = *only;
	else if (!r)
		*why = "a client's file has exactly one key";
	keys_free(keys);
	return only ? 0 : r ? r : -EINVAL;
}

int credential_load(const char *path, struct credential **out, const char **why)
{
	struct credential *c = calloc(1, sizeof(*c));
	int r = c ? read_key(path, &c->key, why) : -ENOMEM;

	if (r) {
		free(c);
		return r;
	}
	pthread_mutex_init(&c->lock, NULL);
	c->path = path;
	*out = c;
	return 0;
}

void credential_free(struct credential *c)
{
	if (!c)
		return;
	explicit_bzero(&c->key, sizeof(c->key));
	free(c);
}

/* Is there another key in the file now than `refused`? Then that is the one from now on. */
static bool read_again(struct credential *c, const struct key *refused)
{
	const char *why = NULL;
	struct key key;
	int r = read_key(c->path, &key, &why);
	bool other = !r && memcmp(&key, refused, sizeof(key));

	if (r)
		log_warning("key file %s: %s; the old key stays", c->path, why ? why : strerror(-r));
	if (other) {
		pthread_mutex_lock(&c->lock);
		c->key = key;
		pthread_mutex_unlock(&c->lock);
		log_info("the key was read again from %s", c->path);
	}
	explicit_bzero(&key, sizeof(key));
	return other;
}

int credential_connect(struct credential *c, const char *address, unsigned flags, int timeout_ms,
		struct stream **out, const char **why)
{
	struct key key;
	int r;

	if (!c)
		return stream_connect(address, NULL, flags, timeout_ms, out, why);
	do {
		pthread_mutex_lock(&c->lock);
		key = c->key;
		pthread_mutex_unlock(&c->lock);
		r = stream_connect(address, &key, flags, timeout_ms, out, why);
	} while (r == -EACCES && read_again(c, &key));
	explicit_bzero(&key, sizeof(key));
	return r;
}
