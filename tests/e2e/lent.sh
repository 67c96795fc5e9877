#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 240
# By a unix socket the mount and the server lend each other memory: the bytes of large copies do not pass
# through the socket, and are right; not over TCP, not where the options forbid it, and not where something on
# the way drops descriptors. A program, its session or the daemon that is killed in the middle of a copy
# leaves nothing, and the others get an error.
unset SCUDAFS_CHANNEL SCUDAFS_TEST_CHANNEL # it is about the memory that programs share
. "$(dirname "$0")/lib.sh"
requires mount python3
options=
start_server --listen "unix:$work/socket" --listen 127.0.0.1:0
tcp=$address
local=unix:$work/socket
address=$local

stat() # NAME
{
	cat "$mnt/stats/$1"
}
copies() # TAG: large copies of all kinds, every byte checked
{
	start_program "$1" large
	expect "$1" 40 right
	tell "$1"
	expect "$1" 40 over
	wait "${pid[$1]}" || fail "$1 ended with $?"
}
none_lent()
{
	[ "$(stat bytes_lent)" = 0 ] || fail "$1: $(stat bytes_lent) bytes were lent"
}

start_mount
copies lent
[ "$(stat bytes_lent)" -gt $((32 << 20)) ] || fail "only $(stat bytes_lent) bytes were lent"
# What a socket still sees of it are places, and what is said of them.
enough=$((512 << 20))
[ "$sanitizer" != tsan ] || enough=$((128 << 20)) # a copy takes ten times as long there
lent_more()
{
	[ "$(stat bytes_lent)" -gt $((lent + enough)) ]
}
through()
{
	echo $(($(stat bytes_out) + $(stat bytes_in)))
}
for way in to_device pinned_to_device to_host pinned_to_host both; do
	start_program "$way" waits "$way"
	expect "$way" 20 working
	lent=$(stat bytes_lent)
	through=$(through)
	within 40 lent_more || fail "$way: nothing is lent"
	lent=$(($(stat bytes_lent) - lent))
	through=$(($(through) - through))
	[ $((through * 500)) -lt "$lent" ] || fail "$way: $through bytes by the socket, $lent lent"
	session=$(ls "$mnt/sessions")
	[ "$(cat "$mnt/sessions/$session/bytes_lent")" -gt 0 ] || fail "the session's own count"
	end_program "$way"
	within 10 no_sessions || fail "$way: its session is left"
done
# A program that has no memory in common with the mount lends none, but the server does.
lent=$(stat bytes_lent)
SCUDAFS_CHANNEL=fuse copies fuse
[ "$(stat bytes_lent)" -gt $((lent + (8 << 20))) ] || fail "the server lends nothing"

# Killed in the middle of a copy.
wrong() # TAG WAY COMMAND...: what kills, and the program gets an error
{
	start_program "$1" waits "$2"
	expect "$1" 20 working
	"${@:3}"
	expect "$1" 12 '^code'
	said "$1" '^code 806 ' || fail "$1: $(cat "$work/$1.out")"
	within 10 no_sessions || fail "$1: sessions are left: $(sessions)"
}
for round in to_device to_host pinned_to_host; do
	wrong "session_$round" $round eval 'kill -KILL $(sessions)'
	start_program "killed_$round" waits $round
	expect "killed_$round" 20 working
	kill -KILL "${pid[killed_$round]}"
	within 10 no_sessions || fail "a killed program's session is left"
done
# The mount keeps no memory of theirs, nor does the server.
none_open() # PID
{
	! ls -l "/proc/$1/fd" "/proc/$1/map_files" | grep -q 'memfd:scud'
}
within 5 none_open "$(daemon)" || fail "the daemon keeps memory: $(ls -l "/proc/$(daemon)/fd")"
stop_mount
for way in to_device to_host; do
	start_mount
	wrong "daemon_$way" $way eval 'kill -KILL $(daemon)'
	stop_mount
done

for n in 1 2; do
	start_mount -o connections=$n
	copies "connections$n"
	none_lent "connections=$n"
	stop_mount
done
address=$tcp
start_mount
copies tcp
none_lent tcp
stop_mount

# Somebody on the way who passes bytes only: all goes by the socket.
cat >"$work/between.py" <<'EOF'
import os, socket, sys, threading
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[2])
listener.listen()
def pass_on(a, b):
    while (data := a.recv(1 << 16)):
        b.sendall(data)
    try:
        b.shutdown(socket.SHUT_WR)
    except OSError:
        pass
while True:
    a, b = listener.accept()[0], socket.socket(socket.AF_UNIX)
    b.connect(sys.argv[1])
    for pair in (a, b), (b, a):
        threading.Thread(target=pass_on, args=pair, daemon=True).start()
EOF
python3 "$work/between.py" "$work/socket" "$work/between" 2>"$work/between.err" &
at_exit stop $!
within 10 test -S "$work/between" || fail "nobody is between: $(cat "$work/between.err")"
address=unix:$work/between
start_mount
copies between
none_lent "behind somebody who passes bytes only"
contains "$work/server.log" 'no memory is lent: no descriptor came' || fail "the server does not tell why"
