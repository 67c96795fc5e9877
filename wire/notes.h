/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of functions ahead of being asked: an entry of the list that the answer to a load ends
 * with, and of what a server keeps with an image.
 *
 *     name kind device ...
 *
 * NOTE_FUNCTION: the function's layout, an array of offset and size in turn or nil, and an array of its
 * attributes on that device, nil for one that cannot be told; device -1 and none: they are not known.
 * NOTE_NEXT, in the server's files only: the digest and size of an image that was loaded after this one,
 * without a name. NOTE_SHAPE: a launch with blocks of this shape, the first word, was taken. The others
 * are questions about occupancy on a device: an array of OCCUPANCY_WORDS, code and answer.
 *
 * Thread rule: none, no state. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "wire/cuda_types.h"

enum note {
	NOTE_FUNCTION,
	NOTE_BLOCKS,
	NOTE_SHARED_SIZE,
	NOTE_CLUSTERS,
	NOTE_CLUSTER_SIZE,
	NOTE_NEXT,
	NOTE_SHAPE
};

/* The shape of a block in a word, and in place of one: any. */
#define SHAPE(x, y, z) ((uint32_t)(x) | (uint32_t)(y) << 11 | (uint32_t)(z) << 22)
#define SHAPE_ANY UINT32_MAX

#define NOTES_AHEAD (256u << 10) /* bytes that an answer tells of images which will probably be loaded next  \
				  */

/* The attributes of a function that a program can set are part of a question. */
#define OCCUPANCY_SETTABLE CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES /* and those behind it */
#define OCCUPANCY_SET (CU_FUNC_ATTRIBUTE_MAX - OCCUPANCY_SETTABLE)
#define OCCUPANCY_ARGUMENTS 6
#define OCCUPANCY_WORDS (OCCUPANCY_ARGUMENTS + OCCUPANCY_SET)

struct occupancy_question {
	uint64_t a[OCCUPANCY_ARGUMENTS]; /* the call's arguments */
	int64_t set[OCCUPANCY_SET]; /* attributes; -1: not known */
};

/* The arguments of a question about clusters. False when they are not all: a launch may have more
 * attributes than the cluster's dimensions. */
static inline bool occupancy_clusters(struct occupancy_question *q, const CUlaunchConfig *k)
{
	q->a[0] = (uint64_t)k->gridDimX | (uint64_t)k->gridDimY << 32;
	q->a[1] = (uint64_t)k->gridDimZ | (uint64_t)k->blockDimX << 32;
	q->a[2] = (uint64_t)k->blockDimY | (uint64_t)k->blockDimZ << 32;
	q->a[3] = k->sharedMemBytes;
	if (!k->numAttrs)
		return true;
	q->a[4] = (uint64_t)k->attrs[0].value.clusterDim.x | (uint64_t)k->attrs[0].value.clusterDim.y << 32;
	q->a[5] = (uint64_t)k->attrs[0].value.clusterDim.z + 1;
	return k->numAttrs == 1 && k->attrs[0].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
}
