/* SPDX-License-Identifier: Apache-2.0 */
/* The reports of the checked mode. A place (an instruction, and what is wrong with it) is told once per
 * launch, with the first thread that came by; how many more did is told when the launch has ended.
 *
 * Thread rule: any worker; one lock. */
#pragma once
#include "server/soft/allocation.h"
#include "server/soft/check.h"

struct report {
	struct warp *w;
	const struct op *op;
	const struct code *code; /* the function that op is in */
	uint32_t lane;
	uint64_t at;
	unsigned bytes, each, kind;
};
void report_misaligned(const struct report *r);
/* a: the allocation that it begins in, or NULL. */
void report_outside(const struct report *r, const struct allocation *a);
/* v: the variable that it begins in, or NULL: it is between two. */
void report_variable(const struct report *r, const struct engine_module *m, const struct ptx_var *v);
void report_local(const struct report *r);
void report_shared(const struct report *r, size_t bytes);
/* a: NULL for shared memory. */
void report_unwritten(const struct report *r, const struct allocation *a);
void report_race(const struct report *r, const struct race_other *other);
