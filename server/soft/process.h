/* SPDX-License-Identifier: Apache-2.0 */
/* Processes by name, so that what one has left unfinished is not waited for for ever.
 *
 * Thread rule: any thread. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* This process's name: its number and when it began, so that a later process of the same number has another
 * one. Never 0. */
uint64_t process_name(void);
/* Has that process ended? One that nobody has waited for (a zombie) has. */
bool process_gone(uint64_t name);
