#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse
# How many round trips a start costs, by function: of libraries that the server never saw, and of those that this client has used before.
. "$(dirname "$0")/lib.sh"
requires mount python3
export SCUDAFS_SOFT_CAPABILITY=9.0 # clusters
start_server --cache "$work/cache"
start_mount

trips() # IMAGES KIB NAME=COUNT...: exactly these, and nothing else but one cuInit, context and allocation, and a read for each launch
{
	local images=$1 kib=$2
	shift 2
	timeout -k 2 30 "$bin/scudafs" run --mount "$mnt" --stats="$work/stats.json" -- "$progs/opening" "$images" "$kib" >"$work/out" || fail "opening $images $kib"
	grep -q right "$work/out" || fail "opening $images $kib: $(cat "$work/out")"
	python3 - "$work/stats.json" "$images" "$@" <<-'PY' || fail "opening $images $kib"
		import json, sys
		s = json.load(open(sys.argv[1]))
		want = {"cuInit": 1, "cuDevicePrimaryCtxRetain": 1, "cuMemAlloc_v2": 1, "cuMemcpyDtoH_v2": 2 * int(sys.argv[2])}
		want.update((k, int(v)) for k, v in (a.split("=") for a in sys.argv[3:]))
		if s["waits"] != want:
		    sys.exit(f"waited {s['waits']}, not {want}")
		print(f"{sys.argv[2]} libraries: {s['wait']} waits, {s['round_trips']} round trips")
	PY
}
trips 3 100 cuLibraryLoadData=3 cuLibraryGetKernel=3 cuKernelGetFunction=3 cuOccupancyMaxActiveBlocksPerMultiprocessor=3 \
	cuOccupancyAvailableDynamicSMemPerBlock=3 cuOccupancyMaxActiveClusters=1
trips 3 100 cuLibraryLoadData=3 cuKernelGetFunction=3 cuOccupancyMaxActiveBlocksPerMultiprocessor=3 \
	cuOccupancyAvailableDynamicSMemPerBlock=3 cuOccupancyMaxActiveClusters=1
