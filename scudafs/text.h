/* SPDX-License-Identifier: Apache-2.0 */
/* Words from elsewhere, made fit for a log line, a value or a file name. */
#pragma once
#include <stddef.h>

/* Replaces control characters and non-ASCII bytes by '?', and drops a newline at the end. */
void text_clean(char *s);
/* A file name out of s: [A-Za-z0-9._-], at most 64 characters, no dot in front, never empty. */
void text_name(char out[65], const char *s);
