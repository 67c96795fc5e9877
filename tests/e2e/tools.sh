#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse
# The tools that people point at a folder (cp, tar, grep, find, du, dd, rsync) come through the whole tree,
# with a program at work on it; and what cannot be done there is refused with the error that /sys would give.
. "$(dirname "$0")/lib.sh"
requires mount python3
start_server
start_mount

start_program holder hold $((64 << 20))
expect holder 20 ready

tool() # COMMAND...: at most 10 s, without a word on standard error
{
	at_most 10 "$@" >"$work/out" 2>"$work/err"
	local code=$?
	[ "$code" = 0 ] && [ ! -s "$work/err" ] || fail "$1 gave $code: $(head -n 3 "$work/err")"
}
tool cp -r "$mnt" "$work/copy"
files=$(find "$mnt" -type f | wc -l)
[ "$(find "$work/copy" -type f | wc -l)" = "$files" ] || fail "not all files were copied"
cmp -s "$mnt/gpu0/name" "$work/copy/gpu0/name" || fail "the copied name differs"
chmod -R u+w "$work/copy"
tool tar -C "$mnt" -cf "$work/tree.tar" .
[ "$(stat -c %s "$work/tree.tar")" -lt $((1 << 20)) ] ||
	fail "the archive has $(stat -c %s "$work/tree.tar") bytes"
[ "$(tar -xOf "$work/tree.tar" ./gpu0/name)" = "$(cat "$mnt/gpu0/name")" ] || fail "the archived name differs"
tool grep -r "$(cat "$mnt/gpu0/uuid")" "$mnt"
[ "$(grep -c . "$work/out")" -ge 2 ] || fail "grep found the uuid in $(cat "$work/out")"
tool find "$mnt" -type f -size +64k
[ ! -s "$work/out" ] || fail "large files: $(cat "$work/out")"
tool du -s --apparent-size -k "$mnt"
[ "$(cut -f 1 "$work/out")" -lt 1024 ] || fail "du says $(cat "$work/out")"
tool ls -lR "$mnt"
tool df "$mnt"
tool dd if="$mnt/gpu0/name" of="$work/direct" bs=4096 iflag=direct status=none
cmp -s "$mnt/gpu0/name" "$work/direct" || fail "O_DIRECT reads something else"
tool cat "$mnt/ctl" "$mnt/servers/127.0.0.1/ctl"
[ ! -s "$work/out" ] || fail "ctl has bytes"
! command -v rsync >/dev/null || tool rsync -a "$mnt/" "$work/synced"
[ "$(find "$mnt" ! -path '*/sessions/*' -printf '%p %i %m %n\n' | sort | sha256sum)" = \
	"$(find "$mnt" ! -path '*/sessions/*' -printf '%p %i %m %n\n' | sort | sha256sum)" ] ||
		fail "numbers or modes change"

tool python3 - "$mnt" <<'END'
import errno, fcntl, mmap, os, select, socket, sys
root = sys.argv[1]
name, status = root + "/gpu0/name", root + "/status.json"


def refused(code, what, *args):
	try:
		what(*args)
	except OSError as e:
		assert e.errno in code, (what.__name__, args, errno.errorcode[e.errno])
		return
	raise AssertionError((what.__name__, args, "succeeded"))


denied = (errno.EPERM, errno.EACCES)
for flags in (os.O_WRONLY, os.O_RDWR, os.O_TRUNC, os.O_WRONLY | os.O_APPEND):
	refused(denied, os.open, name, flags)
refused(denied, os.open, root + "/new", os.O_CREAT | os.O_WRONLY)
for what, args in ((os.mkdir, ("/new",)), (os.unlink, ("/gpu0/name",)), (os.rmdir, ("/gpu0",)),
		(os.mkfifo, ("/new",)), (os.truncate, ("/gpu0/name", 0)), (os.chmod, ("/gpu0/name", 0o777)),
		(os.truncate, ("/ctl", 5)), (os.utime, ("/gpu0/name",))):
	refused(denied, what, root + args[0], *args[1:])
refused(denied, os.rename, name, root + "/new")
refused(denied, os.link, name, root + "/new")
refused(denied, os.symlink, name, root + "/new")
refused((errno.EEXIST,), os.mkdir, root + "/gpu0")
refused((errno.EISDIR,), os.read, os.open(root, os.O_RDONLY), 1)
refused((errno.ENAMETOOLONG,), os.stat, root + "/" + 256 * "n")
for missing in ("gpu9", "gpu00", "gpu-1", "gpu0/nothing", 255 * "n"):
	refused((errno.ENOENT,), os.stat, root + "/" + missing)
refused((errno.ENOTSUP,), os.getxattr, name, "user.x")

whole = open(name, "rb").read()
fd = os.open(name, os.O_RDONLY)
assert os.fstat(fd).st_size == len(whole) == os.lseek(fd, 0, os.SEEK_END)
assert os.pread(fd, 4, 2) == whole[2:6] and os.pread(fd, 4, 1 << 40) == b""
fd = os.open(status, os.O_RDONLY)
size = os.fstat(fd).st_size
assert mmap.mmap(fd, 0, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ)[:size] == os.pread(fd, size + 1, 0)
a, b = socket.socketpair()
assert os.sendfile(a.fileno(), fd, 0, 1 << 20) == size
poll = select.poll()
poll.register(fd, select.POLLIN)
assert poll.poll(1000) == [(fd, select.POLLIN)]
fcntl.flock(fd, fcntl.LOCK_SH)
many = [os.open(root + "/gpu0/memory/total", os.O_RDONLY) for _ in range(1000)]
assert len({os.read(f, 64) for f in many}) == 1
END
tell holder
expect holder 10 right
