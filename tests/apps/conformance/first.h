/* SPDX-License-Identifier: Apache-2.0 */
/* Calls by their first names, which cuda.h hides behind those of today. Threads: none. */
#pragma once
#include <dlfcn.h>
#include "check.h"

static inline void *first(const char *name)
{
	void *f = dlsym(RTLD_DEFAULT, name);

	if (!f) {
		SAY("%s is not there", name);
		exit(3);
	}
	return f;
}
