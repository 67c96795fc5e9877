#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse looking two unix
# A wait behind nothing but a few bytes from the program's memory is the server's to wait; behind anything
# else it is the program's. What the bytes are for finds them.
. "$(dirname "$0")/lib.sh"
requires mount python3
start_server
start_mount

waits() # HOW COUNT: of cuStreamSynchronize; one of each two that the program makes is behind a kernel
{
	at_most 60 "$bin/scudafs" run --mount "$mnt" --stats="$work/stats.json" -- "$progs/weights" \
		"$1" >"$work/out" || fail "weights $1"
	grep -q right "$work/out" || fail "weights $1: $(cat "$work/out")"
	python3 -c 'import json, sys
waits = json.load(open(sys.argv[1]))["waits"].get("cuStreamSynchronize", 0)
print(sys.argv[2], waits)
sys.exit(waits != int(sys.argv[3]))' "$work/stats.json" "$@" ||
	fail "weights $1 waited for streams another number of times than $2"
}
waits small 200
waits large 40
waits pinned 400
waits busy 200
waits shown 400
