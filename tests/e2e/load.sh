#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse
# A launch sends the same, and waits for nothing, however many allocations and pinned buffers live; 300
# threads that launch at once; bulk in both directions at once through sockets with buffers of 256 KiB, which
# would stand still if a reader ever waited for a writer.
# limit: 240
. "$(dirname "$0")/lib.sh"
requires mount python3
small_buffers=$work/buffers.so
if command -v ${CC:-gcc} >/dev/null; then
	cat >"$work/buffers.c" <<-'C'
		#define _GNU_SOURCE
		#include <dlfcn.h>
		#include <netinet/in.h>
		#include <sys/socket.h>
		static int small(int fd)
		{
			int n = 128 << 10; /* the kernel doubles it */
			if (fd >= 0) {
				setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &n, sizeof n);
				setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &n, sizeof n);
			}
			return fd;
		}
		int socket(int domain, int type, int protocol)
		{
			int (*next)(int, int, int) = dlsym(RTLD_NEXT, "socket");
			int fd = next(domain, type, protocol);
			return domain == AF_INET || domain == AF_INET6 ? small(fd) : fd;
		}
		int accept4(int at, struct sockaddr *a, socklen_t *n, int flags)
		{
			int (*next)(int, struct sockaddr *, socklen_t *, int) = dlsym(RTLD_NEXT, "accept4");
			return small(next(at, a, n, flags));
		}
	C
	${CC:-gcc} -shared -fPIC -o "$small_buffers" "$work/buffers.c" -ldl ||
		fail "the small buffers do not compile"
	with_library "$small_buffers" start_server
	with_library "$small_buffers" start_mount
else
	start_server
	start_mount
fi

counted() # FILE ARGUMENT...
{
	at_most 100 "$bin/scudafs" run --mount "$mnt" --stats="$work/$1" -- "$progs/load" "${@:2}" \
		>"$work/out" 2>&1 || fail "load ${*:2}: $(tail -n 3 "$work/out")"
	cat "$work/out"
}
counted warm launch 1 1 1 # the server learns the module
counted few launch 1 1 1000
counted none launch 1 1 0
counted many launch 5000 1000 1000
counted many_none launch 5000 1000 0
python3 - "$work" <<'PY' || fail "launches beside much memory"
import json, sys
few, none, many, many_none = (json.load(open(f"{sys.argv[1]}/{f}"))
                              for f in ("few", "none", "many", "many_none"))
one, other = few["bytes_out"] - none["bytes_out"], many["bytes_out"] - many_none["bytes_out"]
print("1,000 launches send", one, "bytes, beside much memory", other)
assert few["post"] - none["post"] == many["post"] - many_none["post"] == 1000
# The last synchronization has something to wait for.
assert few["round_trips"] - none["round_trips"] == 1 and many["round_trips"] - many_none["round_trips"] == 1
assert abs(other - one) <= 1000 * 8, "an address may take some bytes more"
PY

counted threads threads 300 100
python3 - "$work/threads" <<'PY' || fail "threads"
import json, sys
s = json.load(open(sys.argv[1]))
assert s["calls"]["cuLaunchKernel"] == 30000 and s["post"] >= 30000, s
assert s["waits"].get("cuLaunchKernel", 0) == 0, s
assert s["calls"]["cuCtxSetCurrent"] == 301
PY
if [ -e "$small_buffers" ]; then
	grep -q "$small_buffers" "/proc/$server/maps" || fail "the server's buffers are not small"
	grep -q "$small_buffers" "/proc/$(daemon)/maps" || fail "the daemon's buffers are not small"
fi
counted duplex duplex 64 6
