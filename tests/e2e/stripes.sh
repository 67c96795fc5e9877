#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 240
# Large copies in both directions by two connections, beside streams that host functions hold: every byte is
# right, and nothing waits for ever; the second connection is there when it was asked for, and only then: not
# with a key, with compression, or through the file alone; where it does not open, or ends, all goes by the
# first.
unset SCUDAFS_CHANNEL SCUDAFS_TEST_CHANNEL # it is about the memory that programs share
. "$(dirname "$0")/lib.sh"
requires mount

seconds() # how many second connections the daemon has
{
	cat "/proc/$(daemon)/task/"*/comm | grep -cx second
}
stripers() # how many sessions send stripes to the mount
{
	local s n=0
	for s in $(pgrep -P "$server"); do
		n=$((n + $(cat "/proc/$s/task/"*/comm 2>/dev/null | grep -cx stripes)))
	done
	echo $n
}
receivers() # how many threads of the daemon receive a second connection's stripes
{
	cat "/proc/$(daemon)/task/"*/comm | grep -cx stripes
}
none_left() { [ "$(seconds)" = 0 ]; }

copies() # NAME SECONDS
{
	start_program "$1" stripes
	expect "$1" 40 right
	[ "$(seconds)" = "$2" ] || fail "$1: $(seconds) second connections, not $2"
	[ "$(stripers)" = "$2" ] || fail "$1: $(stripers) sessions send stripes, not $2"
	[ "$(receivers)" = "$2" ] || fail "$1: $(receivers) threads receive stripes, not $2"
	tell "$1"
	expect "$1" 40 over
	wait "${pid[$1]}" || fail "$1 ended with $?"
	within 10 none_left || fail "$1: the second connection stays"
	[ "$(receivers)" = 0 ] || fail "$1: the thread that receives its stripes stays"
}

start_server
start_mount -o connections=2
copies shared 1
# Two programs at once, each with one of its own.
start_program beside large
expect beside 40 right
start_program again stripes
expect again 40 right
[ "$(seconds)" = 2 ] || fail "two programs have $(seconds) second connections"
for p in beside again; do
	tell $p
	expect $p 40 over
done
within 10 none_left || fail "second connections stay"
SCUDAFS_CHANNEL=fuse copies fuse 0
stop_mount
start_mount -o connections=1
copies one 0
stop_mount
start_mount -o connections=2,compress=on
copies packed 0
stop_mount
stop_server

# A unix socket, whose user the server knows.
start_server --listen "unix:$work/socket"
tcp=$address
address=unix:$work/socket
start_mount -o connections=2
copies unix 1
stop_mount
address=$tcp
stop_server

"$bin/scudafs" keygen alice "$work/alice" 2>/dev/null
chmod 600 "$work/alice"
start_server --keys "$work/alice"
start_mount -o "key=$work/alice,connections=2"
copies key 0
