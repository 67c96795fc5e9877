/* SPDX-License-Identifier: Apache-2.0 */
/* What the shim knows about an event: where and with which record it was recorded last. Thread rule: any
 * thread. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "devshim/work.h"

struct event {
	struct work *_Atomic work; /* NULL: not recorded, or not by a call that tells where */
	_Atomic uint64_t recorded; /* the record that did; 0: never */
	_Atomic uint64_t done; /* of that record: known to be done */
	_Atomic bool gated; /* its stream stood behind a host function */
	bool shared; /* with other processes: nothing is known of it here */
	struct event *next; /* free ones */
};

struct event *event_of(CUevent e);
/* An event of another program that the server has opened; false without memory. */
bool event_adopt(CUevent e);
/* Something else than cuEventRecord recorded it: a launch attribute, a context, a graph. */
void event_recorded_elsewhere(CUevent e);
