/* SPDX-License-Identifier: Apache-2.0 */
/* What a server says about itself and its GPUs (the snapshot map of wire/frame.h), decoded and cleaned.
 * Pure functions. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "wire/limits.h"
#include "wire/values.h"

#define VALUE_ID(id, folder, path, file) VALUE_##id,
enum gpu_number { GPU_NUMBERS(VALUE_ID) VALUE_NUMBERS };
enum gpu_word { GPU_WORDS(VALUE_ID) VALUE_WORDS };
#undef VALUE_ID

struct gpu_process {
	uint64_t pid, memory;
	bool memory_known;
	char name[64];
};

struct gpu {
	char name[LIMIT_NAME + 1];
	char uuid[48];              /* "GPU-..." */
	char bus[32];               /* "" when the server does not know */
	uint64_t total, free;
	int64_t major, minor, multiprocessors;  /* -1: unknown */
	int64_t number[VALUE_NUMBERS];          /* the same */
	char word[VALUE_WORDS][64];             /* "": unknown */
	bool listed;                            /* the processes are known */
	unsigned processes;
	struct gpu_process process[GPU_PROCESSES];
};

struct snapshot {
	int64_t driver_version;     /* 13000 */
	char nvidia_version[32], driver[16], host[LIMIT_NAME + 1];
	uint64_t sessions;
	unsigned count;
	struct gpu gpus[LIMIT_DEVICES];
};

/* 0 or -EPROTO. */
int snapshot_decode(const void *p, size_t n, struct snapshot *out);
