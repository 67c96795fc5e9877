/* SPDX-License-Identifier: Apache-2.0 */
/* How long a thread looks for more work before it sleeps: a wake-up costs as much as half of a round trip,
 * so a program that calls again at once is served by threads that are still awake. Thread rule: any
 * thread. */
#pragma once
#include <poll.h>
#include <stdbool.h>

/* Microseconds; 0 where processors are few. SCUDAFS_SPIN_US overrides it. */
unsigned spin_us(void);
/* poll() without an end that looks for so long before it sleeps. */
int spin_poll(struct pollfd *p, nfds_t n);
/* May this thread look long, spin_await_us microseconds, for an answer that a program waits for? One of every
 * eight processors may; what began is ended. */
bool spin_await_begin(void);
void spin_await_end(void);
unsigned spin_await_us(void);
/* How many processors this process may use. */
unsigned spin_cpus(void);
