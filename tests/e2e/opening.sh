#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse
# How many round trips a start costs, by function: of libraries that the server never saw, and of those that
# this client has used before.
. "$(dirname "$0")/lib.sh"
requires mount python3
export SCUDAFS_SOFT_CAPABILITY=9.0 # clusters
start_server --cache "$work/cache"
start_mount

# IMAGES KIB NAME=COUNT...: exactly these, and nothing else but one cuInit, context and allocation, and a read
# for each launch
trips()
{
	local images=$1 kib=$2
	shift 2
	at_most 30 "$bin/scudafs" run --mount "$mnt" --stats="$work/stats.json" -- "$progs/opening" \
		"$images" "$kib" >"$work/out" || fail "opening $images $kib"
	grep -q right "$work/out" || fail "opening $images $kib: $(cat "$work/out")"
	python3 - "$work/stats.json" "$images" "$@" <<-'PY' || fail "opening $images $kib"
		import json, sys
		s = json.load(open(sys.argv[1]))
		want = {"cuInit": 1, "cuDevicePrimaryCtxRetain": 1, "cuMemAlloc_v2": 1,
			"cuMemcpyDtoH_v2": 2 * int(sys.argv[2])}
		want.update((k, int(v)) for k, v in (a.split("=") for a in sys.argv[3:]))
		if s["waits"] != want:
		    sys.exit(f"waited {s['waits']}, not {want}")
		print(f"{sys.argv[2]} libraries: {s['wait']} waits, {s['round_trips']} round trips")
	PY
}
trips 3 100 cuLibraryLoadData=3 cuLibraryGetKernel=3 cuOccupancyMaxActiveBlocksPerMultiprocessor=3 \
	cuOccupancyAvailableDynamicSMemPerBlock=3 cuOccupancyMaxActiveClusters=1 cuLaunchKernel=3
# What followed the first image is expected behind it.
trips 3 100 cuLibraryLoadData=1
# Small images as well; and of those that are expected, some do not come, and another one comes.
trips 4 3 cuLibraryLoadData=4 cuLibraryGetKernel=4 cuOccupancyMaxActiveBlocksPerMultiprocessor=4 \
	cuOccupancyAvailableDynamicSMemPerBlock=4 cuOccupancyMaxActiveClusters=1 cuLaunchKernel=4
trips 2 3 cuLibraryLoadData=1
trips 5 3 cuLibraryLoadData=2 cuLibraryGetKernel=1 cuOccupancyMaxActiveBlocksPerMultiprocessor=1 \
	cuOccupancyAvailableDynamicSMemPerBlock=1 cuLaunchKernel=1
trips 5 3 cuLibraryLoadData=1

# What a driver answers where a cache configuration was chosen is neither remembered beyond the choice nor
# told to others.
asks() # CONFIGURATION COUNT: of a run of `configured`: how often the server was asked about occupancy
{
	at_most 30 "$bin/scudafs" run --mount "$mnt" --stats="$work/stats.json" -- "$progs/configured" \
		"$1" >"$work/out" || fail "configured $1"
	grep -q right "$work/out" || fail "configured $1: $(cat "$work/out")"
	python3 -c 'import json, sys
n = json.load(open(sys.argv[1]))["waits"].get("cuOccupancyMaxActiveBlocksPerMultiprocessor", 0)
sys.exit(f"asked {n} times" if n != int(sys.argv[2]) else 0)' "$work/stats.json" "$2" || fail "configured $1"
}
asks 1 2
asks kernel 2
asks 0 2
asks 0 1
asks 1 2

# Damage: neither an expected image nor notes are believed then, and the next run is as before.
damage() # NAME...: a byte in the middle of each file
{
	local file
	for file; do
		printf X | dd of="$file" bs=1 seek=$(($(stat -c %s "$file") / 2)) conv=notrunc 2>/dev/null
	done
}
images() { find "$work/cache" -type f ! -name '*.notes' -size "$1"; }
runs_right()
{
	at_most 30 "$bin/scudafs" run --mount "$mnt" -- "$progs/opening" "$@" | grep -q right ||
		fail "opening $* after damage"
}
damage $(images +60k)
runs_right 3 100
trips 3 100 cuLibraryLoadData=1
damage $(find "$work/cache" -name '*.notes')
runs_right 3 100
runs_right 5 3
trips 3 100 cuLibraryLoadData=1
trips 5 3 cuLibraryLoadData=1

# Threads that do it at once, of images that are not known, and that are.
runs_right 6 4 8
runs_right 6 4 8
runs_right 3 100 8

# Another server's start says nothing of the devices that would make the notes another machine's.
stop_mount
stop_server
start_server --cache "$work/cache"
start_mount
trips 3 100 cuLibraryLoadData=1
