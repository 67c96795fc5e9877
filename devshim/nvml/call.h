/* SPDX-License-Identifier: Apache-2.0 */
/* One NVML call, from its arguments to its result, as the generated stubs (build/gen/nvml.stubs.c) use it.
 * NVML is asked now and then, not thousands of times a second: a call is one round trip, nothing is posted.
 * Two things cost less: what never changes is asked once (cached.c), and a program that asks the same
 * questions in a loop has them asked together (ahead.c).
 *
 * Thread rule: a call belongs to its thread; any number of threads may have one. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "wire/ctl.h"
#include "wire/frame.h"
#include "wire/msg.h"
#include "wire/nvml_types.h"

struct call {
	struct msg out, in;         /* arguments; the answer's head between call_wait and call_end */
	unsigned id;
	unsigned thread;            /* the record's: calls of one thread are run one after the other */
	uint8_t *large;             /* an answer that did not fit into room */
	_Alignas(8) uint8_t room[16384];    /* the ioctl's argument, in both directions */
};

/* Results here are NVML's own codes as numbers, or, from 0x10000 up, what happened to the session: nvml_local
 * and nvml_remote translate those. */
#define NVML_SESSION(e) (0x10000 + (e))     /* e: an errno */
int call_begin(struct call *c, unsigned id);
int call_wait(struct call *c);
int call_end(struct call *c, int r);
nvmlReturn_t nvml_local(int r);
nvmlReturn_t nvml_remote(int r);

/* Bytes of a versioned struct that the program has, of the `whole` that this build knows: its version tells
 * them. */
static inline size_t call_struct_size(const void *p, size_t whole)
{
	unsigned version;

	memcpy(&version, p, sizeof version);
	version &= 0xffffff;
	return version >= 8 && version < whole ? version : whole;
}

/* Handles are the server's numbers; it checks their type, the shim passes them on. */
bool put_handle(struct call *c, unsigned type, const void *h);
void *get_handle(struct call *c, unsigned type);
void handle_drop(unsigned type, const void *h);

nvmlReturn_t nvml_call_unsupported(unsigned id, const char *why);

/* The session: counted, as nvmlInit and nvmlShutdown are. Codes as above. */
int session_open(void);
int session_close(void);
/* Rises with each session: what was learned in an earlier one is void. */
unsigned session_number(void);
/* The folder that the mount is at. */
const char *mount_path(void);
