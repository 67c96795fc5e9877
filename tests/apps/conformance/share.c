/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing between two processes of one machine by handles of 64 bytes: memory and events; what is refused,
 * and what stays when one side ends. Thread rule: pair.h's. */
#include "pair.h"

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

SECTIONS({"memory", memory}, {"not shared", not_shared}, {"inner", inner}, {"freed", freed}, {"ended", ended},
	{"nonsense", nonsense}, {"nonsense event", nonsense_event}, {"event", event})
