#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse looking
# limit: 120
# Ctrl-C, SIGTERM and kill -9 end a program at once, whatever it waits for: a kernel, an answer, a copy in
# either direction, a host function; also while its server is stopped and answers nothing. Nothing of it is
# left.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
set -m # else programs in the background ignore SIGINT

# A tenth of a second is promised to people; what one process waits for its turn on a busy machine comes on
# top.
limit_ms=$((1000 * slow))
longest=0
ended() # TAG SIGNAL: by that signal, in time
{
	local start took
	start=$(now_ms)
	kill "-$2" "${pid[$1]}"
	within 10 gone "${pid[$1]}" ||
		fail "$1 is there 10 s after SIG$2: $(cat "/proc/${pid[$1]}/wchan" 2>/dev/null)"
	took=$(($(now_ms) - start))
	[ "$took" -le "$limit_ms" ] || fail "$1 ended $took ms after SIG$2"
	[ "$took" -le "$longest" ] || longest=$took
	wait "${pid[$1]}" 2>/dev/null
	[ $? = $((128 + $(kill -l "$2"))) ] || fail "$1 did not end by SIG$2"
}

for way in sync read alloc to_device to_host pinned_to_device pinned_to_host host; do
	for signal in INT TERM KILL; do
		tag=$way.$signal
		start_program "$tag" waits "$way"
		expect "$tag" 30 working
		kill -s 0 "${pid[$tag]}" || fail "$tag has ended"
		ended "$tag" $signal
	done
done
echo "at most $longest ms"
within 5 no_sessions || fail "sessions are left: $(sessions)"

longest=0
for signal in INT TERM KILL; do
	start_program "frozen.$signal" block
	expect "frozen.$signal" 30 blocking
done
at_exit kill -CONT $(sessions)
kill -STOP $(sessions)
for signal in INT TERM KILL; do
	ended "frozen.$signal" $signal
done
echo "at most $longest ms while the sessions are stopped"
kill -CONT $(sessions)
within 10 no_sessions || fail "sessions are left: $(sessions)"
run_program small | grep -q right || fail "no service afterwards"
