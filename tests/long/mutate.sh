#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 14400
# A million damaged inputs under the address and undefined-behaviour sanitizers: MUTATE_COUNT (500000) PTX texts, read, decoded and
# run, and as many fat binaries. No crash, no hang, bounded memory.
. "$(dirname "$0")/../e2e/lib.sh"
requires make
count=${MUTATE_COUNT:-500000}
cd "$top" || exit 1
make -s -j2 B="$work/asan" SAN=address,undefined CFLAGS='-O1 -g' "$work/asan/bin/scuda-softcheck" >"$work/build.log" 2>&1 || fail "the build"
objects=$(ls "$work"/asan/obj/server/soft/*.o "$work"/asan/obj/devshim/*.o "$work"/asan/obj/gen/*.o)
cc=(${CC:-gcc} -std=gnu11 -O1 -g -fsanitize=address -fsanitize=undefined -D_GNU_SOURCE -I. -I"$work/asan/gen")
# shellcheck disable=SC2086
"${cc[@]}" -o "$work/mutate" tests/soft/engine/check_mutate.c $objects "$work/asan/obj/wire/log.o" -llz4 -lzstd -lm -lpthread &&
	"${cc[@]}" -o "$work/images" tests/soft/driver/images.c server/soft/image.c wire/log.c -llz4 -lzstd || fail "the build"
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=hard_rss_limit_mb=3000 SCUDAFS_LOG=error
"$work/images" "$count" || fail "fat binaries"

# Memory must not grow with the number of inputs: each process does a part of them.
part=20000
for ((done = 0; done < count; done += part)); do
	n=$((count - done < part ? count - done : part))
	MUTATE_LAST=$work/last.ptx timeout 3600 "$work/mutate" "$n:$done" tests/soft/engine/sample.ptx >"$work/mutate.out" 2>&1 || {
		cp "$work/last.ptx" "${TMPDIR:-/tmp}/scudafs-mutate-last.ptx"
		fail "texts from $done on; the last one is ${TMPDIR:-/tmp}/scudafs-mutate-last.ptx"
	}
done
echo "$count texts and $count fat binaries"
