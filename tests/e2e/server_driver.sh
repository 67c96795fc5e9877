#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which driver serves: what cannot is refused in words with status 1, scudafs's own libcuda.so.1 above all; a
# monitor that dies is started again and sessions do not notice.
. "$(dirname "$0")/lib.sh"

refused() # PATTERN ARGUMENT...
{
	local pattern=$1
	shift
	at_most 15 "$bin/scuda-server" --listen 127.0.0.1:0 "$@" 2>"$work/err" >/dev/null
	code=$?
	[ "$code" = 1 ] || fail "$*: status $code: $(cat "$work/err")"
	contains "$work/err" "$pattern" || fail "$*: $(cat "$work/err")"
}
refused 'own libcuda' --driver "$lib/libcuda.so.1"
refused 'no driver' --driver "$work/missing.so"
refused 'no cuInit' --driver libm.so.6
echo text >"$work/text.so"
refused 'no driver' --driver "$work/text.so"

# A monitor that is gone before the listener looks at what it said, as on a busy machine: its driver is a pipe
# that says nothing until the listener stands still.
mkfifo "$work/pipe.so"
"$bin/scuda-server" --listen 127.0.0.1:0 --driver "$work/pipe.so" 2>"$work/busy.err" &
busy=$!
at_exit stop "$busy"
monitor_of() # sets $monitor
{
	monitor=$(pgrep -P "$busy")
}
within 10 monitor_of || fail "no monitor"
kill -STOP "$busy"
at_most 10 bash -c 'echo no library >"$1"' bash "$work/pipe.so" || fail "the pipe is not opened"
within 10 gone "$monitor" || fail "the monitor does not end"
kill -CONT "$busy"
within 10 gone "$busy" || fail "it goes on without a driver: $(cat "$work/busy.err")"
wait "$busy"
[ $? = 1 ] || fail "status $? without a driver: $(cat "$work/busy.err")"
contains "$work/busy.err" 'no driver' || fail "not told why: $(cat "$work/busy.err")"
requires mount

# The library path leads to scudafs's own library: it is passed over.
LD_LIBRARY_PATH=$lib timeout -k 2 $((15 * slow)) "$bin/scuda-server" --listen 127.0.0.1:0 --driver auto \
	--ready-fd 3 3>"$work/own" 2>"$work/own.err" &
own=$!
at_exit stop "$own"
within 10 test -s "$work/own" || fail "auto found no driver: $(cat "$work/own.err")"
contains "$work/own.err" 'driver: ' || fail "the log does not name the driver"

start_server
start_mount
start_program steady steady
expect steady 20 working
old=$monitor
kill -KILL "$monitor"
monitor_is_new()
{
	monitor=$(pgrep -P "$server" -f . | head -n 1)
	grep -c 'driver: ' "$work/server.log" | grep -qx 2
}
within 10 monitor_is_new || fail "the monitor did not come again: $(cat "$work/server.log")"
contains "$work/server.log" 'monitor died of signal 9' || fail "its death is not logged"
run_program small | grep -q right || fail "no service after it"
tell steady
expect steady 10 rounds
[ -e "/proc/$old" ] && fail "the old monitor is still there"
exit 0
