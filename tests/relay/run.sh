#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The daemon against a fake server: every operation of the session node, then every way in which a party can
# go away. No shim, no real server. Usage: tests/relay/run.sh [DIR]: DIR has bin/scudafs (default build).
# Exit 77: no /dev/fuse here.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/own.sh
dir=${1:-build}
[ -c /dev/fuse ] && [ -w /dev/fuse ] || exit 77
tmp=$(mktemp -d)
mnt=$tmp/mnt; log=$tmp/log
mkdir "$mnt"
fake=; daemon=
cleanup()
{
	for p in $fake $daemon; do end CONT "$p"; end KILL "$p"; done
	grep -q " $mnt " /proc/mounts && { umount -l "$mnt" 2>/dev/null || fusermount3 -uz "$mnt"; }
	rm -rf "$tmp"
}
trap cleanup EXIT
failed=0
times=1; [ "${SCUDAFS_TEST_SANITIZER:-}" != tsan ] || times=4 # as TIMES of wire/limits.h
ok() { echo "ok - $1"; }
bad() { echo "FAILED - $1"; failed=1; }
check() { local what=$1; shift; if "$@"; then ok "$what"; else bad "$what"; fi; }
# expect NAME REGEX COMMAND...: the output matches
expect() {
	local what=$1 re=$2 out; shift 2
	out=$("$@" 2>&1); if [[ $out =~ $re ]]; then ok "$what: $out"; else bad "$what: $out"; fi
}
# takes PATTERN: how long something took; any time where the limits are stretched.
takes() { [ "${SLOW:-1}" -gt 1 ] && echo '[0-9]+[.]..' || echo "$1"; }
# since_less MS: less than that since $s was taken, where the limits are stretched times SLOW
since_less() { test $((($(date +%s%N) - s) / 1000000)) -lt $(($1 * ${SLOW:-1})); }
until_true() { for _ in $(seq $((100 * ${SLOW:-1}))); do "$@" && return 0; sleep 0.1; done; return 1; }

cc=${CC:-gcc}
$cc -std=gnu11 -O2 -D_GNU_SOURCE -I. tests/relay/fake.c wire/msg.c -o "$tmp/fake" -lpthread || exit 1
$cc -std=gnu11 -O2 -D_GNU_SOURCE -I. tests/relay/client.c -o "$tmp/client" -lpthread || exit 1
client() { timeout $((60 * ${SLOW:-1})) "$tmp/client" "$mnt/ctl" "$@"; }
# the same in the background, without a helper in between: its process id is in $c
waiting()
{
	"$tmp/client" "$mnt/ctl" "$@" >"$tmp/out" &
	c=$!
	until_true bash -c "[ -n \"\$(ls '$mnt/sessions' 2>&1)\" ]"
	sleep 0.2
}

start_fake()
{
	rm -f "$tmp/port"
	"$tmp/fake" "${1:-0}" >"$tmp/port" &
	fake=$!
	disown
	until_true test -s "$tmp/port"
	port=$(cat "$tmp/port")
}
start_daemon() {
	SCUDAFS_LOG=info "$dir/bin/scudafs" mount -f "127.0.0.1:$port" "$mnt" 2>>"$log" & daemon=$!; disown
	until_true test -e "$mnt/status" && return
	bad "the daemon starts"; cat "$log"; exit 1
}
status_is() { [ "$(cat "$mnt/status" 2>&1)" = "$1" ]; }
ended() { ! ours "$1"; }

# ---- nobody there
start_fake; end KILL "$fake"; wait "$fake" 2>/dev/null
s=$(date +%s%N)
out=$("$dir/bin/scudafs" mount "127.0.0.1:$port" "$mnt" 2>&1 </dev/null); r=$?
ms=$((($(date +%s%N) - s) / 1000000))
check "mount of nobody fails with words in $ms ms: $out" test $r -ne 0 -a -n "$out" -a $ms \
	-lt $((5000 * ${SLOW:-1}))
check "nothing is mounted" bash -c "! grep -q ' $mnt ' /proc/mounts"

start_fake; start_daemon
check "status is ready" status_is ready
check "every file of the tree can be read" bash -c "find '$mnt' -type f ! -name ctl -exec cat {} + >/dev/null"
check "sizes are true" bash \
	-c "for f in '$mnt'/gpu0/*; do [ -d \$f ] || [ \$(stat -c %s \$f) = \$(wc -c <\$f) ] || exit 1; done"
check "writing a value is refused" bash -c "! echo x 2>/dev/null >'$mnt/gpu0/name'"
check "a control character of the server is gone" bash -c "! grep -q \$'\\x1b' '$mnt/gpu1/name'"
check "status.json is JSON" python3 \
	-c "import json; assert json.load(open('$mnt/status.json'))['gpu0']['memory']['total'] == 2**33"
check "isatty and friends say no" python3 \
	-c "import os; fd = os.open('$mnt/ctl', os.O_RDWR); assert not os.isatty(fd)"
check "a stray read finds nothing, a stray write is refused" python3 -c "
import os
fd = os.open('$mnt/ctl', os.O_RDWR)
assert os.pread(fd, 10, 0) == b''
for f in (lambda: os.pwrite(fd, b'x', 0), lambda: os.pwrite(fd, b'x', (1 << 59) + (1 << 20) + 5)):
    try: f()
    except OSError: continue
    raise SystemExit(1)"

# ---- operations
expect echo '^echo' client echo 1000
expect "echo by 8 threads" '^echo' client echo 300 8
expect "upload, checked" '^upload' client upload 16 1
expect upload '^upload' client upload 256
expect "download, one piece a read" '^download' client download 20000000 1000000 1000000
expect "download, small pieces" '^download' client download 10000000 7777 100000
expect "download, tiny pieces in one read" '^download' client download 1000000 500 65536
expect "download by 4 threads" '^download' client download 40000000 1048576 1048576 4
expect "download after the reply, 38 MiB kept" '^download' client download 40000000 1048576 1048576 1 1
expect "download of 256 MiB" '^download' client download 268435456 1048576 1048576 2
expect "small reply" right client reply 100
expect "large reply" right client reply 100000
expect "largest reply" right client reply 1048576
expect upcalls 'upcalls: 500' client upcalls 500
expect "batches in a wrong order" 'shuffle: 60' client shuffle 60
expect "interrupted 25 times" "done after $(takes '0[.][5-9].') s, then done" client interrupt 500
expect "a wait longer than TIME_PARK" "done after $(takes '([6-9]|1[0-9])[.]..') s, then done" client call 5 \
	$((6000 * times))
expect "BYE" "ESHUTDOWN after $(takes '0[.]..').*then ESHUTDOWN" client call 6
expect "connection closed" "ECONNRESET after $(takes '0[.]..').*then ECONNRESET" client call 7
expect "bad frame from the server" "EPROTO after $(takes '0[.]..').*then EPROTO" client call 8
expect "reply that nobody asked for" "EPROTO after $(takes '0[.]..').*then EPROTO" client call 9
check "no session is left" until_true bash -c "[ -z \"\$(ls '$mnt/sessions' 2>&1)\" ]"

# ---- hostile programs
for i in $(seq "${HOSTILE:-10}"); do client hostile 300 "$i" 2>&1 | sed 's/^/hostile: /' & done
wait $(jobs -p)
expect "echo after hostile programs" '^echo' client echo 100
check "they leave nothing" until_true bash -c "[ -z \"\$(ls '$mnt/sessions' 2>&1)\" ]"

# ---- death of programs
waiting call 5 30000
id=$(ls "$mnt/sessions" 2>&1)
check "sessions/$id tells its command" grep -q client "$mnt/sessions/$id/command"
s=$(date +%s%N); end KILL $c; wait $c 2>/dev/null
check "a waiting program dies at once" since_less 500
check "its session is gone" until_true bash -c "[ ! -d '$mnt/sessions/$id' ]"
client hold 5
gone() { [ -z "$(ls "$mnt/sessions" 2>&1)" ] || grep -q "over" <(tail -1 "$log"); }
check "the opener's end ends the session though a child holds the descriptor" until_true gone
for i in $(seq 20); do
	"$tmp/client" "$mnt/ctl" upload 2000 >/dev/null 2>&1 & a=$!
	"$tmp/client" "$mnt/ctl" download 1000000000 1048576 1048576 2 >/dev/null 2>&1 & b=$!
	sleep 0.0$((RANDOM % 10)); end KILL $a; end KILL $b; wait $a $b 2>/dev/null
done
check "40 programs killed in the middle of a copy leave nothing" until_true bash \
	-c "[ -z \"\$(ls '$mnt/sessions' 2>&1)\" ]"
expect "echo still works" '^echo' client echo 100

# ---- death of the server
waiting call 5 30000
s=$(date +%s%N); end KILL "$fake"; wait $c
check "a killed server ends a wait ($(cat "$tmp/out"))" since_less 2000
check "status is lost" until_true status_is lost
expect "open without a server" "ECONNREFUSED after $(takes 0)" client open
s=$(date +%s%N)
check "the tree still answers" bash -c "cat '$mnt'/gpu*/name >/dev/null && ls -lR '$mnt' >/dev/null"
check "and fast" since_less 1000
start_fake "$port"
expect "a new session works as soon as the server is back" '^echo' client echo 10
check "status is ready again" until_true status_is ready
waiting call 5 30000
client upload 4000 >"$tmp/out2" 2>&1 & u=$!; sleep 0.3
s=$(date +%s%N); end STOP "$fake"; wait $c
ms=$((($(date +%s%N) - s) / 1000000))
check "a frozen server ends a wait after $ms ms ($(cat "$tmp/out"))" test $ms -gt 4000 -a $ms \
	-lt $((9000 * ${SLOW:-1}))
wait $u; ms=$((($(date +%s%N) - s) / 1000000))
check "and an upload after $ms ms ($(cat "$tmp/out2"))" test $ms -lt $((9500 * ${SLOW:-1}))
expect "open with a frozen server" "ETIMEDOUT after $(takes '[34]')" client open
end CONT "$fake"
check "status is ready again" until_true status_is ready

# ---- the daemon's own stop and end
waiting call 5 9000
end STOP "$daemon"; sleep 7; end CONT "$daemon"; wait $c
check "a daemon stopped for 7 s keeps its sessions ($(cat "$tmp/out"))" grep -q 'done.*done' "$tmp/out"
waiting call 5 30000
s=$(date +%s%N); end TERM "$daemon"; wait $c
check "SIGTERM ends a wait ($(cat "$tmp/out"))" since_less 1000
check "the daemon has ended" until_true ended "$daemon"
check "and unmounted" bash -c "! grep -q ' $mnt ' /proc/mounts"
start_daemon
waiting call 5 30000
s=$(date +%s%N); end KILL "$daemon"; wait $c
check "a killed daemon ends a wait ($(cat "$tmp/out"))" since_less 1000
"$dir/bin/scudafs" mount "127.0.0.1:$port" "$mnt" </dev/null >/dev/null 2>"$tmp/err"
check "mounting over the stale mount works $(cat "$tmp/err")" status_is ready
umount "$mnt" 2>/dev/null || fusermount3 -u "$mnt"
check "umount" bash -c "! grep -q ' $mnt ' /proc/mounts"
if grep -q -E "ThreadSanitizer|AddressSanitizer|LeakSanitizer|runtime error" "$log"; then
	bad "sanitizers are silent"
	cp "$log" /tmp/relay-sanitizer.log
fi
exit $failed
