#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 14400
# Damaged inputs under the address and undefined-behaviour sanitizers: MUTATE_COUNT (1000000) PTX texts,
# read, decoded and run, and as many images (fat binaries, wrappers, inputs of the linker), loaded, linked
# and run. No crash, none that takes more than three seconds, bounded memory. MUTATE_FIRST (0) is the number
# of the first one: other numbers are other inputs.
. "$(dirname "$0")/../e2e/lib.sh"
requires make
count=${MUTATE_COUNT:-1000000} first=${MUTATE_FIRST:-0}
cd "$top" || exit 1
asan=${B#"$top"/}-asan # check-asan's; relative, as the names are that make knows the headers by
flock Makefile make -s -j2 B="$asan" SAN=address,undefined CFLAGS='-O1 -g' "$asan/bin/scuda-softcheck" \
	>"$work/build.log" 2>&1 || fail "the build"
objects=$(ls "$asan"/obj/server/soft/*.o "$asan"/obj/gen/cuda.{soft,procs}.o \
	"$asan"/obj/devshim/{tables,compiled,errors,procs,visible,handshake}.o \
	"$asan"/obj/wire/{digest,kept}.o)
cc=(${CC:-gcc} -std=gnu11 -O1 -g -fsanitize=address -fsanitize=undefined
	-frounding-math -ffp-contract=off -fno-builtin-fma -D_GNU_SOURCE -I. -I"$work/asan/gen")
libraries=("$asan/obj/wire/log.o" -llz4 -lzstd -lm -lpthread)
# shellcheck disable=SC2086
"${cc[@]}" -o "$work/texts" tests/soft/engine/check_mutate.c tests/soft/mutate.c $objects "${libraries[@]}" &&
	"${cc[@]}" -o "$work/insn" tests/soft/engine/check_insn.c \
		tests/soft/engine/{model_*,device_soft,golden}.c $objects "${libraries[@]}" &&
	"${cc[@]}" -o "$work/cluster" tests/soft/engine/check_cluster.c $objects "${libraries[@]}" &&
	"${cc[@]}" -o "$work/matrix" tests/soft/engine/check_matrix.c $objects "${libraries[@]}" &&
	"${cc[@]}" -o "$work/images" tests/soft/driver/mutate_images.c tests/soft/mutate.c wire/image.c \
		$objects "${libraries[@]}" || fail "the build"
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 SCUDAFS_LOG=error
"$work/insn" text "$work/insn.ptx" && "$work/cluster" text >"$work/cluster.ptx" &&
	"$work/matrix" text >"$work/matrix.ptx" ||
	fail "the kernels of the conformance tests"

# Two processes, each with every second part, which begins with a fresh process.
half() # WHICH PROGRAM PART ARGUMENTS...
{
	local which=$1 program=$2 part=$3 k
	shift 3
	for ((k = first + which * part; k < first + count; k += 2 * part)); do
		MUTATE_LAST=$work/last.$which at_most 3600 "$work/$program" \
			"$((first + count - k < part ? first + count - k : part)):$k" \
			"$@" >"$work/log.$which" 2>&1 && continue
		echo "$program: number $(od -An -t u8 "$work/last.$which"):"
		tail -n 40 "$work/log.$which"
		return 1
	done
}
both() # PROGRAM PART ARGUMENTS...
{
	local pid0 pid1 bad=0
	half 0 "$@" &
	pid0=$!
	half 1 "$@" &
	pid1=$!
	wait "$pid0" || bad=1
	wait "$pid1" || bad=1
	[ "$bad" = 0 ] || fail "$1"
}
both images 50000
both texts 10000 tests/soft/engine/sample.ptx "$work"/{insn,cluster,matrix}.ptx
echo "$count texts and $count images"
