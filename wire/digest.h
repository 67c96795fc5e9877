/* SPDX-License-Identifier: Apache-2.0 */
/* The hash by which both ends name a module's image: BLAKE2bp with 64 bytes, as its authors define it. A
 * collision would give one program another's code, so it is a cryptographic one; the shim lives in other
 * people's processes and may load no library for it, and it must keep up with a fast link, so it is the
 * variant of four lanes that a vector unit runs at once.
 *
 * Thread rule: none, no state. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define DIGEST 64 /* bytes */

void digest(const void *p, size_t n, uint8_t out[DIGEST]);
/* The digest as lower-case hexadecimal digits and a NUL. */
void digest_text(const uint8_t d[DIGEST], char out[2 * DIGEST + 1]);
