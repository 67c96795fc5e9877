/* SPDX-License-Identifier: Apache-2.0 */
/* What a library newer than ours would do with the private tables: it calls functions that nobody was seen to
 * call, and asks for a table that is not known. Prints their answers. Threads: none. */
#include <stdint.h>
#include <stdio.h>
#include "wire/cuda.h"

static const char context[] = "\x21\x31\x8c\x60\x97\x14\x32\x48\x8c\xa6\x41\xff\x73\x24\xc8\xf2";
static const char profiler[] = "\x2c\x8e\x0a\xd8\x07\x10\xab\x4e\x90\xdd\x54\x71\x9f\xe5\xf7\x4b";

int main(void)
{
	const void *table = NULL;
	CUuuid id;

	if (cuInit(0))
		return 1;
	for (int i = 0; i < 16; i++)
		id.bytes[i] = context[i];
	if (cuGetExportTable(&table, &id))
		return 2;
	CUresult (*const *slot)(void) = table;
	size_t words = (uintptr_t)slot[0] / sizeof *slot;

	for (size_t i = 1; i < words; i++)
		if (!slot[i])
			return 3;
	printf("slot 7 answers %d, the last %d\n", (int)slot[7](), (int)slot[words - 1]());
	id.bytes[15] = 'x';
	printf("another answers %d\n", (int)cuGetExportTable(&table, &id));
	for (int i = 0; i < 16; i++)
		id.bytes[i] = profiler[i];
	printf("the profiler's answers %d\n", (int)cuGetExportTable(&table, &id));
	return 0;
}
