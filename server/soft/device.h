/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that the software device presents: those of every capability, and those of the one that it
 * shows.
 *
 * Thread rule: constants. */
#pragma once
#include <stddef.h>

#define SHARED_BLOCK 49152u
#define REGISTERS_MULTIPROCESSOR 65536u
#define THREADS_BLOCK 1024u
#define GRANULARITY (2u << 20) /* of virtual memory management */
#define PCI_DOMAIN 0xffff /* no such one exists */
#define TEXTURE_ALIGNMENT 512
#define TEXTURE_PITCH_ALIGNMENT 32

/* What a multiprocessor of a capability holds at once. Sizes are bytes. */
struct model {
	int capability; /* ten times major, and minor: the row is for those from here on */
	int threads, blocks;
	int shared, shared_optin; /* of a multiprocessor; most of a block that asks for it */
	/* a block's own share beside what it asks for; what sizes are rounded up to */
	int shared_reserved, shared_unit;
};

/* The row of the capability presented, once options are read. */
const struct model *device_model(void);
