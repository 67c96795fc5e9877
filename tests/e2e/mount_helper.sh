#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# mount(8): the helper's own command line, as an fstab line makes it, with the options that are not ours
# ignored; status 32 on failure; and a real `mount -t fuse.scudafs` where that can be tried in a mount
# namespace of our own.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
mkdir "$mnt"
at_exit stop_mount
ln -s "$bin/scudafs" "$work/mount.scudafs"
ln -s "$bin/scudafs" "$work/mount.fuse.scudafs"

for helper in mount.scudafs mount.fuse.scudafs; do
	"$work/$helper" "$address" "$mnt" -o rw,_netdev,nofail,user,noauto,x-systemd.automount,allow_other ||
		fail "$helper gave $?"
	run_program count | grep -q 'init 0' || fail "no GPU behind $helper"
	umount "$mnt" || fail "umount(8)"
	helper_gone()
	{
		[ -z "$(pgrep -f "$helper .*$mnt")" ]
	}
	within 5 helper_gone || fail "the daemon of $helper is left"
	"$work/$helper" 127.0.0.1:1 "$mnt" -o rw 2>"$work/err"
	[ $? = 32 ] || fail "$helper of nothing did not give 32: $(cat "$work/err")"
	"$work/$helper" "$address" "$mnt" -o nonsense 2>/dev/null
	[ $? = 32 ] || fail "$helper with an unknown option did not give 32"
	"$work/$helper" "$address" "$mnt" -s -f -o nonsense || fail "$helper -s -f gave $?"
	mountpoint -q "$mnt" && fail "$helper -f mounted"
done

if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	mkdir "$work/sbin"
	ln -s "$bin/scudafs" "$work/sbin/mount.fuse.scudafs"
	unshare -m bash -ec "$others"'
		mount --bind "$1/sbin" /sbin
		mount -t fuse.scudafs "$2" "$1/mnt" -o _netdev,nofail
		cat "$1/mnt/status"
		umount "$1/mnt"' sh "$work" "$address" | grep -q ready || fail "mount -t fuse.scudafs"
fi
exit 0
