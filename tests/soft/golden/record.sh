#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# record.sh FOLDER: runs the instruction tests on the GPU of this machine (the first libcuda.so.1 that is
# found) and writes what it gave to FOLDER/golden.txt, and to FOLDER/*.log where it differs from the models.
# It needs gcc and a driver, and takes a few seconds. The file's home is tests/soft/golden/h200.txt.
set -u
out=$(realpath "${1:?the folder for the results}") || exit 1
cd "$(dirname "$0")/../../.." || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cc=(${CC:-gcc} -std=gnu11 -D_GNU_SOURCE -O1 -g -Wall -Wextra
	-frounding-math -ffp-contract=off -fno-builtin-fma -I.)
common=(tests/soft/engine/golden.c tests/soft/engine/device_cuda.c -lm -ldl -lpthread)
"${cc[@]}" -o "$tmp/insn" tests/soft/engine/check_insn.c tests/soft/engine/model_*.c "${common[@]}" || exit 1
"${cc[@]}" -o "$tmp/memory" tests/soft/engine/check_memory.c "${common[@]}" || exit 1
"${cc[@]}" -o "$tmp/warp" tests/soft/engine/check_warp.c "${common[@]}" || exit 1
"${cc[@]}" -o "$tmp/shape" tests/soft/engine/check_shape.c "${common[@]}" || exit 1
"${cc[@]}" -o "$tmp/wgmma" tests/soft/engine/check_wgmma.c "${common[@]}" || exit 1
: >"$out/golden.txt"
bad=0
for t in insn memory warp shape wgmma; do # the last one is for capability 9.0 alone
	SECONDS=0
	GOLDEN_WRITE=$out/golden.txt SHOWN=${SHOWN:-32} timeout 100 "$tmp/$t" gpu >"$out/$t.log" 2>&1
	status=$?
	[ $status = 0 ] || bad=1
	echo "$t: status $status, ${SECONDS} s," \
		"$(grep -c '^FAILED' "$out/$t.log") lines that differ from the model," \
		"$(grep -c '^refused' "$out/$t.log") refused"
	tail -n 1 "$out/$t.log"
done
exit $bad
