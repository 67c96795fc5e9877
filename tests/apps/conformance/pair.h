/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes of one machine for the conformance programs, "ours" and the "peer", which take turns, so that
 * their lines have one order; and what is told of memory that they share. Thread rule: each is one thread. */
#pragma once
#include <sys/socket.h>
#include "check.h"

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
