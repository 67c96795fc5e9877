#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 900
# make HANDSHAKE=no builds libraries without the runtime's handshake: programs of the driver API work with
# them.
. "$(dirname "$0")/../e2e/lib.sh"
requires mount make
make -C "$top" -s -j2 B="$work/plain" HANDSHAKE=no all >"$work/build.log" 2>&1 || fail "the build"
nm "$work/plain/lib/libcuda.so.1" | grep -i handshake && fail "the handshake is in it"
start_server
start_mount
SCUDAFS_MOUNT=$mnt LD_LIBRARY_PATH=$work/plain/lib at_most 60 "$progs/small" | grep -q right ||
	fail "no result"
