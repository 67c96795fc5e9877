#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Modules that the server keeps: the bytes travel once, the functions that a program took come with the next
# load, another client's key finds nothing, a damaged file is not believed, and all of it works without a
# cache, too.
. "$(dirname "$0")/lib.sh"
requires mount
"$bin/scudafs" keygen alice "$work/alice" 2>/dev/null
"$bin/scudafs" keygen bob "$work/bob" 2>/dev/null
cat "$work/alice" "$work/bob" >"$work/keys"
chmod 600 "$work/keys"
mkdir -m 700 "$work/cache"
start_server --keys "$work/keys" --cache "$work/cache"
start_mount -o "key=$work/alice"

cost() # ARGUMENT...: of a run of `image`: KiB to the server and round trips, in $sent and $waits
{
	local bytes=0 waited=0
	bytes=$(cat "$mnt/stats/bytes_out")
	waited=$(cat "$mnt/stats/waits")
	run_program image "$@" | grep -q right || fail "image $*"
	sent=$((($(cat "$mnt/stats/bytes_out") - bytes) / 1024))
	waits=$(($(cat "$mnt/stats/waits") - waited))
}

# The same image is loaded twice by each run: the second load of the first run finds it already.
cost 1000 512 3 17
[ "$sent" -ge 512 ] && [ "$sent" -lt 700 ] || fail "the first run sent $sent KiB"
first=$waits
cost 1000 512 3 17
[ "$sent" -lt 64 ] || fail "the second run sent $sent KiB"
# Saved: the load with the bytes, and asking for k3 and k17 of the module (the library was told already).
[ "$waits" -le $((first - 3)) ] || fail "the second run waited $waits times, the first $first"
warm=$waits
cost 1000 512 3 none
[ "$waits" -ge $((warm - 3)) ] || fail "nobody asked the driver for a name that is not there"
# Another image of the same size has its own functions.
cost 2000 512 3 17
[ "$sent" -ge 512 ] || fail "another image sent $sent KiB"
cost 1000 512 3 17
cost 2000 512 17
[ "$sent" -lt 64 ] || fail "two images that are kept sent $sent KiB"
# What a program sets of a kernel is not what the next one's kernel has.
[ "$(run_program setting 60000)" = 60000 ] || fail "a kernel's shared memory was not set"
most=$(run_program setting 0)
[ "$most" = 49152 ] || fail "a kernel may have $most bytes of shared memory because another program's could"
# A small one is sent as it is.
cost 3000 1 3
cost 3000 1 3
[ "$sent" -lt 64 ] || fail "a small image sent $sent KiB"

# Damage: a changed byte, and a file cut short.
for file in "$work"/cache/*/*; do
	case $file in *.notes) continue ;; esac
	printf X | dd of="$file" bs=1 seek=300 conv=notrunc 2>/dev/null
done
cost 1000 512 3 17
[ "$sent" -ge 512 ] || fail "a damaged image was believed"
for file in "$work"/cache/*/*; do
	truncate -s 100 "$file"
done
cost 2000 512 3 17
[ "$sent" -ge 512 ] || fail "an image cut short was believed"
cost 2000 512 3 17
[ "$sent" -lt 64 ] || fail "after the damage it is not kept any more"

# Another client is not told that alice has it.
stop_mount
start_mount -o "key=$work/bob"
cost 2000 512 3 17
[ "$sent" -ge 512 ] || fail "bob was served what alice sent"
[ "$(find "$work/cache" -mindepth 1 -maxdepth 1 | wc -l)" = 2 ] || fail "the two clients share a folder"
[ -z "$(find "$work/cache" -mindepth 1 -perm /077)" ] || fail "others can read what is kept"
stop_mount
stop_server

# Without a cache, and with a folder that is not ours alone.
start_server --keys "$work/keys" --cache none
start_mount -o "key=$work/alice"
cost 1000 512 3 17 none
cost 1000 512 3 17
[ "$sent" -ge 1024 ] || fail "something was kept without a cache"
stop_mount
stop_server
mkdir -m 755 "$work/open"
at_most 10 "$bin/scuda-server" --listen 127.0.0.1:0 --driver soft --cache "$work/open" 2>"$work/err"
code=$?
[ "$code" = 2 ] && contains "$work/err" 'chmod 700' ||
	fail "a cache that others can read gave $code: $(cat "$work/err")"
exit 0
