/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing between two processes of one machine by descriptors: memory and pools; what is refused, and what
 * stays when one side ends. Thread rule: pair.h's. */
#include <fcntl.h>
#include "pair.h"

static void tell_fd(int fd)
{
	char c = 'f';
	union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof(int))]; } control = {0};
	struct iovec v = {&c, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control,
			.msg_controllen = sizeof control};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(h), &fd, sizeof fd);
	fflush(stdout);
	if (sendmsg(link_fd, &m, 0) != 1)
		exit(5);
}

static int hear_fd(void)
{
	char c;
	int fd = -1;
	union { struct cmsghdr align; char bytes[CMSG_SPACE(sizeof(int))]; } control;
	struct iovec v = {&c, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1, .msg_control = &control,
			.msg_controllen = sizeof control};

	if (recvmsg(link_fd, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
		exit(6);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	return fd;
}

/* ---- memory by a descriptor */

static size_t piece;
static CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

static CUdeviceptr map(CUmemGenericAllocationHandle h)
{
	CUmemAccessDesc access = {
		.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUdeviceptr p;

	NEED(cuMemAddressReserve(&p, piece, 0, 0, 0));
	NEED(cuMemMap(p, piece, 0, h, 0));
	NEED(cuMemSetAccess(p, piece, &access, 1));
	return p;
}

static void begin_piece(void)
{
	if (!attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED)) {
		SAY("no descriptors");
		exit(0);
	}
	NEED(cuMemGetAllocationGranularity(&piece, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	SAY("~ granularity %zu", piece);
}

static void peer_descriptor(void)
{
	CUmemGenericAllocationHandle h = 0;
	CUmemAllocationProp got = {0};
	CUdeviceptr p;
	int fd = hear_fd();

	begin_piece();
	if (ASK(cuMemImportFromShareableHandle(
		    &h, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)))
		exit(0);
	close(fd);
	NEED(cuMemGetAllocationPropertiesFromHandle(&got, h));
	SAY("imported: type %d, handle types %d, device %d", got.type, got.requestedHandleTypes,
			got.location.id);
	p = map(h);
	SAY("the peer reads %u", word(p + 64));
	show("mapped", p + 4);
	fill(p + 128, 91, 1);
	ASK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	NEED(cuMemRelease(h));
	turn();
	/* ours has let go of all */
	SAY("the peer still reads %u", word(p + 64));
	ASK(cuMemUnmap(p, piece));
	ASK(cuMemAddressFree(p, piece));
	go();
}

static void descriptor(void)
{
	CUmemGenericAllocationHandle h, own = 0;
	CUdeviceptr p, twice;
	int fd = -1;

	peer(peer_descriptor);
	begin();
	begin_piece();
	NEED(cuMemCreate(&h, piece, &prop, 0));
	ASK(cuMemExportToShareableHandle(NULL, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	ASK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1));
	ASK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_NONE, 0));
	NEED(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	SAY("a descriptor %d, closed by exec %d", fd > 2, (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
	p = map(h);
	fill(p, 90, piece / 4);
	show("ours", p);
	/* in the same process, too */
	if (!ASK(cuMemImportFromShareableHandle(
		    &own, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))) {
		SAY("the same handle %d", own == h);
		twice = map(own);
		SAY("ours reads %u", word(twice + 64));
		NEED(cuMemUnmap(twice, piece));
		NEED(cuMemRelease(own));
	}
	tell_fd(fd);
	close(fd);
	stop();
	SAY("ours reads %u", word(p + 128));
	NEED(cuMemUnmap(p, piece));
	NEED(cuMemRelease(h));
	go();
	stop();
	peer_ends();
}

static void not_a_descriptor(void)
{
	CUmemGenericAllocationHandle h, in;
	CUmemAllocationProp plain = prop;
	int fd = -1, pipes[2];

	begin();
	begin_piece();
	plain.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	NEED(cuMemCreate(&h, piece, &plain, 0));
	ASK(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	NEED(cuMemRelease(h));
	ASK(cuMemImportFromShareableHandle(&in, (void *)(intptr_t)-1,
			CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	if (pipe(pipes))
		exit(4);
	ASK(cuMemImportFromShareableHandle(
		&in, (void *)(intptr_t)pipes[0], CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	ASK(cuMemImportFromShareableHandle(&in, (void *)(intptr_t)pipes[0], CU_MEM_HANDLE_TYPE_NONE));
}

/* The exporter ends; its descriptor is here still. */
static void peer_leaves(void)
{
	CUmemGenericAllocationHandle h;
	CUdeviceptr p;
	int fd;

	begin_piece();
	NEED(cuMemCreate(&h, piece, &prop, 0));
	p = map(h);
	fill(p, 44, piece / 4);
	NEED(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	tell_fd(fd);
}

static void descriptor_stays(void)
{
	CUmemGenericAllocationHandle h;
	CUdeviceptr p = 0;
	int fd;

	peer(peer_leaves);
	fd = hear_fd();
	peer_ends();
	begin();
	begin_piece();
	for (int i = 0; i < 2; i++) {
		if (ASK(cuMemImportFromShareableHandle(
			    &h, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)))
			continue;
		p = map(h);
		SAY("reads %u", word(p + 8));
	}
	close(fd);
	SAY("reads %u", word(p + 8));
}

/* ---- pools */

static CUmemPoolProps pool_props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

static void begin_pool(void)
{
	int types = attribute(CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES);

	if (!(types & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) {
		SAY("no pools by descriptors");
		exit(0);
	}
}

static void peer_pool(void)
{
	CUmemoryPool pool;
	CUmemPoolPtrExportData data;
	CUdeviceptr p, own;
	int fd = hear_fd();

	begin_pool();
	hear(&data, sizeof data);
	if (ASK(cuMemPoolImportFromShareableHandle(
		    &pool, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0)))
		exit(0);
	if (ASK(cuMemPoolImportPointer(&p, pool, &data)))
		exit(0);
	SAY("the peer reads %u", word(p + 16));
	show("from a pool", p);
	ASK(cuMemAllocFromPoolAsync(&own, 4096, pool, NULL));
	ASK(cuMemPoolExportPointer(&data, p));
	fill(p + 32, 12, 1);
	ASK(cuMemFreeAsync(p, NULL));
	ASK(cuStreamSynchronize(NULL));
	ASK(cuMemPoolDestroy(pool));
	go();
}

static void pool(void)
{
	CUmemoryPool pool, standard;
	CUmemPoolPtrExportData data;
	CUdeviceptr p, early;
	int fd = -1;

	peer(peer_pool);
	begin();
	begin_pool();
	NEED(cuDeviceGetDefaultMemPool(&standard, device));
	ASK(cuMemPoolExportToShareableHandle(&fd, standard, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	NEED(cuMemAllocAsync(&p, 4096, NULL));
	ASK(cuMemPoolExportPointer(&data, p));
	NEED(cuMemPoolCreate(&pool, &pool_props));
	NEED(cuMemAllocFromPoolAsync(&early, 4096, pool, NULL));
	ASK(cuMemPoolExportPointer(&data, early));
	ASK(cuMemPoolExportToShareableHandle(NULL, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	NEED(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	NEED(cuMemAllocFromPoolAsync(&p, 4096, pool, NULL));
	fill(p, 11, 1024);
	show("pool's", p);
	VARY(cuMemPoolExportPointer(&data, early));
	ASK(cuMemPoolExportPointer(NULL, p));
	NEED(cuMemPoolExportPointer(&data, p));
	tell_fd(fd);
	close(fd);
	tell(&data, sizeof data);
	stop();
	SAY("ours reads %u", word(p + 32));
	peer_ends();
	ASK(cuMemFreeAsync(p, NULL));
	ASK(cuMemPoolDestroy(pool));
}

SECTIONS({"descriptor", descriptor}, {"not a descriptor", not_a_descriptor},
	{"descriptor stays", descriptor_stays}, {"pool", pool})
