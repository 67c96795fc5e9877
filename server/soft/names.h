/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver's linker asks of the engine beside engine.h. Thread rule: see engine.h. */
#pragma once
#include "server/soft/engine.h"

/* Reads one text that others will complete, as engine_module_load. It can be asked for its names and be
 * unloaded, no more. */
int engine_module_part(const char *text, size_t n, struct engine_module **out, struct engine_error *error);

/* A name of functions and variables that texts share: defined, weakly defined, or used and defined nowhere
 * in this module. */
enum engine_name_kind { ENGINE_NAME_DEFINED, ENGINE_NAME_WEAK, ENGINE_NAME_USED };
struct engine_name {
	const char *name;
	enum engine_name_kind kind;
	bool function;
};
/* Visits them, used ones as often as they are used; until visit says false, then that is the answer. */
bool engine_names(struct engine_module *m, bool (*visit)(void *arg, const struct engine_name *n), void *arg);
/* Is there a .target sm_NN? */
bool engine_target_known(unsigned sm);
