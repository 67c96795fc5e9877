#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make install puts programs, libraries and manual pages under PREFIX, and they work from there.
. "$(dirname "$0")/lib.sh"
requires mount make
make -C "$top" -s -o all B="$B" DESTDIR="$work/root" PREFIX=/opt/scuda install >"$work/install.log" 2>&1 ||
	fail "make install"
for file in bin/scudafs bin/scuda-server lib/scudafs/libcuda.so.1 lib/scudafs/libcuda.so \
	lib/scudafs/libnvidia-ml.so lib/scudafs/soft/libcuda.so share/man/man1/scudafs.1
do
	[ -e "$work/root/opt/scuda/$file" ] || fail "$file is not installed"
done
installed=$work/root/opt/scuda/bin
grep -rqa "$top/" "$work/root/opt/scuda/share" && fail "a path of the build machine is installed"
start_server
"$installed/scudafs" run --server "$address" -- "$progs/small" | grep -q right ||
	fail "the installed command does not work"
at_most 5 "$installed/scudafs" serve --version | grep -q scuda-server || fail "serve does not find the server"
