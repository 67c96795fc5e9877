// SPDX-License-Identifier: Apache-2.0
// NCCL with one rank: every collective on types of each size, in and out of place, grouped, sent to itself,
// with a scaling operation of one's own, and in a graph.
#include "app.h"
#include "libs.h"
#include <nccl.h>

enum { N = 10000 };

static ncclComm_t comm;
static cudaStream_t s;

template <typename T> static void collectives(const char *name, ncclDataType_t type)
{
	std::vector<T> x(N);
	for (int i = 0; i < N; i++)
		x[i] = (T)(i % 100);
	dev<T> in(x), out(N);

	LIB(ncclAllReduce(in, out, N, type, ncclSum, comm, s));
	CK(cudaStreamSynchronize(s));
	same_bytes(name, out.get().data(), x.data(), N * sizeof(T));
	CK(cudaMemset(out, 0, N * sizeof(T)));
	LIB(ncclReduce(in, out, N, type, ncclMax, 0, comm, s));
	LIB(ncclBroadcast(out, out, N, type, 0, comm, s));
	CK(cudaStreamSynchronize(s));
	same_bytes(name, out.get().data(), x.data(), N * sizeof(T));
	CK(cudaMemset(out, 0, N * sizeof(T)));
	LIB(ncclAllGather(in, out, N, type, comm, s));
	LIB(ncclReduceScatter(out, out, N, type, ncclSum, comm, s));
	CK(cudaStreamSynchronize(s));
	same_bytes(name, out.get().data(), x.data(), N * sizeof(T));
	printf("%s\n", name);
}

int main(void)
{
	int version, device = 0, count, rank;
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	ncclRedOp_t half;
	float factor = 0.5f;

	setenv("NCCL_NVLS_ENABLE", "0", 0);
	CK(cudaSetDevice(0));
	LIB(ncclGetVersion(&version));
	printf("~ NCCL %d\n", version);
	LIB(ncclCommInitAll(&comm, 1, &device));
	LIB(ncclCommCount(comm, &count));
	LIB(ncclCommUserRank(comm, &rank));
	printf("rank %d of %d\n", rank, count);
	CK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	collectives<int8_t>("bytes", ncclInt8);
	collectives<float>("single", ncclFloat);
	collectives<double>("double", ncclDouble);
	collectives<int64_t>("64 bits", ncclInt64);

	std::vector<float> x = noise_vector<float>(N, 51);
	dev<float> in(x), out(N), again(N);
	LIB(ncclGroupStart());
	LIB(ncclSend(in, N, ncclFloat, 0, comm, s));
	LIB(ncclRecv(out, N, ncclFloat, 0, comm, s));
	LIB(ncclGroupEnd());
	CK(cudaStreamSynchronize(s));
	same_bytes("to itself", out.get().data(), x.data(), N * 4);
	puts("to itself");

	LIB(ncclRedOpCreatePreMulSum(&half, &factor, ncclFloat, ncclScalarHostImmediate, comm));
	LIB(ncclAllReduce(in, out, N, ncclFloat, half, comm, s));
	CK(cudaStreamSynchronize(s));
	std::vector<float> got = out.get();
	for (int i = 0; i < N; i++)
		close_to("scaled", i, got[i], x[i] * 0.5, 0);
	LIB(ncclRedOpDestroy(half, comm));
	puts("scaled");

	CK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	LIB(ncclAllReduce(in, again, N, ncclFloat, ncclSum, comm, s));
	CK(cudaStreamEndCapture(s, &graph));
	CK(cudaGraphInstantiate(&exec, graph, 0));
	CK(cudaGraphLaunch(exec, s));
	CK(cudaStreamSynchronize(s));
	same_bytes("in a graph", again.get().data(), x.data(), N * 4);
	puts("in a graph");
	CK(cudaGraphExecDestroy(exec));
	CK(cudaGraphDestroy(graph));
	CK(cudaStreamDestroy(s));
	LIB(ncclCommDestroy(comm));
	return pass();
}
