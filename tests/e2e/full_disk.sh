#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No room for the daemon's log, the server's log, the modules that it keeps, a program's trace and its
# counters: all compute right, nothing is kept half, and it goes on by itself when there is room again.
. "$(dirname "$0")/lib.sh"
requires mount root unshare
apart -m
mkdir "$work/full"
mount -t tmpfs -o size=64k,mode=700 tmpfs "$work/full" || skip "no tmpfs"
at_exit umount -l "$work/full"
fill()
{
	cat /dev/zero >"$work/full/rest" 2>/dev/null
	[ "$(df --output=avail "$work/full" | tail -n 1 | tr -d " ")" = 0 ] || fail "the folder is not full"
}
mkdir -m 700 "$work/full/cache"
touch "$work/full/server.log" "$work/full/daemon.log"
ln -s "$work/full/server.log" "$work/server.log"
fill
start_server --cache "$work/full/cache"
start_mount -o "log=$work/full/daemon.log"
for round in 1 2 3; do
	run_program small | grep -q right || fail "round $round: $(run_program small 2>&1)"
	run_program image 7 512 1 2 >"$work/image.out" 2>&1 ||
		fail "an image that cannot be kept: $(cat "$work/image.out")"
done
SCUDAFS_TRACE=$work/full/trace run_program small | grep -q right || fail "a program whose trace has no room"
"$bin/scudafs" run --mount "$mnt" --stats="$work/full/stats" -- "$progs/small" >"$work/out" 2>"$work/err" &&
	fail "counters that could not be written are no failure"
contains "$work/out" right || fail "a program whose counters have no room: $(cat "$work/err")"
contains "$work/err" 'No space' || fail "nothing is said of the counters: $(cat "$work/err")"
pkill -KILL -P "$server" -x scuda-server # the monitor, whose end is a line in two logs
within 10 contains "$mnt/status" ready || fail "the mount is $(cat "$mnt/status")"
run_program small | grep -q right || fail "after lines that had no room"
rm "$work/full/rest"
run_program small | grep -q right || fail "with room again"
within 5 contains "$work/full/server.log" 'session' || fail "no line although there is room"
find "$work/full/cache" -type f -name 'new.*' | grep -q . &&
	fail "half a file is left: $(ls -R "$work/full/cache")"
run_program small | grep -q right || fail "with a kept module"
