#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that opens libcuda.so or libnvidia-ml.so by the name without a version, as numba-cuda does, gets
# ours and not the system's.
. "$(dirname "$0")/lib.sh"
requires mount
start_server
start_mount
"$bin/scudafs" run --mount "$mnt" -- "$progs/names" >"$work/names.out" || fail "the program failed"
grep -qx "libcuda.so same .*/lib/libcuda\.so\(\.1\)\?" "$work/names.out" ||
	fail "libcuda.so: $(cat "$work/names.out")"
grep -qx "libnvidia-ml.so same .*/lib/libnvidia-ml\.so\(\.1\)\?" "$work/names.out" ||
	fail "libnvidia-ml.so: $(cat "$work/names.out")"
while read -r _ _ path; do
	[ "$(realpath "$(dirname "$path")")" = "$(realpath "$lib")" ] || fail "$path is not in $lib"
done <"$work/names.out"
