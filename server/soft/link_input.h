/* SPDX-License-Identifier: Apache-2.0 */
/* What a link knows of its inputs beside their texts: whether a form goes with a type, and which names they
 * define and use. Thread rule: a link is one thread's alone. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "server/soft/jit.h"
#include "server/soft/names.h"

struct link_names {
	void *defined, *used; /* trees of tsearch, by name */
};

/* May an input of that type have that form? */
CUresult link_form(CUjitInputType type, const void *data, size_t size);
/* Takes the names of a part in. Those that an earlier input defines as well go to the log: *twice. False:
 * memory is short. */
bool link_names_add(
	struct link_names *l, struct engine_module *part, const char *input, struct jit *jit, bool *twice);
/* Tells the log of the names that are used and nobody defines. With the device runtime its own are not
 * missing. */
bool link_names_complete(const struct link_names *l, bool device_runtime, struct jit *jit);
void link_names_free(struct link_names *l);
