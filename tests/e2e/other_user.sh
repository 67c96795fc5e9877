#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two users on one machine: an ordinary one mounts, computes and unmounts without help; what one has mounted
# the other can neither use nor take away, is not troubled with, and is told why; with allow_other both
# compute.
. "$(dirname "$0")/lib.sh"
requires mount root fusermount3 setpriv unshare

# The tests' own folder is root's. Where the device is root's alone, as in some containers, everybody gets
# one inside.
export TMPDIR=/tmp
apart -m
mknod "$work/fuse" c 10 229 && chmod 666 "$work/fuse" && mount --bind "$work/fuse" /dev/fuse ||
	skip "no device node of our own"
at_exit umount /dev/fuse

chmod 755 "$work"
theirs=$work/theirs
mkdir -p "$theirs/mnt"
cp -r "$bin" "$lib" "$progs" "$theirs/"     # the build folder may be root's alone
at_exit rm -rf "$theirs/bin" "$theirs/lib"
"$bin/scudafs" keygen both "$work/key" 2>/dev/null
install -m 600 -o 65534 "$work/key" "$theirs/key"
chmod -R a+rX "$theirs/bin" "$theirs/lib" "$theirs/e2e"
chown 65534 "$theirs" "$theirs/mnt"
them=(setpriv --reuid 65534 --regid 65534 --clear-groups
	env XDG_RUNTIME_DIR= PATH="$theirs/bin:$PATH" TMPDIR=/tmp)
start_server --listen 127.0.0.1:0 --listen "unix:$work/socket" --keys "$work/key"
start_mount -o "key=$work/key"

them() # CODE TEXT ARGUMENT...
{
	local want=$1 text=$2 got
	shift 2
	at_most 30 "${them[@]}" scudafs "$@" >"$work/out" 2>"$work/err"
	got=$?
	[ "$got" = "$want" ] || fail "$* gave $got, not $want: $(cat "$work/out" "$work/err")"
	[ -z "$text" ] || cat "$work/out" "$work/err" | grep -q -e "$text" ||
		fail "$* does not say '$text': $(cat "$work/out" "$work/err")"
}
them 1 'another user' umount "$mnt"
them 125 "$mnt.*another user" run --mount "$mnt" -- true
them 1 'key: Permission denied' mount "$address" "$theirs/mnt" -o "key=$work/key"
them 1 'mode of the socket' mount "unix:$work/socket" "$theirs/mnt"
mkdir "$work/roots"
them 1 'no write access' mount "$address" "$work/roots" -o "key=$theirs/key"
at_exit umount -l "$theirs/mnt"
them 0 '' mount "$address" "$theirs/mnt" -o "key=$theirs/key"
them 0 "$theirs/mnt  $address  ready" status
grep -q " $mnt \|^$mnt " "$work/out" && fail "root's mount is listed for them: $(cat "$work/out")"
them 0 right run --mount "$theirs/mnt" -- "$theirs/e2e/small"
them 0 right run -- "$theirs/e2e/small"
them 0 right run --server "$address" -o "key=$theirs/key" -- "$theirs/e2e/small"
"$bin/scudafs" run --mount "$theirs/mnt" -- true 2>"$work/err" && fail "root uses their mount"
contains "$work/err" 'another user' || fail "root is told: $(cat "$work/err")"
them 0 '' umount "$theirs/mnt"

# Without /etc/mtab fusermount3 mounts for an ordinary user, and takes nothing away: it is told why, and what
# to do.
mkdir "$work/etc" "$work/etc-work"
if mount -t overlay overlay -o "lowerdir=/etc,upperdir=$work/etc,workdir=$work/etc-work" /etc; then
	at_exit umount -l /etc
	rm -f /etc/mtab
	them 0 '' mount "$address" "$theirs/mnt" -o "key=$theirs/key"
	them 1 'needs /etc/mtab.*ln -s' umount "$theirs/mnt"
	them 0 'stays mounted: .*/etc/mtab' run --server "$address" -o "key=$theirs/key" -- true
	umount -l "$(sed -n 's/.* \([^ ]*scudafs-run[^ ]*\) fuse.scudafs .*/\1/p' /proc/mounts)" ||
		fail "its private mount is gone after all"
	rmdir /tmp/scudafs-run.*
	ln -s ../proc/self/mounts /etc/mtab
	them 0 '' umount "$theirs/mnt"
	umount /etc || fail "/etc is busy"
fi

stop_mount
"$bin/scudafs" mount "$address" "$mnt" -o "key=$work/key,log=$work/daemon.log,allow_other" ||
	fail "allow_other"
them 0 right run --mount "$mnt" -- "$theirs/e2e/small"
run_program small | grep -q right || fail "root computes no more"
them 1 'another user' umount "$mnt"
