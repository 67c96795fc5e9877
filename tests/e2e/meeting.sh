#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The socket through which a session's memory is handed over is for the process that opened the session
# alone: another process of the same user gets nothing there, another user does not even see it, or, where
# the mount is allow_other's, may connect and gets nothing; and nobody can take it away, replace it, or make
# one of his own.
unset SCUDAFS_CHANNEL SCUDAFS_TEST_CHANNEL # it is about the memory that programs share
. "$(dirname "$0")/lib.sh"
requires mount root setpriv python3
reach=$(mktemp -d /tmp/scudafs-meeting.XXXXXX)
at_exit rm -rf "$reach"
chmod 755 "$reach"
install -m 755 "$top/tests/e2e/progs/intrude.py" "$reach/intrude"
mnt=$reach/mnt
them=(setpriv --reuid 65534 --regid 65534 --clear-groups)
# The first python3 may be root's alone.
for python in python3 /usr/bin/python3 ''; do
	[ -n "$python" ] || skip "no python3 for another user"
	"${them[@]}" "$python" -c '' 2>/dev/null && break
done

intruder() # SOCKET WHAT: what works for another user
{
	at_most 20 "${them[@]}" "$python" "$reach/intrude" "$1" >"$work/intruder" 2>&1
	[ "$(sort "$work/intruder" | tr '\n' ',')" = "$2" ] ||
		fail "another user: not '$2': $(cat "$work/intruder")"
}

meet() # TAG WHAT-THE-OTHER-USER-CAN
{
	start_program "$1" meeting others
	expect "$1" 20 '^session'
	socket=$mnt/sessions/$(sed -n 's/^session //p' "$work/$1.out").channel
	[ -S "$socket" ] || fail "no socket at $socket"
	intruder "$socket" "$2"
	[ -S "$socket" ] || fail "the socket is gone"
	# What the mount's own user can: as little.
	python3 "$reach/intrude" "$socket" >"$work/own" 2>&1
	[ "$(sort "$work/own" | tr '\n' ',')" = "connected,seen,spoken with," ] ||
		fail "another process: $(cat "$work/own")"
	tell "$1"
	expect "$1" 20 "^not the child's"
	expect "$1" 20 '^mine'
	wait "${pid[$1]}"
	[ ! -e "$socket" ] || fail "the socket stays"
}

start_server
start_mount
meet plain ''
[ "$(grep -c 'asked for the memory of another session' "$work/daemon.log")" = 2 ] ||
	fail "not two lines: $(cat "$work/daemon.log")"
stop_mount
start_mount -o allow_other
meet shared 'connected,seen,spoken with,'
contains "$work/daemon.log" 'of user 65534 asked for the memory of another session' ||
	fail "the log does not name the other user"
