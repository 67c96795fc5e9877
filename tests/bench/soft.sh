#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The software device's engine against plain C (gcc -O2, one core), for each build of the vector handlers;
# two workers against one; how long modules take to load. Needs nvcc. Times are processor time of the busiest
# thread, so that a busy machine does not spoil them much.
set -eu
cd "$(dirname "$0")/../.."
B=${B:-build}
command -v nvcc >/dev/null || { echo "SKIP: no nvcc"; exit 77; }
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
objects=$(cd "$B/obj/server/soft" && ls {check*,shadow,ptx_*,ir_*,decode*,exec_*,engine,printf,builtin}.o \
	{fault,file,memory,opcodes}.o handlers{_pick,.sse2,.avx2,.avx512}.o | sed "s|^|$PWD/|")
# shellcheck disable=SC2086 # a list
${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -O2 -g -Wall -Wextra -I. -o "$tmp/soft" tests/bench/soft/soft.c \
	tests/soft/engine/no_texture.c $objects \
	"$B/obj/wire/log.o" -lm -lpthread
nvcc -std=c++17 -arch=compute_75 -ptx -o "$tmp/kernels.ptx" tests/bench/soft/kernels.cu
nvcc -std=c++17 -arch=compute_75 -ptx -o "$tmp/small.ptx" tests/apps/vectoradd.cu
nvcc -std=c++17 -arch=compute_75 -ptx -o "$tmp/thrust.ptx" tests/bench/soft/thrust.cu
for simd in sse2 avx2 avx512; do
	SCUDA_SOFT_SIMD=$simd "$tmp/soft" 1 "$tmp/kernels.ptx" "$tmp/small.ptx" "$tmp/thrust.ptx" |
		tee "$tmp/one"
done
"$tmp/soft" 2 "$tmp/kernels.ptx" | tee "$tmp/two"
echo "# two workers against one (aim: 1.7)"
awk '/^[a-z]/ && $1 != "load" { if (NR == FNR) one[$1] = $3; else printf "%-10s %.2f\n", $1, one[$1] / $3 }' \
	"$tmp/one" "$tmp/two"
