/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the integrity answer, apart from each other for its test. Thread rule: no state. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define HANDSHAKE_DEVICES 64

/* MD2 as RFC 1319 and its errata describe it. */
struct md2 { uint8_t state[48], sum[16], block[16]; unsigned fill; };
void md2_init(struct md2 *m);
void md2_add(struct md2 *m, const void *p, size_t n);
void md2_end(struct md2 *m, uint8_t out[16]);

/* What is signed: this, then each device, all little-endian. */
struct handshake {
	uint32_t driver, version, pid, thread;
	uint64_t interface, integrity, function, seconds;
};
_Static_assert(sizeof(struct handshake) == 48, "handshake");
struct handshake_device { uint8_t uuid[16]; int32_t pci[3]; };
_Static_assert(sizeof(struct handshake_device) == 28, "handshake_device");

void handshake_sign(const struct handshake *h, const struct handshake_device *devices, unsigned count,
		uint8_t out[16]);
