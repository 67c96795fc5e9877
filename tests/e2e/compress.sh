#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compression of the connection: right results with it, fewer bytes when it is asked for, none on the same
# host unless it is. (When a sender compresses by itself is in tests/unit/check_stream_bulk.c: what is slow
# here is a receiver, which is no reason to.)
. "$(dirname "$0")/lib.sh"
requires mount python3
start_server --cache none
port=${address##*:}

narrow() # HOST: a link of 30 MB/s to the server, in $address
{
	: >"$work/narrow"
	echo 0 >"$work/sent"
	python3 "$top/tests/e2e/progs/narrow.py" "$1" "$port" 30000000 "$work/sent" >"$work/narrow" &
	relay=$!
	at_exit stop "$relay"
	within 10 test -s "$work/narrow" || fail "the relay is not up"
	address=$1:$(head -n 1 "$work/narrow")
}

# Twice an image of 4 MiB that is mostly comment: a program sends 8 MiB for it.
sent() # OPTION...: KiB over the link, in $kib
{
	echo 0 >"$work/sent"
	start_mount "$@"
	before=$(cat "$work/sent")
	run_program image 1000 4096 3 17 | grep -q right || fail "a wrong result with: $*"
	kib=$((($(cat "$work/sent") - before) / 1024))
	run_program crowded 100 4096 | grep -q crowded || fail "copies with: $*"
	stop_mount
}

narrow 127.0.0.1
sent -o compress=off
[ "$kib" -ge 8192 ] || fail "without compression $kib KiB"
sent -o compress=auto
[ "$kib" -ge 8192 ] || fail "compressed by itself on the same host: $kib KiB"
sent -o compress=on
[ "$kib" -lt 4096 ] || fail "with compression $kib KiB"
stop "$relay"

# An address of this machine that is not the loopback's stands for another host: the two ends agree on blocks.
own=$(hostname -I 2>/dev/null | tr ' ' '\n' | grep -m 1 '^[0-9]*\.[0-9]*\.')
if [ -n "$own" ]; then
	narrow "$own"
	sent
	sent -o compress=off
	[ "$kib" -ge 8192 ] || fail "compress=off compresses: $kib KiB"
fi
mkdir -p "$mnt"
"$bin/scudafs" mount "$address" "$mnt" -o compress=maybe 2>"$work/err" && fail "compress=maybe is taken"
contains "$work/err" 'auto, on or off' || fail "compress=maybe: $(cat "$work/err")"
exit 0
