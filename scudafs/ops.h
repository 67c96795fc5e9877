/* SPDX-License-Identifier: Apache-2.0 */
/* File operations: between libfuse and the tree and the relays. Thread rule: called by the loop's threads;
 * none of them blocks on a socket. */
#pragma once
#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <sys/types.h>
#include "scudafs/relay.h"

struct credential;

/* Set before the loop starts, constant then. */
struct ops_options {
	struct credential *credential;
	unsigned flags;             /* of the preambles of sessions */
	enum connections connections;
	uid_t owner;
	bool allow_other;
	/* The kernel has answered: the tree is usable. */
	void (*ready)(void);
};
void ops_init(const struct ops_options *o);
extern const struct fuse_lowlevel_ops ops;
