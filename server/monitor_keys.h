/* SPDX-License-Identifier: Apache-2.0 */
/* The keys in the monitor's process: the listener's, read again when that says so. A connection that came by
 * a key which has been taken out or changed since is found, so that its mount tells the truth.
 *
 * Thread rule: any thread. */
#pragma once
#include <stdbool.h>
#include "wire/keys.h"

/* From now on these are the keys (NULL: none); it takes them. */
void monitor_keys_set(struct keys *keys);
/* For a handshake; give them back behind it. */
struct monitor_keys *monitor_keys_take(void);
const struct keys *monitor_keys_list(const struct monitor_keys *k);
void monitor_keys_give(struct monitor_keys *k);
/* Is this key one of them? */
bool monitor_keys_have(const struct key *key);
