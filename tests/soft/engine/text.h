/* SPDX-License-Identifier: Apache-2.0 */
/* The text of kernels that a test of the engine writes. Thread rule: one thread, its text one program's. */
#pragma once
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { TEXT = 8 << 20 };
static char text[TEXT];
static size_t used; /* bytes of it */

__attribute__((format(printf, 1, 2))) static inline void add(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	used += (size_t)vsnprintf(text + used, TEXT - used, fmt, ap);
	va_end(ap);
	if (used >= TEXT) {
		printf("text too large\n");
		abort();
	}
}
