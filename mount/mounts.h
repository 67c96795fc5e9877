/* SPDX-License-Identifier: Apache-2.0 */
/* The scudafs mounts that this process can see, from /proc/self/mounts, and taking one away. Nothing here
 * asks a server, so nothing can hang on one; mounts_state asks the daemon of the mount, which answers by
 * itself. */
#pragma once
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct mount_entry {
	char source[512]; /* what was mounted: host:port */
	char dir[PATH_MAX];
	uid_t owner; /* who mounted it, and may take it away beside root */
};

/* The index-th mount of type fuse.scudafs, oldest first. False when there are not so many. */
bool mounts_get(size_t index, struct mount_entry *out);
/* The topmost scudafs mount on exactly this folder. The path is made absolute first (without looking into the
 * mount). */
bool mounts_at(const char *dir, struct mount_entry *out);
/* The scudafs mount that the absolute path lies in. */
bool mounts_around(const char *path, struct mount_entry *out);
/* The absolute path of dir, whose last part may be a dead mount point; false with errno set. */
bool mounts_absolute(const char *dir, char *out);

/* 0 when the daemon answers; -ENOTCONN when it is gone and only the mount point is left, -ETIMEDOUT when it
 * says nothing for a few seconds, another -errno. */
int mounts_state(const char *dir);
/* Can mounts be seen at all? 1 when not, and that was told. */
int mounts_check(void);
/* Takes the topmost mount away: umount2 as root, fusermount3 else. 0 or -errno (-EBUSY: in use). */
int mounts_remove(const char *dir, bool lazy);
/* Why the last mounts_remove failed with r, until the next. */
const char *mounts_remove_text(int r);
