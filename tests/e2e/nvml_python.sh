#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every getter of nvidia-ml-py on the software device: a value, or a code that says why there is none. Python
# is $PYTHON, or the first of $SCUDAFS_TEST_PYTHON, with the package nvidia-ml-py.
. "$(dirname "$0")/lib.sh"
requires mount
python=${PYTHON:-${SCUDAFS_TEST_PYTHON:-python3}}
python=${python%% *}
"$python" -c 'import pynvml' 2>/dev/null || skip "$python has no nvidia-ml-py"
[ "$driver" = soft ] || skip "it knows the software device's answers"
start_server
start_mount
at_most 60 "$bin/scudafs" run --mount "$mnt" -- "$python" "$top/tests/e2e/progs/nvml_getters.py" \
	>"$work/getters.out" 2>"$work/getters.err" ||
	fail "the getters did not end well"
[ "$(wc -l <"$work/getters.out")" -gt 200 ] || fail "only $(wc -l <"$work/getters.out") calls"
# 2 an argument that is none, 3 not supported, 6 not found, 25 another version of a struct.
bad=$(grep -E ' (error [0-9]+|[A-Za-z]+Error)$' "$work/getters.out" | grep -vE ' error (2|3|6|25)$')
[ -z "$bad" ] || fail "$bad"
name=$(cat "$mnt/gpu0/name")
for line in "nvmlDeviceGetName ['device'] $name" "nvmlDeviceGetCount [] 1" \
	"nvmlDeviceGetUUID ['device'] $(cat "$mnt/gpu0/uuid")" \
	"nvmlDeviceGetMinorNumber ['device'] $(cat "$mnt/gpu0/minor_number")" \
	"nvmlDeviceGetComputeMode ['device'] 0"
	do
	grep -qxF -e "$line" "$work/getters.out" || fail "there is no line '$line'"
done
