#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse looking
# One mount of two servers: their GPUs are numbered in order, each server has a folder, a program uses the
# first one that is ready or the one whose folder it is given; when one is lost the mount is degraded and the
# other goes on.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
first=$server first_address=$address
start_server
second=$server
address=$first_address,$address
stop_first()
{
	stop "$first"
}
at_exit stop_first
start_mount

[ -e "$mnt/gpu0/name" ] && [ -e "$mnt/gpu1/name" ] || fail "not two GPUs: $(ls "$mnt")"
[ "$(cat "$mnt/gpu0/server")" = "$first_address" ] ||
	fail "gpu0 is not the first server's: $(cat "$mnt/gpu0/server")"
[ "$(ls "$mnt/servers" | wc -l)" = 2 ] || fail "servers: $(ls "$mnt/servers")"
[ "$(cat "$mnt/status")" = ready ] || fail "status is '$(cat "$mnt/status")'"
for folder in "$mnt" "$mnt"/servers/*; do
	at_most 60 "$bin/scudafs" run --mount "$folder" -- "$progs/small" | grep -q right ||
		fail "no result with $folder"
done
"$bin/scudafs" run --mount "$mnt/gpu0" -- true 2>/dev/null
[ $? = 125 ] || fail "a GPU's folder was taken for a mount"
kill -KILL "$second" $(pgrep -P "$second")
wait "$second" 2>/dev/null
server=
degraded()
{
	[ "$(cat "$mnt/status")" = degraded ]
}
within 10 degraded || fail "status is '$(cat "$mnt/status")' with one server lost"
run_program small | grep -q right || fail "the other server does not go on"
