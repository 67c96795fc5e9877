/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing between two processes of one machine, "ours" and the "peer": memory and events by handles of 64
 * bytes, memory and pools by descriptors; what is refused, and what stays when one side ends. The two take
 * turns, so that the lines have one order. */
#include "check.h"
#include <fcntl.h>
#include <sys/socket.h>

static int link_fd = -1;
static pid_t peer_pid;

/* Forks the peer, which runs f after CUDA's start and exits; before anything of CUDA in this process. */
static void peer(void (*f)(void))
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		exit(4);
	fflush(stdout);
	peer_pid = fork();
	if (peer_pid < 0)
		exit(4);
	link_fd = pair[peer_pid ? 0 : 1];
	close(pair[peer_pid ? 1 : 0]);
	if (peer_pid)
		return;
	alarm(50);
	begin();
	f();
	exit(0);
}

static void tell(const void *p, size_t n)
{
	fflush(stdout);
	if (write(link_fd, p, n) != (ssize_t)n)
		exit(5);
}

static void hear(void *p, size_t n)
{
	if (recv(link_fd, p, n, MSG_WAITALL) != (ssize_t)n)
		exit(6);
}

static void turn(void) /* the other's turn, and back */
{
	char c = 'x';

	tell(&c, 1);
	hear(&c, 1);
}

static void go(void)
{
	char c = 'x';

	tell(&c, 1);
}

static void stop(void)
{
	char c;

	hear(&c, 1);
}

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

static void peer_ends(void)
{
	int status;

	while (waitpid(peer_pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status)
		SAY("the peer ended with %#x", status);
}

static void fill(CUdeviceptr p, unsigned v, size_t words)
{
	NEED(cuMemsetD32(p, v, words));
	NEED(cuCtxSynchronize());
}

static void show(const char *what, CUdeviceptr p)
{
	unsigned type = 0, capable = 0;
	int ordinal = -1;
	CUcontext c = NULL;
	CUdeviceptr start = 0;
	size_t size = 0;
	unsigned long long types = 77;
	CUresult r;

	r = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
	SAY("%s: memory type -> %s %u", what, name_of(r), type);
	r = cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p);
	SAY("%s: ordinal -> %s %d", what, name_of(r), ordinal);
	r = cuPointerGetAttribute(&c, CU_POINTER_ATTRIBUTE_CONTEXT, p);
	SAY("%s: context -> %s ours %d", what, name_of(r), c == context);
	r = cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, p);
	SAY("%s: for handles of 64 bytes -> %s %u", what, name_of(r), capable & 1);
	r = cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, p);
	SAY("%s: handle types -> %s %llu", what, name_of(r), types);
	r = cuMemGetAddressRange(&start, &size, p);
	SAY("%s: range -> %s %zu before, %zu bytes", what, name_of(r), r ? 0 : (size_t)(p - start), size);
}

/* ---- memory by a handle of 64 bytes */

#define BYTES 5000

static void peer_memory(void)
{
	CUipcMemHandle h;
	CUdeviceptr p = 0, again = 0;
	unsigned v = 77;
	CUfunction f = kernel("store");

	hear(&h, sizeof h);
	ASK(cuIpcOpenMemHandle(NULL, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	ASK(cuIpcOpenMemHandle(&p, h, 2));
	if (ASK(cuIpcOpenMemHandle(&p, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)))
		exit(0);
	SAY("the peer reads %u", word(p + 400));
	show("imported", p + 12);
	ASK(LAUNCH(f, NULL, &p, &v));
	ASK(cuMemsetD32(p + 4, 88, 1));
	ASK(cuCtxSynchronize());
	ASK(cuIpcOpenMemHandle(&again, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	SAY("the same pointer %d", again == p);
	ASK(cuMemFree(p));
	ASK(cuMemFreeAsync(p, NULL));
	ASK(cuIpcGetMemHandle(&h, p));
	ASK(cuIpcCloseMemHandle(p + 4));
	turn();
	ASK(cuIpcCloseMemHandle(p));
	v = 99;
	VARY(LAUNCH(f, NULL, &p, &v));
	VARY(cuCtxSynchronize());
	ASK(cuIpcCloseMemHandle(p));
	ASK(cuIpcCloseMemHandle(p));
	ASK(cuMemGetAddressRange(&again, NULL, p));
	go();
}

static void memory(void)
{
	CUipcMemHandle h, twice;
	CUdeviceptr p, other;

	peer(peer_memory);
	begin();
	NEED(cuMemAlloc(&p, BYTES));
	fill(p, 55, BYTES / 4);
	show("before", p);
	ASK(cuIpcGetMemHandle(NULL, p));
	NEED(cuIpcGetMemHandle(&h, p));
	show("exported", p);
	NEED(cuIpcGetMemHandle(&twice, p));
	SAY("the same handle %d", !memcmp(&h, &twice, sizeof h));
	ASK(cuIpcGetMemHandle(&twice, p + 100));
	ASK(cuIpcOpenMemHandle(&other, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	ASK(cuIpcCloseMemHandle(p));
	tell(&h, sizeof h);
	stop();
	SAY("ours reads %u %u", word(p), word(p + 4));
	go();
	stop();
	peer_ends();
	ASK(cuMemFree(p));
	ASK(cuIpcGetMemHandle(&h, p));
}

static void not_shared(void)
{
	CUipcMemHandle h;
	CUdeviceptr p;
	void *host;
	static char own[64];

	begin();
	ASK(cuIpcGetMemHandle(&h, 0));
	ASK(cuIpcGetMemHandle(&h, ADDRESS(own)));
	NEED(cuMemAllocHost(&host, 4096));
	ASK(cuIpcGetMemHandle(&h, ADDRESS(host)));
	NEED(cuMemAllocManaged(&p, 4096, CU_MEM_ATTACH_GLOBAL));
	ASK(cuIpcGetMemHandle(&h, p));
	NEED(cuMemAllocAsync(&p, 4096, NULL));
	ASK(cuIpcGetMemHandle(&h, p));
	NEED(cuModuleGetGlobal(&p, NULL, module, "number"));
	ASK(cuIpcGetMemHandle(&h, p));
	ASK(cuIpcCloseMemHandle(0));
	NEED(cuMemAlloc(&p, 4096));
	ASK(cuIpcCloseMemHandle(p));
	NEED(cuCtxSetCurrent(NULL));
	ASK(cuIpcGetMemHandle(&h, p));
}

/* Memory from inside a block that the driver cut up; the peer finds the block's or the allocation's start. */
static void peer_inner(void)
{
	CUipcMemHandle h[3];
	CUdeviceptr p[3];

	hear(h, sizeof h);
	for (int i = 0; i < 3; i++) {
		size_t size = 0;

		if (ASK(cuIpcOpenMemHandle(&p[i], h[i], CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)))
			continue;
		SAY("%d reads %u", i, word(p[i]));
		NEED(cuMemGetAddressRange(NULL, &size, p[i]));
		SAY("%d has %zu bytes", i, size);
	}
	SAY("apart %d", p[0] != p[1] && p[1] != p[2]);
	go();
}

static void inner(void)
{
	CUipcMemHandle h[3];
	CUdeviceptr p[3];

	peer(peer_inner);
	begin();
	for (unsigned i = 0; i < 3; i++) {
		NEED(cuMemAlloc(&p[i], 1000));
		fill(p[i], 100 + i, 250);
		NEED(cuIpcGetMemHandle(&h[i], p[i]));
	}
	tell(h, sizeof h);
	stop();
	peer_ends();
}

static void peer_late(void)
{
	CUipcMemHandle h;
	CUdeviceptr p;

	hear(&h, sizeof h);
	VARY(cuIpcOpenMemHandle(&p, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	go();
}

static void freed(void)
{
	CUipcMemHandle h;
	CUdeviceptr p;

	peer(peer_late);
	begin();
	NEED(cuMemAlloc(&p, BYTES));
	NEED(cuIpcGetMemHandle(&h, p));
	NEED(cuMemFree(p));
	tell(&h, sizeof h);
	stop();
	peer_ends();
}

/* The exporter is a third process, which ends before the peer looks. */
static void export_and_end(void)
{
	CUipcMemHandle h;
	CUdeviceptr p;

	NEED(cuMemAlloc(&p, BYTES));
	NEED(cuIpcGetMemHandle(&h, p));
	tell(&h, sizeof h);
}

static void ended(void)
{
	CUipcMemHandle h;
	CUdeviceptr p;

	peer(export_and_end);
	hear(&h, sizeof h);
	peer_ends();
	begin();
	ASK(cuIpcOpenMemHandle(&p, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}

static void nonsense(void)
{
	CUipcMemHandle h;
	CUdeviceptr p;

	begin();
	memset(&h, 0, sizeof h);
	ASK(cuIpcOpenMemHandle(&p, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}

static void nonsense_event(void)
{
	CUipcEventHandle h;
	CUevent e;

	begin();
	memset(&h, 0, sizeof h);
	ASK(cuIpcOpenEventHandle(&e, h));
}

/* ---- events */

static void peer_event(void)
{
	CUipcEventHandle h;
	CUipcMemHandle m;
	CUevent e, mine;
	CUstream s;
	CUdeviceptr p;
	float ms;

	hear(&h, sizeof h);
	hear(&m, sizeof m);
	ASK(cuIpcOpenEventHandle(NULL, h));
	if (ASK(cuIpcOpenEventHandle(&e, h)))
		exit(0);
	NEED(cuIpcOpenMemHandle(&p, m, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	/* ours has recorded it behind work that is held */
	ASK(cuEventQuery(e));
	ASK(cuStreamWaitEvent(s, e, 0));
	NEED(cuMemcpyDtoDAsync(p + 4, p, 4, s));
	ASK(cuStreamQuery(s));
	turn(); /* ours lets its work go */
	ASK(cuStreamSynchronize(s));
	ASK(cuEventQuery(e));
	ASK(cuEventSynchronize(e));
	SAY("the peer reads %u %u", word(p), word(p + 4));
	NEED(cuEventCreate(&mine, 0));
	ASK(cuEventElapsedTime(&ms, e, mine));
	ASK(cuIpcGetEventHandle(&h, mine));
	/* and records it itself */
	NEED(cuMemsetD32Async(p + 8, 33, 1, s));
	ASK(cuEventRecord(e, s));
	turn();
	ASK(cuEventDestroy(e));
	go();
}

static void event(void)
{
	CUipcEventHandle h;
	CUipcMemHandle m;
	CUevent e, other;
	CUdeviceptr p;
	CUstream s;
	CUfunction f;
	unsigned v = 21;

	peer(peer_event);
	begin();
	f = kernel("store");
	p = zeroed(4096);
	ASK(cuEventCreate(&e, CU_EVENT_INTERPROCESS));
	NEED(cuEventCreate(&e, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	NEED(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
	ASK(cuIpcGetEventHandle(NULL, e));
	NEED(cuIpcGetEventHandle(&h, e));
	ASK(cuIpcOpenEventHandle(&other, h));
	ASK(cuEventQuery(e));
	NEED(cuIpcGetMemHandle(&m, p));
	NEED(close_gate(s));
	NEED(LAUNCH(f, s, &p, &v));
	ASK(cuEventRecord(e, s));
	ASK(cuEventQuery(e));
	tell(&h, sizeof h);
	tell(&m, sizeof m);
	stop();
	open_gate();
	go();
	stop();
	ASK(cuEventSynchronize(e));
	SAY("ours reads %u", word(p + 8));
	go();
	stop();
	ASK(cuEventQuery(e));
	ASK(cuEventDestroy(e));
	peer_ends();
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

SECTIONS({"memory", memory}, {"not shared", not_shared}, {"inner", inner}, {"freed", freed}, {"ended", ended},
	{"nonsense", nonsense}, {"nonsense event", nonsense_event}, {"event", event},
		{"descriptor", descriptor},
	{"not a descriptor", not_a_descriptor}, {"descriptor stays", descriptor_stays}, {"pool", pool})
