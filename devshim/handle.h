/* SPDX-License-Identifier: Apache-2.0 */
/* The shim's table of the handles that the application holds: which are alive, of which type, made in which
 * context, and what the shim keeps about each. Values are those of wire/handle.h and never dereferenced, so
 * any garbage of an application is safe.
 *
 * Thread rule: all functions may be called from any thread; looking up takes no lock. A handle that one
 * thread destroys while another uses it is the application's mistake, as with CUDA itself. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "wire/cuda_types.h"
#include "wire/handle.h"
#include "cuda.calls.h"

/* 0 of what is none of ours, as an address of the driver's. */
static inline unsigned handle_type(const void *h)
{
	unsigned type = HANDLE_TYPE((uintptr_t)h);
	return type < HANDLE_TYPES ? type : 0;
}
static inline void *handle_value(unsigned type, uint32_t number)
{
	return (void *)(uintptr_t)HANDLE_ID(type, number);
}

/* Notes a handle as alive and made in `owner` (0: it belongs to no context). False without memory or for a
 * value that no server may give. */
bool handle_note(unsigned type, const void *h, CUcontext owner);
/* True when h is alive and of that type. */
bool handle_live(unsigned type, const void *h);
/* A word that the owner of the type keeps with a live handle; NULL when none was set, and for dead
 * handles. */
void *handle_data(unsigned type, const void *h);
/* Sets the word. False when the handle is dead. */
bool handle_set_data(unsigned type, const void *h, void *data);
/* The context in which it was made, or NULL. */
CUcontext handle_owner(unsigned type, const void *h);
/* `release` gets the word (when not NULL) of each handle of that type that dies, by handle_drop or with its
 * context. Set before the first handle. */
void handle_on_drop(unsigned type, void (*release)(const void *h, void *data));
/* A live handle gets another name, by which the program knows it from then on, in all functions here: a value
 * that is none of ours. For executable graphs that kernels launch by the driver's own handle. False without
 * memory. */
bool handle_rename(unsigned type, const void *h, const void *name);
/* A context has died: its streams, events, modules and functions die with it. */
void handle_drop_owner(CUcontext owner);
/* True for types whose handles die with their context. */
bool handle_is_owned(unsigned type);
