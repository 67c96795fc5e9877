/* SPDX-License-Identifier: Apache-2.0 */
/* The table of what is in the folders of the tree, and how each value is printed. A value that is not known
 * is a file that does not exist.
 *
 * Thread rule: constant; `show` may be called from any thread. */
#pragma once
#include <stdbool.h>
#include <stdio.h>

enum folder {
	ROOT, SERVERS, SERVER, GPU, MEMORY, UTILIZATION, TEMPERATURE, POWER, CLOCKS, PCIE, ECC, BY_UUID,
	STATS, SESSIONS, SESSION
};

struct entry {
	enum folder in;
	const char *name;
	int (*show)(FILE *f, unsigned object);  /* NULL: a folder, or the session node. Returns 0, or -ENOENT:
	                                         * unknown now */
	enum folder folder;                     /* ROOT: the session node */
	bool word;                              /* a word, even when it happens to be all digits */
};
extern const struct entry tree_entries[];
extern const unsigned tree_entry_count;

/* The whole tree as one JSON object (tree_json.c). */
int tree_show_json(FILE *f, unsigned object);
