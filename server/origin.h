/* SPDX-License-Identifier: Apache-2.0 */
/* Where a connection comes from, as far as shares of what is scarce go: an IPv4 address, the first 64 bits
 * of an IPv6 address (one host has all of the rest), a user of this host. And who gives way when everything
 * is taken by connections that have not shown yet who they are.
 *
 * Thread rule: none needed, there is no state. */
#pragma once
#include <stdint.h>

struct origin { uint8_t bytes[16]; };

struct origin origin_of(int fd);

struct claim { struct origin from; uint64_t age; };     /* the smaller, the older */
/* Which of n > 0 claims gives way to a newcomer: the oldest of the origin that has most of them. So a crowd
 * from one place keeps nobody out but itself, and among its own the newest, who may be honest, stay longest.
 * */
int origin_gives_way(const struct claim *claim, int n);
