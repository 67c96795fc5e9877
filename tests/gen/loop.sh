#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the loop test (loop.c), of each description.
# limit: 180
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for p in cuda nvml; do
	for a in calls.h calls.c driver.h remote.h stubs.c serve.c; do
		python3 wire/gen.py wire/${p}_types.h wire/$p.h $a > "$work/$p.$a"
	done
	{ echo '#include "tests/gen/loop.h"'; python3 tests/gen/loop.py $p; } > "$work/$p.cases.c"
done
python3 wire/gen.py wire/cuda_types.h wire/cuda.h flavours.h > "$work/cuda.flavours.h"
for p in cuda nvml; do
	define=
	[ $p = cuda ] || define=-DLOOP_NVML
	gcc -std=gnu11 -g -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=undefined \
		$define -I. -I"$work" tests/gen/loop.c wire/msg.c \
		"$work/$p.cases.c" "$work/$p.stubs.c" "$work/$p.serve.c" "$work/$p.calls.c" -o "$work/loop"
	echo "$p:"
	"$work/loop"
done
