/* SPDX-License-Identifier: Apache-2.0 */
/* One log line per event on standard error: "scudafs[812]: relay 7: connection reset". Thread-safe; errno is
 * kept; %m works. In the shim nothing is printed unless SCUDAFS_LOG is set (its value: error, warning, info,
 * debug); elsewhere warning and worse is the default. */
#pragma once
#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
/* `name` is kept; level from SCUDAFS_LOG when set, else `fallback` (-1: silent). */
void log_init(const char *name, int fallback);
/* Lines go to this descriptor instead of standard error, also those of libraries that this process loads
 * later. */
void log_to(int fd);
bool log_enabled(enum log_level level);
void log_at(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define log_error(...) log_at(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_at(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)
/* Logs at error level and returns r (0 or -errno; %m in fmt shows -r). */
int log_errno(int r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
