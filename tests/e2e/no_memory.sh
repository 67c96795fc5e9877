#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 240
# Every allocation of ours fails once: in the program's library, in the daemon, in the server and its
# sessions. The call or the session that it hits gets an error and no more; daemon and server live, and the
# next program computes right.
. "$(dirname "$0")/lib.sh"
requires mount ${CC:-gcc}
unsanitized "it has an allocator of its own"
cat >"$work/fail.c" <<'END'
#define _GNU_SOURCE
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FAIL_AT: the number of the allocation that fails, of those that the object FAIL_IN (a name's end; "": the
 * program) asks for. FAIL_COUNT: a file that gets how many it asked for. */
void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
static atomic_long count;
static uintptr_t from, to;

static int look(struct dl_phdr_info *i, size_t size, void *end)
{
	size_t n = strlen(i->dlpi_name), m = strlen(end);
	if (m ? n < m || strcmp(i->dlpi_name + n - m, end) : n)
		return 0;
	for (int k = 0; k < i->dlpi_phnum; k++)
		if (i->dlpi_phdr[k].p_type == PT_LOAD) {
			uintptr_t a = i->dlpi_addr + i->dlpi_phdr[k].p_vaddr;
			from = !from || a < from ? a : from;
			to = a + i->dlpi_phdr[k].p_memsz > to ? a + i->dlpi_phdr[k].p_memsz : to;
		}
	return 1;
}

static int fails(void *caller)
{
	static _Thread_local int inside;
	const char *in = getenv("FAIL_IN"), *at = getenv("FAIL_AT");
	if (inside || !in || !at)
		return 0;
	inside = 1;
	if (!from)
		dl_iterate_phdr(look, (void *)in);
	inside = 0;
	if ((uintptr_t)caller < from || (uintptr_t)caller >= to ||
			atomic_fetch_add(&count, 1) + 1 != atol(at))
		return 0;
	errno = ENOMEM;
	return 1;
}

#define CALLER __builtin_return_address(0)
void *malloc(size_t n) { return fails(CALLER) ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return fails(CALLER) ? NULL : __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return fails(CALLER) ? NULL : __libc_realloc(p, n); }

__attribute__((destructor)) static void tell(void)
{
	const char *name = getenv("FAIL_COUNT");
	FILE *f = name && from ? fopen(name, "w") : NULL;
	if (f) {
		fprintf(f, "%ld\n", atomic_load(&count));
		fclose(f);
	}
}
END
${CC:-gcc} -shared -fPIC -O1 -o "$work/fail.so" "$work/fail.c" || fail "it does not compile"
export LD_LIBRARY_PATH=$lib SCUDAFS_MOUNT=$mnt
without() # NUMBER WHERE: in front of a command, $without
{
	without=(env FAIL_AT="$1" FAIL_IN="$2" LD_PRELOAD="$work/fail.so")
}
ends_well() # WHAT COMMAND...: right, or with an error of its own
{
	at_most 20 "${@:2}" >"$work/said" 2>&1
	local code=$?
	[ "$code" -lt 124 ] || fail "$1: status $code: $(tail -n 1 "$work/said")"
	[ "$code" = 0 ] || contains "$work/said" 'CUDA_ERROR\|got .* want' ||
		fail "$1: status $code: $(cat "$work/said")"
}
right()
{
	at_most 20 "$progs/small" 2>&1 | grep -q right
}

start_server --cache none
start_mount
for program in small "image 7 64 1 2"; do
	without 0 libcuda.so.1
	FAIL_COUNT=$work/count "${without[@]}" "$progs"/$program >/dev/null ||
		fail "$program with all its memory"
	for ((k = 1; k <= $(cat "$work/count"); k++)); do
		without "$k" libcuda.so.1
		ends_well "$program without allocation $k" "${without[@]}" "$progs"/$program
	done
	echo "${program%% *}: $((k - 1)) allocations"
done
right || fail "a program after these"
stop_mount

refused=0
for ((k = 1; k <= 60; k += 1 + (k > 12))); do
	mkdir -p "$mnt"
	without "$k" ""
	if ! "${without[@]}" "$bin/scudafs" mount "$address" "$mnt" -o "log=$work/daemon.log" 2>"$work/err"
	then
		[ -s "$work/err" ] || fail "a mount without allocation $k fails and says nothing"
		[ -z "$(daemon)" ] || fail "a mount without allocation $k failed and left a daemon"
		refused=$((refused + 1))
		continue
	fi
	for program in 1 2; do
		ends_well "program $program, the daemon without allocation $k" "$progs/small"
	done
	at_most 5 ls -R "$mnt" >/dev/null 2>&1
	[ -n "$(daemon)" ] || fail "the daemon without allocation $k ended: $(tail -n 3 "$work/daemon.log")"
	right || fail "the daemon without allocation $k does not recover: $(tail -n 3 "$work/daemon.log")"
	stop_mount
	no_daemon || fail "the daemon without allocation $k does not end"
done
echo "$refused mounts failed"
stop_server

for ((k = 1; k <= 24; k++)); do
	: >"$work/port"
	without "$k" ""
	"${without[@]}" "$bin/scuda-server" --ready-fd 3 --driver "$driver" --cache none \
		--listen 127.0.0.1:0 \
		3>"$work/port" 2>"$work/server.log" &
	server=$!
	up_or_gone()
	{
		[ -s "$work/port" ] || gone "$server"
	}
	within 10 up_or_gone || fail "a server without allocation $k is neither up nor gone"
	if gone "$server"; then
		wait "$server"
		[ -s "$work/server.log" ] || fail "a server without allocation $k ended and says nothing"
		continue
	fi
	monitor=$(pgrep -P "$server" | head -n 1)
	address=127.0.0.1:$(head -n 1 "$work/port")
	# Each session is forked from the listener and loses the same one: none may take the server with it.
	if "$bin/scudafs" mount "$address" "$mnt" -o "log=$work/daemon.log" 2>"$work/err"; then
		for program in 1 2; do
			ends_well "program $program, the server without allocation $k" "$progs/small"
		done
		stop_mount
	fi
	gone "$server" && fail "the server without allocation $k ended: $(tail -n 3 "$work/server.log")"
	stop_server
done
exit 0
