#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# limit: 240
# Programs of others that bring their own way to CUDA, unmodified, through the mount: CuPy, numba-cuda,
# cuda.core, Taichi, Warp, Triton, PyTorch. What is not installed is skipped. Variables: SCUDAFS_TEST_PYTHON,
# interpreters to look for them in, one after another (by default python3); CLIENT_SECONDS, for all of them
# (120).
. "$(dirname "$0")/../e2e/lib.sh"
requires mount
unsanitized "interpreters of others are not run under it"
export CLIENT_DIR=$work/client
mkdir -p "$CLIENT_DIR"
end=$(($(now_ms) + ${CLIENT_SECONDS:-120} * 1000))

python_with() # CODE: the first interpreter in which it works
{
	local p
	for p in ${SCUDAFS_TEST_PYTHON:-python3}; do
		command -v "$p" >/dev/null && at_most 60 "$p" -c "$1" >/dev/null 2>&1 && echo "$p" && return
	done
	return 1
}

start_server
start_mount
passed=0 bad=0
while IFS='|' read -r name needs advice; do
	if ! python=$(python_with "$needs"); then
		echo "SKIP no ${name%%_*}: $advice"
		continue
	fi
	left=$(((end - $(now_ms)) / 1000))
	if [ "$left" -lt 1 ]; then
		echo "FAILED $name: no time is left"
		bad=$((bad + 1))
		continue
	fi
	start=$(now_ms)
	TRITON_PTXAS_PATH=$top/server/soft/ptxas timeout -k 2 "$left" "$bin/scudafs" run --mount "$mnt" -- \
		"$python" "$top/tests/apps/clients/$name.py" >"$work/$name.out" 2>&1 </dev/null
	code=$?
	if [ "$code" = 0 ] && tail -n 1 "$work/$name.out" | grep -q '^PASS '; then
		passed=$((passed + 1))
		echo "ok $name ($(($(now_ms) - start)) ms): $(head -n 1 "$work/$name.out")"
	else
		bad=$((bad + 1))
		echo "FAILED $name: status $code"
		tail -n 5 "$work/$name.out"
	fi
done <<'LIST'
cupy_kernels|import cupy|pip install cupy-cuda13x[ctk]
numba_add|from numba.cuda.cudadrv import nvvm; nvvm.NVVM()|pip install numba-cuda[cu13]
core_kernels|import numpy, cuda.core, cuda.bindings.driver|pip install cuda-core[cu13]
taichi_kernels|import taichi|pip install taichi
warp_kernels|import warp; assert warp.config.version.startswith("1.11.")|pip install "warp-lang==1.11.*"
triton_kernels|import torch, triton|pip install torch triton
torch_device|import torch|pip install torch
LIST
[ "$bad" = 0 ] || fail "$bad of $((passed + bad)) clients"
within 10 no_sessions || fail "sessions are left when all clients have ended"
[ "$passed" -gt 0 ] || skip "no client is installed: pip install cupy-cuda13x[ctk] numba-cuda[cu13] torch"
