#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A mount of a server that is not there fails within five seconds, with one line that names host, port and a
# remedy, and leaves nothing behind.
. "$(dirname "$0")/lib.sh"
requires mount python3
[ "$sanitizer" != tsan ] || unsanitized "getaddrinfo_a has threads that libtsan does not know"

# A port where nobody listens, one where somebody accepts and never answers, a name that does not exist,
# somebody else's protocol.
mkdir "$mnt"
try() # ADDRESS PATTERN...
{
	local address=$1 start took
	shift
	start=$(now_ms)
	"$bin/scudafs" mount "$address" "$mnt" 2>"$work/err" && fail "$address was mounted"
	took=$(($(now_ms) - start))
	[ "$took" -lt $((5200 * slow)) ] || fail "$address took $took ms"
	[ "$(wc -l <"$work/err")" = 1 ] || fail "$address: not one line: $(cat "$work/err")"
	for pattern; do
		contains "$work/err" "$pattern" || fail "$address: no '$pattern' in: $(cat "$work/err")"
	done
	mountpoint -q "$mnt" && fail "$address left a mount"
	within 2 no_daemon || fail "$address left a daemon"
}

free_port=$(python3 -c '
import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
try "127.0.0.1:$free_port" 127.0.0.1 "$free_port"
try "nowhere.invalid:9710" nowhere.invalid 9710

python3 "$top/tests/e2e/progs/deaf.py" silent >"$work/silent.port" &
at_exit end TERM $!
within 5 test -s "$work/silent.port" || fail "no silent server"
try "127.0.0.1:$(cat "$work/silent.port")" 127.0.0.1 "$(cat "$work/silent.port")"

python3 "$top/tests/e2e/progs/deaf.py" http >"$work/http.port" &
at_exit end TERM $!
within 5 test -s "$work/http.port" || fail "no HTTP server"
try "127.0.0.1:$(cat "$work/http.port")" 127.0.0.1 "$(cat "$work/http.port")"
