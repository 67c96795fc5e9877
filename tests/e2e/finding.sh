#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How programs come to the library under `scudafs run`: by its names with and without a version, from a
# statically linked program, through a wrapper that puts a folder of its own in front, through a link at an
# absolute path, by what Python finds, from processes that Python's multiprocessing makes in each of its
# ways, and in a root folder that has nothing but the system's libraries, the mount and ours.
. "$(dirname "$0")/lib.sh"
requires mount gcc
unsanitized "the programs here are not built with one"
start_server
start_mount
gcc -o "$work/dynamic" "$top/tests/e2e/finding.c" -ldl || fail "gcc"

finds() # NAME COMMAND...: it says that there is a device by that name
{
	at_most 20 "$bin/scudafs" run --mount "$mnt" -- "${@:2}" >"$work/out" 2>&1
	grep -qxF "$1 init 0 count 1" "$work/out" || fail "$*: $(cat "$work/out")"
}
finds libcuda.so.1 "$work/dynamic" libcuda.so.1
finds libcuda.so "$work/dynamic" libcuda.so
finds libcuda.so.1 sh -c 'LD_LIBRARY_PATH=/opt/none/lib:$LD_LIBRARY_PATH exec "$0" libcuda.so.1' \
	"$work/dynamic"
finds libcuda.so.1 setsid sh -c '"$0" libcuda.so.1 </dev/null | cat' "$work/dynamic"
ln -s "$lib/libcuda.so.1" "$work/libcuda.so.1"
finds "$work/libcuda.so.1" env -u LD_LIBRARY_PATH "$work/dynamic" "$work/libcuda.so.1"
if gcc -static -o "$work/static" "$top/tests/e2e/finding.c" 2>/dev/null; then
	finds libcuda.so.1 "$work/static" libcuda.so.1
fi
# A wrapper that begins the path anew loses it; this is where a link or ldconfig is the answer (scudafs(1)).
at_most 20 "$bin/scudafs" run --mount "$mnt" -- env LD_LIBRARY_PATH=/opt/none/lib \
	"$work/dynamic" libcuda.so.1 >"$work/out" 2>&1
contains "$work/out" 'init 0 count 1' && fail "found without its folder: $(cat "$work/out")"

cat >"$work/processes.py" <<'PYTHON'
import ctypes
import ctypes.util
import multiprocessing
import sys


def ask(_):
    driver = ctypes.CDLL("libcuda.so.1")
    count = ctypes.c_int(-1)
    return driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)), count.value


if __name__ == "__main__":
    answers = {}
    for way in "fork", "spawn", "forkserver":
        with multiprocessing.get_context(way).Pool(2) as pool:
            answers[way] = pool.map(ask, range(4))
    answers["itself"] = [ask(0)]
    with multiprocessing.get_context("fork").Pool(1) as pool:
        after = pool.map(ask, range(1))
    wrong = {k: v for k, v in answers.items() if set(v) != {(0, 1)}}
    if wrong or after != [(3, -1)]:
        sys.exit(f"{wrong} and after a fork {after}")
    print("found", ctypes.util.find_library("cuda"))
PYTHON
if command -v python3 >/dev/null; then
	at_most 60 "$bin/scudafs" run --mount "$mnt" -- python3 "$work/processes.py" >"$work/out" 2>&1 ||
		fail "multiprocessing: $(tail -n 3 "$work/out")"
	contains "$work/out" 'found libcuda.so' || fail "find_library: $(cat "$work/out")"
fi

in_a_root_of_its_own() # in a mount namespace: no /proc, /dev, /tmp or /etc
{
	set -e
	mount -t tmpfs none "$work/root"
	mkdir "$work/root/usr" "$work/root/scuda" "$work/root/cuda"
	mount --bind /usr "$work/root/usr"
	mount --bind "$mnt" "$work/root/scuda"
	mount --bind "$lib" "$work/root/cuda"
	ln -s usr/lib usr/lib64 usr/bin "$work/root"
	cp "$work/dynamic" "$work/root/program"
	PATH=$PATH:/usr/sbin timeout -k 2 20 chroot "$work/root" \
		/usr/bin/env -i LD_LIBRARY_PATH=/cuda SCUDAFS_MOUNT=/scuda /program libcuda.so.1
}
mkdir "$work/root"
if [ "$(id -u)" = 0 ] && [ -L /lib64 ] && unshare --mount true 2>/dev/null; then
	export -f in_a_root_of_its_own
	export work mnt lib
	unshare --mount bash -c in_a_root_of_its_own >"$work/out" 2>&1
	contains "$work/out" 'libcuda.so.1 init 0 count 1' || fail "in a root of its own: $(cat "$work/out")"
else
	echo "(no root folder of its own: not root, no namespaces, or /lib64 is no link)"
fi
within 5 no_sessions || fail "sessions are left"
