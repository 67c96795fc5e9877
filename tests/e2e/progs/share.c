/* SPDX-License-Identifier: Apache-2.0 */
/* Exports memory by descriptors (argument: how many times) and says "ready"; a child that has no CUDA gets
 * the first of them through a socket and says "child ready", holds it until standard input tells it, or for
 * ever when the parent is killed before that. With "most" it exports until it is refused, and says how often
 * it was not; with "pointer" it looks at what names a pointer into a pool. One thread. */
#include <sys/resource.h>
#include <sys/socket.h>
#include "tests/e2e/progs/prog.h"

static int export_one(CUmemGenericAllocationHandle h, CUresult *r)
{
	int fd = -1;

	*r = cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	return fd;
}

static CUmemGenericAllocationHandle create(void)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemGenericAllocationHandle h;
	size_t piece = 0;

	CHECK(cuMemGetAllocationGranularity(&piece, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CHECK(cuMemCreate(&h, piece, &prop, 0));
	return h;
}

static int most(void)
{
	struct rlimit l = {4096, 4096};
	CUmemGenericAllocationHandle h, again;
	int n = 0, fd, first = -1;
	CUresult r;

	setrlimit(RLIMIT_NOFILE, &l);
	prog_up();
	h = create();
	while ((fd = export_one(h, &r)) >= 0 && !r && ++n < 4000)
		if (first < 0)
			first = fd;
	printf("%d exports, then %s\n", n, prog_error(r));
	/* one less, one more */
	close(first);
	for (int i = 0; i < 100 && (fd = export_one(h, &r)) < 0; i++)
		usleep(20000);
	CHECK(r);
	CHECK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd,
			CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	say("right");
	return 0;
}

/* The driver's own bytes say where in which process the memory is: no program sees them, and none can make
 * them up. */
static int pointer(void)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
	CUmemPoolPtrExportData data, made_up;
	CUmemoryPool pool;
	CUdeviceptr p, q;
	int fd;

	prog_up();
	CHECK(cuMemPoolCreate(&pool, &props));
	CHECK(cuMemAllocFromPoolAsync(&p, 4096, pool, NULL));
	CHECK(cuStreamSynchronize(NULL));
	/* A driver names pointers into a pool that has a name itself. */
	REQUIRE(cuMemPoolExportPointer(&data, p) == CUDA_ERROR_INVALID_VALUE);
	CHECK(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	CHECK(cuMemAllocFromPoolAsync(&p, 4096, pool, NULL));
	CHECK(cuStreamSynchronize(NULL));
	CHECK(cuMemPoolExportPointer(&data, p));
	REQUIRE(!memcmp(&data, "SCUDAIPC", 8));
	for (size_t i = 24; i < sizeof data; i++)
		REQUIRE(!((unsigned char *)&data)[i]);
	for (size_t i = 0; i < 24; i++) {
		made_up = data;
		((unsigned char *)&made_up)[i] ^= 1;
		REQUIRE(cuMemPoolImportPointer(&q, pool, &made_up) == CUDA_ERROR_INVALID_VALUE);
	}
	say("right");
	return 0;
}

static void child(int socket)
{
	char c, control[CMSG_SPACE(sizeof(int))];
	struct iovec v = {&c, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control,
			.msg_controllen = sizeof control};

	if (recvmsg(socket, &m, 0) != 1)
		_exit(1);
	say("child ready");
	read(0, &c, 1);
	_exit(0);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1, pair[2], fd, first = -1;
	char control[CMSG_SPACE(sizeof(int))] = {0}, c = 0;
	struct iovec v = {&c, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = control,
			.msg_controllen = sizeof control};
	CUresult r;

	if (argc > 1 && !strcmp(argv[1], "most"))
		return most();
	if (argc > 1 && !strcmp(argv[1], "pointer"))
		return pointer();
	REQUIRE(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	if (!fork())
		child(pair[1]);
	prog_up();
	for (int i = 0; i < n; i++) {
		fd = export_one(create(), &r);
		CHECK(r);
		if (!i)
			first = fd;
	}
	CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(sizeof first);
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &first, sizeof first);
	REQUIRE(sendmsg(pair[0], &m, 0) == 1);
	say("ready");
	for (;;)
		pause();
}
