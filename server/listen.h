/* SPDX-License-Identifier: Apache-2.0 */
/* The listener: the process that the user starts. See listen.c. */
#pragma once

struct options;
struct keys;

/* Serves until SIGTERM or SIGINT. Takes over keys (NULL: none). Returns the exit status. */
int listen_run(const struct options *o, struct keys *keys);
