/* SPDX-License-Identifier: Apache-2.0 */
/* The session's side of memory that program and GPU use in place: see wire/mirror.h and mirror.c. */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "server/exec.h"

extern _Atomic unsigned mirror_count;

/* Managed memory of the driver's. `owner`: id of the context or library with which it ends. Refused past the
 * limits, with a log line. */
CUresult mirror_add_managed(uint64_t base, size_t size, uint64_t owner);
/* Is all of that range in one that is kept? */
bool mirror_holds(uint64_t p, uint64_t n);
/* Before the reply to a call that SYNCS: memory of a range is not what was agreed on. */
bool mirror_has_news(void);
/* After a call that FREES, which may have ended managed memory without the program's having said so first:
 * what is gone must not be touched any more. */
void mirror_after(void);
