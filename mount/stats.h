/* SPDX-License-Identifier: Apache-2.0 */
/* What `scudafs run --stats` tells of the programs that it ran (wire/stats.h). One thread. */
#pragma once

/* A private folder for the files of the processes; its path into out (PATH_MAX bytes). 0 or an exit code. */
int stats_prepare(char *out);
/* Adds up the files in the folder, writes JSON into the file `to`, or a table on standard error when it is
 * NULL, and removes the folder. 0 or an exit code. */
int stats_report(const char *folder, const char *to);
