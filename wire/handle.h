/* SPDX-License-Identifier: Apache-2.0 */
/* The value of a handle that a program holds: type << 40 | number << 4. It looks like what the driver gives,
 * a pointer to something aligned below 2^47, because programs use the bits that such a pointer leaves free:
 * PyTorch takes a stream whose lowest bit is set for one of its own. Types are HANDLE_CU* (generated); what
 * is ever dereferenced is what the tables of both ends keep under it, never the value.
 *
 * Thread rule: no state. */
#pragma once
#include <stdint.h>

#define HANDLE_FIRST    0x1000u         /* numbers from here are the program's: first the primary context of
                                         * each device */
#define HANDLE_OWN      0x2000u         /* then those that devshim/handle.c gives */
#define HANDLE_SERVER   0x80000000u     /* numbers from here on are the server's, below 2^32 */

#define HANDLE_ID(type, number) ((uint64_t)(type) << 40 | (uint64_t)(uint32_t)(number) << 4)
/* Of any value, also garbage: what does not give the value back through HANDLE_ID is no handle. */
#define HANDLE_TYPE(id) ((unsigned)((uint64_t)(id) >> 40))
#define HANDLE_NUMBER(id) ((uint32_t)((uint64_t)(id) >> 4))
