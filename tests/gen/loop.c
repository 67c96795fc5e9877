// SPDX-License-Identifier: Apache-2.0
/* The loop test: every call that the generator encodes goes once through its generated stub, the wire format
 * and its generated dispatch into a driver table of checking functions, in one process without network; then
 * every truncated prefix of each request, and every request with one byte too many, must be refused by the
 * dispatch without a call of the driver. */
#include "tests/gen/loop.h"
#include <stdio.h>
#include <stdlib.h>
#include "server/exec.h"
#include "wire/handle.h"
#include "wire/limits.h"

#ifdef LOOP_NVML
struct nvml_driver nvml;
#else
struct driver drv;
#endif
unsigned loop_called;
CUresult loop_result;
static const char *current = "";
static unsigned failures, executed;
static uint8_t request[LIMIT_HEAD], answer[LIMIT_HEAD];
static uint64_t chosen;

void loop_check(bool ok, const char *what, int line)
{
	if (ok)
		return;
	failures++;
	printf("%s: %s (case line %d)\n", current, what, line);
}

bool loop_filled(const void *p, int byte, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((const unsigned char *)p)[i] != byte)
			return false;
	return true;
}

uintptr_t real_handle_value(uintptr_t h)
{
	return h ^ 0xa50000;
}

/* ---- the server's side ---- */

static void *arena[64];
static unsigned arena_used;
void *exec_alloc(struct exec *x, size_t n)
{
	(void)x;
	return arena_used < 64 ? arena[arena_used++] = calloc(1, n) : NULL;
}
void *exec_bulk_all(struct exec *x, size_t max)
{
	return x->bulk_left <= max ? exec_alloc(x, x->bulk_left + 1) : NULL;
}
void *exec_handle(struct exec *x, unsigned type)
{
	uint64_t id = get_u64(&x->in);
	if (x->in.bad)
		return NULL;
	if (HANDLE_TYPE(id) != type) {
		x->bad_handle = true;
		x->handle_code = CUDA_ERROR_INVALID_HANDLE;
		return NULL;
	}
	return (void *)real_handle_value(id);
}
void exec_put_handle(struct exec *x, unsigned type, void *real)
{
	(void)type;
	put_u64(&x->out, real_handle_value((uintptr_t)real));
}
uint64_t exec_new_id(struct exec *x)
{
	return get_u64(&x->in);
}
void exec_bind(struct exec *x, unsigned type, uint64_t id, void *real)
{
	(void)x;
	(void)real;
	loop_check(id == chosen && HANDLE_TYPE(id) == type, "the chosen handle arrived", 0);
}

static CUresult dispatch(unsigned id, const uint8_t *head, size_t n, struct msg *out)
{
	static uint8_t copy[LIMIT_HEAD];
	memcpy(copy, head, n);
	struct exec x = {.frame = {.call = id}};
	msg_init(&x.in, copy, n);
	msg_init(&x.out, answer, sizeof answer);
	CUresult r = LOOP_TABLE[id].serve(&x);
	*out = x.out;
	while (arena_used)
		free(arena[--arena_used]);
	return r;
}

/* ---- the shim's side ---- */

LOOP_CODE call_begin(struct call *c, unsigned id)
{
	memset(c, 0, sizeof *c);
	c->id = id;
	msg_init(&c->out, request, sizeof request);
	return 0;
}
LOOP_CODE call_wait(struct call *c)
{
	struct msg out;
	LOOP_CODE r = (LOOP_CODE)dispatch(c->id, request, c->out.len, &out);
	loop_check((CUresult)r != SERVE_BAD, "the request was understood", 0);
	executed++;
	msg_init(&c->in, answer, out.len);
	/* The same request, damaged. */
	size_t n = c->out.len;
	unsigned called = loop_called;
	struct msg ignored;
	static uint8_t saved[LIMIT_HEAD];
	memcpy(saved, answer, out.len);
	loop_called = LOOP_CALLS;
	for (size_t k = 0; k < n; k++)
		loop_check(dispatch(c->id, request, k, &ignored) == SERVE_BAD, "cut, it was refused", 0);
	request[n] = 0;
	loop_check(dispatch(c->id, request, n + 1, &ignored) == SERVE_BAD, "a byte too many was refused", 0);
	loop_check(loop_called == LOOP_CALLS, "a damaged request did not reach the driver", 0);
	loop_called = called;
	memcpy(answer, saved, out.len);
	return r;
}
LOOP_CODE call_end(struct call *c, LOOP_CODE r)
{
	loop_check(r || get_end(&c->in), "the answer was consumed", 0);
	return r;
}
bool put_handle(struct call *c, unsigned type, const void *h)
{
	(void)type;
	put_u64(&c->out, (uintptr_t)h);
	return true;
}
void *get_handle(struct call *c, unsigned type)
{
	(void)type;
	return (void *)(uintptr_t)get_u64(&c->in);
}
void handle_drop(unsigned type, const void *h)
{
	(void)type;
	(void)h;
}
#ifdef LOOP_NVML
nvmlReturn_t nvml_local(int r)
{
	return (nvmlReturn_t)r;
}
nvmlReturn_t nvml_remote(int r)
{
	return (nvmlReturn_t)r;
}
bool exec_may_change(const struct exec *x)
{
	(void)x;
	return true;
}
nvmlReturn_t nvml_call_unsupported(unsigned id, const char *why)
{
	(void)id;
	(void)why;
	return NVML_ERROR_NOT_SUPPORTED;
}
#else
CUresult call_post(struct call *c)
{
	return call_wait(c);
}
void *handle_new(unsigned type)
{
	return (void *)(uintptr_t)(chosen = HANDLE_ID(type, 0x2345));
}
CUresult handle_error(unsigned type)
{
	(void)type;
	return CUDA_ERROR_INVALID_HANDLE;
}
bool put_device(struct call *c, CUdevice dev)
{
	put_i64(&c->out, dev);
	return true;
}
CUdevice get_device(struct call *c)
{
	return (CUdevice)get_i64(&c->in);
}
void location_to_server(CUmemLocation *location)
{
	(void)location;
}
void ptds_begin(void)
{
}
void ptds_end(void)
{
}
CUresult call_unsupported(unsigned id, const char *why)
{
	(void)id;
	(void)why;
	return CUDA_ERROR_NOT_SUPPORTED;
}
#endif

int main(void)
{
	for (unsigned i = 0; i < loop_count; i++) {
		const struct loop_case *c = &loop_cases[i];
		current = LOOP_NAMES[c->id].name;
		memcpy((char *)&LOOP_DRIVER + c->driver_offset, &c->fake, sizeof c->fake);
		for (int error = 0; error < 2; error++) {
			loop_result = error ? CUDA_ERROR_ALREADY_MAPPED : CUDA_SUCCESS;
			loop_called = LOOP_CALLS;
			CUresult r = c->call();
			loop_check(r == loop_result, "the driver's code came back", 0);
			loop_check(loop_called == c->id, "the driver's function ran", 0);
		}
	}
	printf("loop: %u calls, %u round trips, %u failures\n", loop_count, executed, failures);
	return failures || loop_count < 100;
}
