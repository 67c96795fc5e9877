#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 14400
# A million damaged inputs under the address and undefined-behaviour sanitizers: MUTATE_COUNT (500000) PTX texts, read, decoded and
# run, and as many fat binaries. No crash, none that takes more than a second, bounded memory. MUTATE_FIRST (0) is the number of the
# first text: other numbers are other texts.
. "$(dirname "$0")/../e2e/lib.sh"
requires make
count=${MUTATE_COUNT:-500000} first=${MUTATE_FIRST:-0}
cd "$top" || exit 1
make -s -j2 B="$work/asan" SAN=address,undefined CFLAGS='-O1 -g' "$work/asan/bin/scuda-softcheck" >"$work/build.log" 2>&1 || fail "the build"
objects=$(ls "$work"/asan/obj/server/soft/*.o "$work"/asan/obj/devshim/*.o "$work"/asan/obj/gen/*.o)
cc=(${CC:-gcc} -std=gnu11 -O1 -g -fsanitize=address -fsanitize=undefined -frounding-math -ffp-contract=off -fno-builtin-fma -D_GNU_SOURCE -I. -I"$work/asan/gen")
libraries=("$work/asan/obj/wire/log.o" -llz4 -lzstd -lm -lpthread)
# shellcheck disable=SC2086
"${cc[@]}" -o "$work/mutate" tests/soft/engine/check_mutate.c $objects "${libraries[@]}" &&
	"${cc[@]}" -o "$work/insn" tests/soft/engine/check_insn.c tests/soft/engine/{model_*,device_soft,golden}.c $objects "${libraries[@]}" &&
	"${cc[@]}" -o "$work/cluster" tests/soft/engine/check_cluster.c $objects "${libraries[@]}" &&
	"${cc[@]}" -o "$work/matrix" tests/soft/engine/check_matrix.c $objects "${libraries[@]}" &&
	"${cc[@]}" -o "$work/images" tests/soft/driver/images.c server/soft/image.c wire/log.c -llz4 -lzstd || fail "the build"
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 SCUDAFS_LOG=error
"$work/insn" text "$work/insn.ptx" && "$work/cluster" text >"$work/cluster.ptx" && "$work/matrix" text >"$work/matrix.ptx" ||
	fail "the kernels of the conformance tests"
ASAN_OPTIONS=hard_rss_limit_mb=3000 at_most 3600 "$work/images" "$count" || fail "fat binaries"

# Two processes, each with every second part, which begins with a fresh process.
part=10000
texts() # WHICH
{
	local k
	for ((k = first + $1 * part; k < first + count; k += 2 * part)); do
		MUTATE_LAST=$work/last.$1 at_most 3600 "$work/mutate" "$((first + count - k < part ? first + count - k : part)):$k" \
			tests/soft/engine/sample.ptx "$work"/{insn,cluster,matrix}.ptx >"$work/mutate.$1" 2>&1 && continue
		echo "text number $(od -An -t u8 "$work/last.$1"):"
		tail -n 40 "$work/mutate.$1"
		return 1
	done
}
texts 0 &
pid0=$!
texts 1 &
pid1=$!
bad=0
wait "$pid0" || bad=1
wait "$pid1" || bad=1
[ "$bad" = 0 ] || fail "texts"
echo "$count texts and $count fat binaries"
