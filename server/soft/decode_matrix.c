/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding of matrix instructions and asynchronous copies.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"

bool decode_matrix(struct decoder *d)
{
	(void)d;
	return false;
}
