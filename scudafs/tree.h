/* SPDX-License-Identifier: Apache-2.0 */
/* What is in the tree: names, attributes, values. Nodes are numbers that say where they are, so that there is
 * nothing to allocate or forget. FUSE is not known here, and nothing waits for the network.
 *
 * Thread rule: tree_init before the first thread; then all functions may be called from any thread. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

struct entry;
struct monitor;

#define TREE_ROOT 1ull

/* The monitors stay the caller's. `owner` owns the nodes. Returns 0 or -errno. */
int tree_init(struct monitor *const *monitors, unsigned count, uid_t owner, gid_t group);
void tree_finish(void);

/* The node of that name in a folder, 0 if there is none. Each lookup of `ctl` gives a fresh node. */
uint64_t tree_lookup(uint64_t folder, const char *name);
uint64_t tree_parent(uint64_t node);
/* 0, or -ENOENT when the node is no more. */
int tree_stat(uint64_t node, struct stat *out);
/* Calls `each` for all nodes of a folder until it returns false. -ENOENT, -ENOTDIR. */
int tree_list(uint64_t folder, bool (*each)(void *arg, const char *name, uint64_t node), void *arg);
/* The value of a file, or where a link leads, in memory that the caller frees. -ENOENT: unknown now. */
int tree_read(uint64_t node, char **text, size_t *len);
/* A session node? `*server` is the number of the server it leads to. */
bool tree_is_session(uint64_t node, unsigned *server);
/* A file that stands for a shared handle (wire/ctl.h)? */
bool tree_is_handle(uint64_t node, unsigned *server);
struct monitor *tree_monitor(unsigned server);
/* Is that the name of a session's socket in its folder, whether it is there or not? */
bool tree_socket(uint64_t folder, const char *name, unsigned *session);
const char *tree_server_address(unsigned server);
/* Number and type only; never fails for a node that tree_list has given. */
int tree_stat_type(uint64_t node, struct stat *out);
/* How long a name or attributes may be kept, seconds. */
double tree_validity(uint64_t node);
/* The entry of a value's node (tree_values.h), NULL if it is another kind of node. */
const struct entry *tree_entry(uint64_t node);
bool tree_is_folder(uint64_t node);
