/* SPDX-License-Identifier: Apache-2.0 */
/* The targets that PTX names up to ISA 9.0.
 *
 * Thread rule: constants only. */
#include "server/soft/names.h"

bool engine_target_known(unsigned sm)
{
	static const uint8_t known[] = {10, 11, 12, 13, 20, 30, 32, 35, 37, 50, 52, 53, 60, 61, 62, 70, 72,
		75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121};
	for (unsigned i = 0; i < sizeof known; i++)
		if (known[i] == sm)
			return true;
	return false;
}
