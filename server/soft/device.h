/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers that the software device presents, in the manner of compute capability 7.5.
 *
 * Thread rule: constants. */
#pragma once

#define SHARED_BLOCK 49152u
#define SHARED_OPTIN 65536u
#define SHARED_MULTIPROCESSOR 65536u
#define REGISTERS_MULTIPROCESSOR 65536u
#define THREADS_MULTIPROCESSOR 1024u
#define BLOCKS_MULTIPROCESSOR 16
#define THREADS_BLOCK 1024u
#define GRANULARITY (2u << 20) /* of virtual memory management */
