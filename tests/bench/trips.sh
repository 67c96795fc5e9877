#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which calls of a program wait, in their order, without a GPU: run three times through one mount of a server
# that knows nothing of the program at first. Its driver is the software device with hollow kernels
# (hollow.c), so results are nonsense, and neither they nor the exit status are looked at.
#
#     trips.sh COMMAND...
#     trips.sh /opt/torch/bin/python3 tests/bench/framework.py --quick start
. "$(dirname "$0")/../e2e/lib.sh"
requires mount python3
[ $# -gt 0 ] || fail "which program?"
driver=$B/tests/bench/libhollow.so
[ -e "$driver" ] || fail "$driver is not built (make tests)"
export SCUDAFS_SOFT_CAPABILITY=9.0
mkdir -m 700 "$work/cache"
start_server --cache "$work/cache"
start_mount
for run in 1 2 3; do
	rm -f "$work/trace"
	SCUDAFS_TRACE=$work/trace timeout -k 5 300 "$bin/scudafs" run --mount "$mnt" --stats="$work/stats" \
		-- "$@" >"$work/program.out" 2>&1
	echo "run $run, exit status $?: $(python3 -c 'import json, sys
s = json.load(open(sys.argv[1]))
print(s["wait"], "calls waited,", s["round_trips"], "round trips")' "$work/stats")"
	awk '$3 == "wait" { print "   ", $4, $5 }' "$work/trace" | uniq -c
done
