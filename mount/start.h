/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the filesystem daemon behind a folder and waits until its tree is usable. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>
#include "mount/options.h"
#include "wire/limits.h"

#define START_SECONDS (TIMES * 5) /* a mount is usable after this time, or has failed */

/* Checks the folder: it exists, is a folder, holds no live mount of ours; a dead one is taken away. Returns
 * 0, or EXIT_* after it told why. */
int start_check(const char *dir);
/* Forks the daemon. Returns 0 when the tree is usable, with its pid in *daemon (may be NULL), or the exit
 * code after one line said why not. `tied`: the daemon ends, and the mount with it, when the calling process
 * does. */
int start_background(const struct options *o, const char *dir, bool tied, pid_t *daemon);
/* Becomes the daemon; returns its exit status. */
int start_foreground(const struct options *o, const char *dir);
