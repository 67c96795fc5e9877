#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: two unix
# A daemon that is stopped (SIGSTOP) is there and answers nothing: no command hangs on its mount, each says
# so; a program that waits there can be killed; and all goes on when the daemon does.
. "$(dirname "$0")/lib.sh"
requires mount
# The leak checker would wait for threads that wait for the stopped daemon.
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
start_server
start_mount
start_program user hold
expect user 20 ready
stopped=$(daemon)
at_exit kill -CONT "$stopped"
since=$(now_ms)
kill -STOP "$stopped"
# Its threads serve until each has seen the signal, and who waits for what one of them has read cannot be
# killed.
halted()
{
	! grep -q '^State:[[:space:]]*[RSD]' /proc/"$stopped"/task/*/status
}
within 5 halted || fail "the daemon does not stop"

says() # CODE TEXT COMMAND...: within 10 s
{
	local want=$1 text=$2 got out=$work/said.$BASHPID
	shift 2
	at_most 10 "$bin/scudafs" "$@" >"$out" 2>&1
	got=$?
	[ "$got" = "$want" ] && grep -q "$text" "$out" || fail "$1 gave $got ($want) and says: $(cat "$out")"
}
# Beside each other: the server takes a session whose mount is silent for 9 s for dead.
says 1 'daemon does not answer' status "$mnt" &
asked=($!)
says 1 '"daemon does not answer"' status --json "$mnt" &
asked+=($!)
says 125 "$mnt does not answer" run --mount "$mnt" -- true &
asked+=($!)
says 1 'does not answer' mount "$address" "$mnt" &
asked+=($!)
SCUDAFS_MOUNT=$mnt LD_LIBRARY_PATH=$lib "$progs/small" >"$work/small.out" 2>&1 &
waits=$!
within 5 grep -q fuse "/proc/$waits/wchan" || echo "(the program is at $(cat "/proc/$waits/wchan"))"
kill -KILL "$waits"
within 2 gone "$waits" || fail "a program that waits for the daemon cannot be killed"
for one in "${asked[@]}"; do
	wait "$one" || fail "a command on the stopped mount"
done
kill -CONT "$stopped"
silent=$(($(now_ms) - since))
within 5 contains "$mnt/status" ready || fail "the mount is $(cat "$mnt/status") after its daemon went on"
run_program small | grep -q right || fail "a program fails after the daemon went on"
tell user
if [ "$silent" -lt 8000 ]; then
	expect user 10 right
else
	echo "(the daemon was stopped for $silent ms: the session may be over)"
	within 10 gone "${pid[user]}" || fail "the program neither goes on nor ends"
fi
