#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No function of the shim makes a call inside a begun call (begun.py), and one that does is found.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 wire/gen.py wire/cuda_types.h wire/cuda.h stubs.c >"$work/cuda.stubs.c"
python3 tests/gen/begun.py devshim/*.c "$work/cuda.stubs.c"
grep -n '/\* bad \*/' tests/gen/begun-bad.c | cut -d: -f1 >"$work/want"
! python3 tests/gen/begun.py tests/gen/begun-bad.c >"$work/found" ||
	{ echo "the bad ones are accepted"; exit 1; }
cut -d: -f2 "$work/found" | sort -n | diff "$work/want" - || { echo "want <, found >"; exit 1; }
# The shim itself with one such place.
sed 's/^\tr = put_nodes(&c, dependencies, numDependencies);$/\tfunction_ask(0);\n&/' devshim/graph.c \
	>"$work/graph.c"
! python3 tests/gen/begun.py $(ls devshim/*.c | grep -v /graph.c) "$work/graph.c" >"$work/found" ||
	{ echo "the place that was put into graph.c is not found"; exit 1; }
grep -q 'cuGraphAddKernelNode_v2 has begun a call and makes another: function_ask' "$work/found"
