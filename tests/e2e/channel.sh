#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Programs share memory with the mount, unless they or the mount are told not to; nobody else gets a
# session's memory, no socket stays, and the mount can be taken away at once after its last program.
unset SCUDAFS_CHANNEL SCUDAFS_TEST_CHANNEL # it is about the memory that programs share
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount

uses() # WORDS: what a program says of its way to the mount
{
	SCUDAFS_LOG=debug run_program small 2>"$work/small.err" | grep -q right || fail "a wrong result"
	contains "$work/small.err" "$1" || fail "not '$1': $(grep -v -e wait -e post "$work/small.err")"
}
uses '^libcuda.* memory is shared with the mount'
SCUDAFS_CHANNEL=fuse run_program small | grep -q right || fail "by fuse alone"
SCUDAFS_LOG=debug SCUDAFS_CHANNEL=fuse run_program small 2>"$work/fuse.err" >/dev/null
contains "$work/fuse.err" 'memory is shared' && fail "the program was told not to"

# What nobody understands is told, and changes nothing.
SCUDAFS_SPIN_US=long SCUDAFS_CHANNEL=fast uses 'SCUDAFS_SPIN_US=long is not 0 to'
contains "$work/small.err" 'SCUDAFS_CHANNEL=fast is neither' || fail "a way that is none is not told"
contains "$work/small.err" 'memory is shared with' || fail "a way that is none is one"

# A server's own node, and a path that is too long for a socket's name.
SCUDAFS_MOUNT="$mnt/servers/$(ls "$mnt/servers")" LD_LIBRARY_PATH=$lib SCUDAFS_LOG=debug "$progs/small" \
	>"$work/own.out" 2>"$work/own.err"
contains "$work/own.err" 'memory is shared with' || fail "not by a server's own node: $(cat "$work/own.err")"
long=$work/$(printf 'a-long-name-%.0s' 1 2 3 4 5 6 7 8 9)
mkdir -p "$long" && ln -s "$mnt" "$long/mount"
SCUDAFS_MOUNT=$long/mount LD_LIBRARY_PATH=$lib SCUDAFS_LOG=debug "$progs/small" >"$work/long.out" \
	2>"$work/long.err"
contains "$work/long.err" 'memory is shared with' || fail "not by a long path: $(cat "$work/long.err")"

start_program user hold
expect user 20 ready
[ -z "$(find "$mnt/sessions" -type s)" ] || fail "a socket stays"
memory=$(grep -c 'memfd:scudafs-channel' "/proc/${pid[user]}/maps")
[ "$memory" = 1 ] || fail "the program has $memory mappings of shared memory"
mknod "$mnt/sessions/1.channel" p 2>/dev/null && fail "anybody can make a node"
tell user
expect user 10 right
wait "${pid[user]}"
"$bin/scudafs" umount "$mnt" || fail "the mount is busy after its last program"

start_mount -o channel=fuse
uses 'no memory is shared with the mount'
