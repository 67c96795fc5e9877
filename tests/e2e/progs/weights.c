/* SPDX-License-Identifier: Apache-2.0 */
/* weights HOW: as a framework moves a model to its device: 200 tensors, each allocated from one block, copied
 * from pageable memory that is overwritten at once, and waited for; then a kernel on another stream, which
 * waits for nobody, adds to each what it should find there. HOW is `small`, `large` (tensors of 2 MiB, 20 of
 * them), `pinned`, `busy` (a kernel ahead of each copy), or `shown` (another program could open the memory).
 * Says "right". One thread. */
#include "prog.h"

#define LARGE (2u << 20)

int main(int argc, char **argv)
{
	const char *how = argc == 2 ? argv[1] : "";
	bool large = !strcmp(how, "large"), pinned = !strcmp(how, "pinned"), is_busy = !strcmp(how, "busy");
	unsigned count = large ? 20 : 200, words = large ? LARGE / 4 : 64, got;
	CUstream stream, other;
	CUipcMemHandle handle;
	CUdeviceptr p;
	unsigned *from;
	CUfunction add;

	prog_up();
	add = prog_function("add");
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc_v2(&p, (size_t)count * words * 4));
	if (pinned)
		CHECK(cuMemHostAlloc((void **)&from, words * 4, 0));
	else
		from = malloc(words * 4);
	REQUIRE(from);
	if (!strcmp(how, "shown"))
		CHECK(cuIpcGetMemHandle(&handle, p));
	for (unsigned i = 0; i < count; i++) {
		CUdeviceptr to = p + (size_t)i * words * 4;

		if (is_busy)
			CHECK(prog_launch(add, to, 1, 1, 1, stream));
		for (unsigned k = 0; k < words; k++)
			from[k] = 1000 * i + k;
		CHECK(cuMemcpyHtoDAsync_v2(to, from, words * 4, stream));
		if (!pinned)
			memset(from, 0xff, words * 4);
		CHECK(cuStreamSynchronize(stream));
		CHECK(prog_launch(add, to, 7, words, words, is_busy ? stream : other));
		if (!is_busy)
			CHECK(cuStreamSynchronize(other));
	}
	CHECK(cuCtxSynchronize());
	for (unsigned i = 0; i < count; i++)
		for (unsigned k = 0; k < words; k += words - 1) {
			CHECK(cuMemcpyDtoH_v2(&got, p + ((size_t)i * words + k) * 4, 4));
			REQUIRE(got == 1000 * i + k + 7);
		}
	if (pinned)
		CHECK(cuMemFreeHost(from));
	else
		free(from);
	say("right");
	return 0;
}
