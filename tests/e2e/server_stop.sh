#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# SIGTERM: no new sessions, a running one goes on and may end by itself; after 20 s one that has not ended is
# told so (810). Status 0 each time, and the unix socket is gone.
# limit: 90
. "$(dirname "$0")/lib.sh"
requires mount

ends_with_zero() # SECONDS
{
	within "$1" gone "$server" || fail "the server did not end within $1 s"
	wait "$server"
	code=$?
	server=
	[ "$code" = 0 ] || fail "the server ended with status $code"
}

start_server --listen 127.0.0.1:0 --listen "unix:$work/socket"
[ -S "$work/socket" ] || fail "no unix socket"
start=$(now_ms)
kill -TERM "$server"
ends_with_zero 2
[ -e "$work/socket" ] && fail "the unix socket is left"

start_server
start_mount
start_program polite hold
expect polite 20 ready
kill -TERM "$server"
within 2 contains "$work/server.log" 'stopping: 1 session' || fail "the log does not say that it is stopping"
run_program small >"$work/new.out" 2>&1 && fail "a new program got a session of a stopping server"
tell polite
expect polite 10 right
ends_with_zero 3
stop_mount

start_server
start_mount
start_program stubborn block
expect stubborn 20 blocking
start=$(now_ms)
kill -TERM "$server"
within 25 said stubborn '^code' || fail "the program was not told"
took=$(($(now_ms) - start))
[ "$took" -gt 18000 ] || fail "it was told after $took ms already"
said stubborn '^code 810 ' || fail "$(cat "$work/stubborn.out")"
ends_with_zero 3
exit 0
