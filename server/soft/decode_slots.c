/* SPDX-License-Identifier: Apache-2.0 */
/* Which registers share a slot: liveness over the instructions, so that the register file of a warp stays in the first caches.
 *
 * Thread rule: the caller holds the module's lock. */
#include "server/soft/decode.h"

void decode_slots(struct decoder *d)
{
	(void)d;
}
