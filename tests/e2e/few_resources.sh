#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 180
# Programs, a mount and a server with few descriptors or little address space: everything ends with a result
# that is right or an error in words, nobody crashes or hangs, others do not notice, and all works again when
# there is enough.
. "$(dirname "$0")/lib.sh"
requires mount prlimit
# The leak checker needs descriptors, and waits for them.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
start_server
start_mount
export SCUDAFS_MOUNT=$mnt LD_LIBRARY_PATH=$lib

ends_well() # TEXT COMMAND...: right, or an error of ours; no signal, no time limit
{
	at_most 20 "${@:2}" >"$work/said" 2>&1
	local code=$?
	last=wrong
	[ "$code" != 0 ] || last=right
	[ "$code" = 127 ] && contains "$work/said" 'error while loading' && return
	[ "$code" -lt 124 ] || fail "$1: status $code: $(tail -n 2 "$work/said")"
	[ "$code" = 0 ] || contains "$work/said" \
		'CUDA_ERROR\|[Cc]annot allocate\|failed to map\|cannot open shared\|line [0-9]*:' ||
		fail "$1: status $code and no word: $(tail -n 2 "$work/said")"
}
for n in 3 4 5 6 7 8 10 12 16 64; do
	ends_well "$n descriptors" prlimit --nofile=$n "$progs/small"
done
[ "$last" = right ] || fail "64 descriptors are not enough: $(cat "$work/said")"
# A sanitizer's shadow alone is larger.
[ -n "$sanitizer" ] || for mib in 16 24 32 48 64 96 128 192 256 512 4096; do
	ends_well "$mib MiB" prlimit --as=$((mib << 20)) "$progs/small"
	echo "$mib MiB: $last: $(tail -n 1 "$work/said")"
done
[ "$last" = right ] || fail "4 GiB are not enough: $(cat "$work/said")"
"$progs/small" | grep -q right || fail "another program after these"
stop_mount

# A mount with room for a few sessions.
mkdir "$work/narrow"
prlimit --nofile=28:28 "$bin/scudafs" mount "$address" "$work/narrow" -o "log=$work/narrow.log" ||
	fail "a mount with 28 descriptors"
at_exit "$bin/scudafs" umount --lazy "$work/narrow"
crowd() # MOUNT COUNT: so many at once; $served of them were
{
	local i jobs=()
	served=0
	for i in $(seq "$2"); do
		SCUDAFS_MOUNT=$1 at_most 30 "$progs/small" >"$work/crowd$i.said" 2>&1 &
		jobs+=($!)
	done
	for i in $(seq "$2"); do
		wait "${jobs[i - 1]}"
		local code=$?
		[ "$code" -lt 124 ] || fail "of $2 at once one gave $code: $(tail -n 2 "$work/crowd$i.said")"
		[ "$code" != 0 ] || served=$((served + 1))
		[ "$code" = 0 ] || contains "$work/crowd$i.said" CUDA_ERROR ||
			fail "no word: $(cat "$work/crowd$i.said")"
	done
}
crowd "$work/narrow" 20
echo "a mount with 28 descriptors served $served of 20"
[ "$served" -gt 0 ] || fail "a mount with 28 descriptors served nobody: $(cat "$work/crowd1.said")"
SCUDAFS_MOUNT=$work/narrow "$progs/small" | grep -q right ||
	fail "a narrow mount does not recover: $(tail -n 3 "$work/narrow.log")"
at_most 5 ls -R "$work/narrow" >/dev/null || fail "a narrow mount does not list"
"$bin/scudafs" umount "$work/narrow" || fail "umount of the narrow mount"
stop_server

# A server with few.
start_server
start_mount
prlimit --pid "$server" --nofile=16:16
crowd "$mnt" 20
echo "a server with 16 descriptors served $served of 20"
[ "$served" -gt 0 ] || fail "a server with 16 descriptors served nobody: $(cat "$work/crowd1.said")"
within 10 no_sessions || fail "sessions are left: $(sessions)"
"$progs/small" | grep -q right || fail "a narrow server does not recover: $(tail -n 3 "$work/server.log")"
