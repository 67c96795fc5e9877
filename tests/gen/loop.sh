#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds and runs the loop test (loop.c).
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for a in calls.h calls.c driver.h flavours.h remote.h stubs.c serve.c; do
	python3 wire/gen.py wire/cuda_types.h wire/cuda.h $a > "$work/cuda.$a"
done
{ echo '#include "tests/gen/loop.h"'; python3 tests/gen/loop.py; } > "$work/cases.c"
gcc -std=gnu11 -g -Wall -Wextra -Werror -fsanitize=address,undefined -fno-sanitize-recover=undefined -I. -I"$work" tests/gen/loop.c \
	"$work"/cases.c "$work"/cuda.stubs.c "$work"/cuda.serve.c "$work"/cuda.calls.c wire/msg.c -o "$work/loop"
"$work/loop"
