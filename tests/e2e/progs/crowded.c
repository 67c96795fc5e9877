/* SPDX-License-Identifier: Apache-2.0 */
/* More asynchronous copies to pinned memory at once than an answer tells and the server's arena holds:
 * whoever then learns that the stream is done, by waiting or by asking, must find the bytes of all of them.
 * One thread. Arguments: copies, bytes of each. */
#include "tests/e2e/progs/prog.h"

#define ROUNDS 4

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	size_t copies = strtoul(argv[1], NULL, 0), bytes = strtoul(argv[2], NULL, 0), all = copies * bytes;
	uint32_t *want = malloc(all), *got;
	CUdeviceptr device;
	CUstream stream;
	CUresult r;

	prog_up();
	REQUIRE(want && all);
	CHECK(cuMemAlloc_v2(&device, all));
	CHECK(cuMemHostAlloc((void **)&got, all, 0));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (size_t i = 0; i < all / sizeof *want; i++)
		want[i] = (uint32_t)i * 2654435761u;
	CHECK(cuMemcpyHtoD_v2(device, want, all));
	for (int round = 0; round < ROUNDS; round++) {
		memset(got, 0xee, all);
		for (size_t i = 0; i < copies; i++)
			CHECK(cuMemcpyDtoHAsync_v2((char *)got + i * bytes, device + i * bytes, bytes,
					stream));
		if (round % 2) {
			CHECK(cuStreamSynchronize(stream));
		} else {
			while ((r = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY)
				usleep(1000);
			CHECK(r);
		}
		for (size_t i = 0; i < all / sizeof *want; i++) {
			if (got[i] == want[i])
				continue;
			fprintf(stderr, "round %d: copy %zu has not come\n", round, i * sizeof *want / bytes);
			return 1;
		}
	}
	free(want);
	puts("crowded");
	return 0;
}
