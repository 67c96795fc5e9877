/* SPDX-License-Identifier: Apache-2.0 */
/* What the server asks of the program: to run a host function, to print what a kernel printed, to move a
 * copy's bytes at its stream's turn. One thread takes these requests, moves and prints; another runs the
 * application's host functions, which may take as long as they like. Both are started when the first is
 * needed.
 *
 * Thread rule: all functions may be called from any thread; host functions run one after another, and so do
 * the shim's own. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "devshim/channel.h"

/* Notes a function that the server may ask for by the id returned; 0 without memory or thread. `once`: it is
 * forgotten after it ran. `foreign`: it is the application's, and gets the thread of host functions. */
uint64_t upcall_new(void (*run)(void *arg), void *arg, bool once, bool foreign);
/* The same for a function that graphs run. It stays: graphs do not tell when the last of them has run it. So
 * those that are alike, by `same` and its `hash`, are one: a program that captures its work again and again
 * makes them once. `arg` is taken over, or freed; 0 without memory or thread. */
uint64_t upcall_keep(void (*run)(void *arg), void *arg, bool foreign, uint64_t hash,
	bool (*same)(const void *a, const void *b));
/* What a hash starts with, and goes on with. */
#define UPCALL_HASH 0xcbf29ce484222325u
static inline uint64_t upcall_hash(uint64_t hash, uint64_t value)
{
	return (hash ^ value ^ value >> 32) * 0x9e3779b97f4a7c15u;
}
/* What was noted under an id. False when it is forgotten. */
bool upcall_find(uint64_t id, void (**run)(void *arg), void **arg);
/* Forgets one. */
void upcall_drop(uint64_t id);
/* A number that came for the host function that runs: by that, while it runs. */
uint64_t upcall_value(unsigned i);
/* True on the upcall thread: CUDA calls are not allowed inside a host function. */
bool upcall_inside(void);
/* What ran at its turn, a host function or a copy, ran before the answers that the server gives when it has
 * been told: upcall_heard in the thread that has such an answer. The thread sanitizer does not see that way
 * through the server. */
#ifdef __SANITIZE_THREAD__
void upcall_heard(void);
#else
static inline void upcall_heard(void) { }
#endif
/* After an answer: waits until what kernels printed before it is on standard output. `sent`: the number that
 * the answer tells. */
void upcall_drain_output(uint16_t sent);
