#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 240
# Where the kernel promises no more memory than there is (vm.overcommit_memory=2) it may refuse a page of
# shared memory when it is touched first, by SIGBUS. Here a small tmpfs refuses them, in place of the memory
# that a program shares with its mount: no program and no daemon dies, all that they compute is right.
. "$(dirname "$0")/lib.sh"
unset SCUDAFS_CHANNEL SCUDAFS_TEST_CHANNEL # it is about the memory that programs share
requires mount root unshare ${CC:-gcc}
apart --mount
cat >"$work/stand_in.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* A memory of that name is a file of the small tmpfs, which knows no seals. */
int memfd_create(const char *name, unsigned flags)
{
	int (*real)(const char *, unsigned) = dlsym(RTLD_NEXT, "memfd_create");
	const char *which = getenv("SMALL_WHICH"), *folder = getenv("SMALL_FOLDER");
	if (!which || !folder || strcmp(name, which))
		return real(name, flags);
	return open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

int fcntl(int fd, int what, ...)
{
	int (*real)(int, int, ...) = dlsym(RTLD_NEXT, "fcntl");
	va_list args;
	va_start(args, what);
	long arg = va_arg(args, long);
	va_end(args);
	if (what == F_ADD_SEALS)
		return 0;
	return what == F_GET_SEALS ? F_SEAL_SHRINK | F_SEAL_GROW : real(fd, what, arg);
}
int fcntl64(int fd, int what, ...) __attribute__((alias("fcntl")));
END
${CC:-gcc} -shared -fPIC -O1 -o "$work/stand_in.so" "$work/stand_in.c" -ldl || fail "it does not compile"
echo 2 >"$work/strict"
mount --bind "$work/strict" /proc/sys/vm/overcommit_memory || skip "/proc cannot be mounted on"
at_exit umount -l /proc/sys/vm/overcommit_memory
mkdir "$work/small"
"$bin/scudafs" keygen alice "$work/alice" 2>/dev/null
install -m 600 "$work/alice" "$work/keys"
start_server --keys "$work/keys"
small() # WHICH SIZE: a mount with a small memory of that kind
{
	mount -t tmpfs -o "size=$2" small "$work/small" || skip "no tmpfs"
	at_exit umount -l "$work/small"
	export SMALL_FOLDER=$work/small SMALL_WHICH=$1
	start_mount -o "key=$work/alice"
}
used() # KiB of the small memory
{
	df --output=used -B1024 "$work/small" | tail -n 1
}
large() # TAG
{
	start_program "$1" large
	expect "$1" 60 right
	echo "$1: $(used) KiB are used"
	[ "$(used)" -ge "$2" ] || fail "$1: $(used) KiB of the small memory are used"
	tell "$1"
	expect "$1" 60 over
	[ -n "$(daemon)" ] || fail "$1: the daemon is gone"
	stop_mount
	umount "$work/small"
}
with_small_memories()
{
	local way
	# Too little for what is pinned; for data from the device, too; for anything; for the ring itself.
	small scudafs-arena 14m
	large pinned 1024
	small scudafs-arena 3m
	large sinks 1024
	small scudafs-arena 64k
	large nothing 0
	small scudafs-channel 1m
	large ring 0
	# A program that gives back pages which the mount is about to send, or to receive into, when there are
	# no others: its session ends, the mount serves others.
	for way in to from; do
		small scudafs-arena 14m
		run_program holes "$work/small" $way >"$work/holes.out" 2>&1 ||
			fail "holes $way: $(cat "$work/holes.out")"
		contains "$work/holes.out" refused || fail "holes $way: $(cat "$work/holes.out")"
		[ -n "$(daemon)" ] || fail "holes $way: the daemon is gone: $(tail -n 3 "$work/daemon.log")"
		contains "$work/daemon.log" 'is missing' || fail "holes $way: no line tells of it"
		rm -f "$work/small"/*
		run_program small | grep -q right || fail "holes $way: no service afterwards"
		: >"$work/daemon.log"
		stop_mount
		umount "$work/small"
	done
}
with_library "$work/stand_in.so" with_small_memories
