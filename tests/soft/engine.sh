#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The PTX engine without the driver around it: instruction conformance in each build of the vector handlers,
# mutated texts, and, where nvcc is there, kernels compiled from tests/soft/engine/kernels.cu.
# limit: 300
set -eu
cd "$(dirname "$0")/../.."
B=${B:-build}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
san=
case $B in
*asan*) san=-fsanitize=address,undefined ;;
*tsan*) san=-fsanitize=thread ;;
esac
objects=$(cd "$B/obj/server/soft" && ls {check*,shadow,ptx_*,ir_*,decode*,exec_*,engine,printf,builtin}.o \
	{fault,file,memory,opcodes}.o handlers{_pick,.sse2,.avx2,.avx512}.o | sed "s|^|$PWD/|")
build() # PROGRAM SOURCE...
{
	local out=$tmp/$1
	shift
	# shellcheck disable=SC2086
	${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra $san -frounding-math -ffp-contract=off \
		-fno-builtin-fma -I. -o "$out" "$@" tests/soft/engine/no_texture.c $objects \
		"$B/obj/wire/log.o" -lm -lpthread
}
device="tests/soft/engine/device_soft.c tests/soft/engine/golden.c"
# shellcheck disable=SC2086
{
	build insn tests/soft/engine/check_insn.c tests/soft/engine/model_*.c $device
	build memory tests/soft/engine/check_memory.c $device
	build warp tests/soft/engine/check_warp.c $device
	build shape tests/soft/engine/check_shape.c $device
	build wgmma tests/soft/engine/check_wgmma.c $device
}
# What an H200 gave (tests/soft/golden/record.sh).
if [ -e tests/soft/golden/h200.txt ]; then
	export GOLDEN=tests/soft/golden/h200.txt GOLDEN_DIFFERENCES=tests/soft/golden/differences.txt
fi
for simd in sse2 avx2 avx512; do
	"$tmp/insn" $simd
	"$tmp/memory" $simd
	"$tmp/warp" $simd
	"$tmp/shape" $simd
done
"$tmp/wgmma"
build cluster tests/soft/engine/check_cluster.c
build matrix tests/soft/engine/check_matrix.c
"$tmp/cluster"
"$tmp/matrix"
# The same with every access looked at: nothing changes, and nothing is reported.
for t in memory warp shape wgmma; do
	SCUDAFS_SOFT_CHECK=all "$tmp/$t" avx2 >"$tmp/said" 2>&1 || { cat "$tmp/said"; exit 1; }
	if grep scuda-check "$tmp/said"; then exit 1; fi
done
build mutate tests/soft/engine/check_mutate.c tests/soft/mutate.c
"$tmp/insn" text "$tmp/insn.ptx"
"$tmp/cluster" text >"$tmp/cluster.ptx"
"$tmp/wgmma" text "$tmp/wgmma.ptx"
"$tmp/matrix" text >"$tmp/matrix.ptx"
"$tmp/mutate" "${MUTATE_COUNT:-20000}" tests/soft/engine/*.ptx "$tmp"/{insn,cluster,matrix,wgmma}.ptx
if command -v nvcc >/dev/null; then
	build kernels tests/soft/engine/check_kernels.c
	for arch in 75 90; do
		nvcc -std=c++17 -arch=compute_$arch -ptx -o "$tmp/kernels.ptx" tests/soft/engine/kernels.cu
		for simd in sse2 avx2 avx512; do
			SCUDA_SOFT_SIMD=$simd "$tmp/kernels" "$tmp/kernels.ptx"
		done
	done
fi
