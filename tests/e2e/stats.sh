#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# also: fuse
# scudafs run --stats counts every call once, in the class in which it was answered, however the program
# ends; the tree's own counters agree; a trace has a line for each call.
. "$(dirname "$0")/lib.sh"
requires mount python3
start_server
start_mount
# From now on the server tells the function with its module.
run_program counted 10 return || fail "the first run"

# The counters of the tree, as words.
tree() { echo $(cat "$mnt/stats/waits" "$mnt/stats/posts" "$mnt/stats/bytes_out"); }

counted() # STATUS LAUNCHES SYNCHRONIZATIONS WAITED PROCESSES HOW: of 1,000 launches a thread
{
	local before got
	before=$(tree)
	"$bin/scudafs" run --mount "$mnt" --stats="$work/stats.json" -- "$progs/counted" 1000 "$6" \
		2>"$work/err"
	got=$?
	[ "$got" = "$1" ] || fail "$6: status $got, not $1: $(cat "$work/err")"
	python3 - "$work/stats.json" "$2" "$3" "$4" "$5" $before $(tree) \
		<<-'PY' || fail "$6: $(cat "$work/stats.json")"
		import json, sys
		s = json.load(open(sys.argv[1]))
		launches, syncs, waited, processes, *tree = map(int, sys.argv[2:])
		programs = 2 if launches == 1001 else 1
		once = ["cuInit", "cuDevicePrimaryCtxRetain", "cuModuleLoadData", "cuMemAlloc_v2"]
		every = once + ["cuDeviceGet", "cuCtxSetCurrent", "cuModuleGetFunction"]
		calls = {name: programs for name in every}
		calls.update(cuLaunchKernel=launches, cuCtxSynchronize=syncs)
		if launches == 5000:
		    calls["cuCtxSetCurrent"] = 5
		assert s["calls"] == calls, calls
		# Whether a module tells its functions, which are taken by a post then, depends on what the
		# server remembers of it.
		assert s["post"] == launches + programs - s["waits"].get("cuModuleGetFunction", 0)
		assert s["waits"].pop("cuCtxSynchronize") == waited
		assert set(s["waits"]) <= set(once + ["cuModuleGetFunction"]), s["waits"]
		assert s["waits"]["cuInit"] == programs, s["waits"]
		assert s["wait"] == sum(s["waits"].values()) + waited
		assert s["local"] + s["cached"] + s["post"] + s["wait"] == sum(calls.values())
		assert len(s["processes"]) == processes and s["processes"][0]["command"] == "counted"
		for k in "local", "cached", "post", "wait", "round_trips", "bytes_out", "bytes_in":
		    assert s[k] == sum(p[k] for p in s["processes"]), k
		waits, posts, out = (b - a for a, b in zip(tree[:3], tree[3:]))
		assert waits == s["round_trips"], (waits, s["round_trips"])
		assert posts == s["post"]
		beats = out - s["bytes_out"]        # the daemon's own: heartbeats, frames without head
		assert beats >= 0 and beats % 40 == 0 and beats < 40 * 20, beats
	PY
}
counted 0 1000 2 1 1 return
counted 0 1000 2 1 1 exit
counted 0 1000 2 1 1 _exit
counted 134 1000 2 1 1 abort
counted 137 1000 2 1 1 kill
counted 0 1000 3 1 2 fork
counted 0 1001 4 2 1 exec
counted 0 5000 3 2 1 threads

# Both libraries, and the private tables, of which what they call is counted. The child has calls of NVML
# only.
run_program monitored || fail "the first run"
before=$(tree)
"$bin/scudafs" run --mount "$mnt" --stats="$work/stats.json" -- "$progs/monitored" || fail "monitored"
python3 - "$work/stats.json" $before $(tree) <<-'PY' || fail "monitored: $(cat "$work/stats.json")"
	import json, sys
	s = json.load(open(sys.argv[1]))
	tree = list(map(int, sys.argv[2:]))
	child = {"nvmlInit_v2": 1, "nvmlDeviceGetCount_v2": 3, "nvmlDeviceGetHandleByIndex_v2": 1,
	         "nvmlDeviceGetPowerUsage": 2, "nvmlShutdown": 1}
	parent = {"cuInit": 1, "cuDeviceGet": 1, "cuDevicePrimaryCtxRetain": 1, "cuCtxSetCurrent": 1,
	          "cuModuleLoadData": 1, "cuGetExportTable": 1, "cuCtxGetId": 5, "nvmlInit": 1,
	          **child, "nvmlShutdown": 2}
	processes = sorted(s["processes"], key=lambda p: -len(p["calls"]))
	assert [p["calls"] for p in processes] == [parent, child]
	assert s["calls"] == {name: n + child.get(name, 0) for name, n in parent.items()}
	waits = [{n: v for n, v in p["waits"].items() if n.startswith("nvml")} for p in processes]
	assert waits[0] == {"nvmlInit": 1, "nvmlDeviceGetCount_v2": 1, "nvmlDeviceGetPowerUsage": 2}, waits[0]
	once = dict.fromkeys(("nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetPowerUsage"), 1)
	assert waits[1] == once, waits[1]
	assert [p["local"] for p in processes][1] == 2          # after nvmlShutdown, and that
	assert [p["cached"] for p in processes][1] == 3
	for p in processes:
	    assert sum(p[k] for k in ("local", "cached", "post", "wait")) == sum(p["calls"].values())
	    assert p["command"] == "monitored" and p["bytes_in"] > 40 * p["round_trips"] > 0
	assert tree[3] - tree[0] == s["round_trips"], (tree, s["round_trips"])
	beats = tree[5] - tree[2] - s["bytes_out"]      # as above
	assert beats >= 0 and beats % 40 == 0 and beats < 40 * 20, beats
PY
SCUDAFS_TRACE=$work/both run_program monitored || fail "monitored, traced"
[ "$(grep -c ' wait nvmlDeviceGetPowerUsage NVML_ERROR_NOT_SUPPORTED ' "$work/both")" = 3 ] ||
	fail "NVML in the trace"
[ "$(grep -c ' local nvmlDeviceGetPowerUsage NVML_ERROR_UNINITIALIZED ' "$work/both")" = 1 ] ||
	fail "NVML's refusals"
[ "$(grep -c ' cuCtxGetId CUDA_SUCCESS ' "$work/both")" = 5 ] || fail "the private table in the trace"
[ "$(wc -l <"$work/both")" = 29 ] || fail "$(wc -l <"$work/both") lines in the trace of both"

# A table; the command's own status and streams; nothing is left behind.
"$bin/scudafs" run --mount "$mnt" --stats -- "$progs/counted" 1000 return 2>"$work/table"
grep -qE '^ +0 +0 +1000 +0 cuLaunchKernel$' "$work/table" || fail "the table: $(cat "$work/table")"
"$bin/scudafs" run --mount "$mnt" --stats="$work/stats.json" -- sh -c 'exit 7'
[ $? = 7 ] || fail "the command's status is not told"
grep -q '"wait": 0' "$work/stats.json" || fail "a program without CUDA: $(cat "$work/stats.json")"
"$bin/scudafs" run --mount "$mnt" --stats="$work/no/folder" -- true 2>"$work/err"
[ $? = 125 ] || fail "a file that cannot be written is no failure"
XDG_RUNTIME_DIR=$work "$bin/scudafs" run --server "$address" --stats="$work/stats.json" -- "$progs/counted" \
	10 return || fail "in a private mount"
grep -q '"cuLaunchKernel": 10' "$work/stats.json" || fail "in a private mount: $(cat "$work/stats.json")"
[ -z "$(find "$work" -mindepth 1 -name 'scudafs-*')" ] ||
	fail "left behind: $(find "$work" -mindepth 1 -name 'scudafs-*')"

SCUDAFS_TRACE=$work/trace run_program counted 1000 fork || fail "traced"
[ "$(grep -cE '^[0-9]+\.[0-9]{9} [0-9]+ post cuLaunchKernel CUDA_SUCCESS [0-9]+\.[0-9]{3}$' "$work/trace")" \
	= 1000 ] ||
	fail "launches in the trace: $(grep -c cuLaunchKernel "$work/trace")"
[ "$(grep -c ' wait cuCtxSynchronize CUDA_SUCCESS ' "$work/trace")" = 1 ] || fail "waits in the trace"
[ "$(grep -c ' local cuCtxSynchronize CUDA_ERROR_NOT_INITIALIZED ' "$work/trace")" = 1 ] ||
	fail "the child in the trace"
[ "$(wc -l <"$work/trace")" = 1010 ] || fail "$(wc -l <"$work/trace") lines in the trace"

# What is traced goes into the trace, or nowhere: not into a file of the program's that has its descriptor's
# number.
SCUDAFS_TRACE=$work/closed run_program counted 10 close || fail "a program that closes all descriptors"
grep -q ' cuMemAlloc_v2 CUDA_SUCCESS ' "$work/closed" || fail "no trace before the close"
