# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the measuring scripts share, on top of tests/e2e/lib.sh: the programs natively and through the mount,
# each run's `name value` lines in a file; the network of the same run; tables. Variables: B; NATIVE_LIB, the
# folder of the native driver (empty: the system's, unset: the software device); SCUDAFS_TEST_DRIVER (auto on
# a GPU machine); SCUDAFS_BENCH_SERVER=HOST:PORT, a server that runs already; SCUDAFS_TEST_PYTHON, an
# interpreter with PyTorch.
. "$(dirname "${BASH_SOURCE[0]}")/../e2e/lib.sh"
requires mount
tools=$B/tests/bench
micro=$tools/micro
framework=$top/tests/bench/framework.py
python=${SCUDAFS_TEST_PYTHON:-python3}
[ -x "$micro" ] || skip "$micro is not built (make apps; needs NVIDIA's compiler)"
native_lib=${NATIVE_LIB-$lib/soft}

bench_server() # $address: what to mount
{
	if [ -n "${SCUDAFS_BENCH_SERVER:-}" ]; then
		address=$SCUDAFS_BENCH_SERVER
	else
		start_server
	fi
}

native() # FILE SECONDS COMMAND...
{
	local to=$1 limit=$2
	shift 2
	timeout -k 2 "$limit" env ${native_lib:+LD_LIBRARY_PATH="$native_lib"} "$@" >"$to" 2>"$to.err" \
		</dev/null ||
		echo "native ${*:1:3}: status $?: $(grep . "$to.err" | tail -n 1 | cut -c1-200)"
}

through() # FILE SECONDS COMMAND...; its calls are in FILE.json
{
	local to=$1 limit=$2
	shift 2
	timeout -k 2 "$limit" "$bin/scudafs" run --mount "$mnt" --stats="$to.json" -- "$@" >"$to" \
		2>"$to.err" </dev/null ||
		echo "through the mount ${*:1:3}: status $?: $(grep . "$to.err" | tail -n 1 | cut -c1-200)"
}

value() # FILE NAME
{
	awk -v n="$2" '$1 == n { print $2 }' "$1"
}

measure_network() # [ADDRESS]: of the loopback, or towards a `tcp serve`; sets $rtt (us) and $bw (GB/s)
{
	"$tools/tcp" ${1:+"${1%:*}" "${1##*:}"} >"$work/tcp" || fail "tcp"
	rtt=$(value "$work/tcp" rtt_us)
	bw=$(value "$work/tcp" bw_gbs)
}

# VARIABLE ADDRESS [ARGUMENT...]: sets the variable to the address of a proxy in front of ADDRESS
start_proxy()
{
	local into=$1 to=$2 port
	shift 2
	rm -f "$work/proxy.port"
	mkfifo "$work/proxy.port"
	"$tools/proxy" "$@" "$to" >"$work/proxy.port" 2>>"$work/proxy.log" &
	proxies+=($!)
	at_exit stop $!
	read -r -t 5 port <"$work/proxy.port" || fail "no proxy: $(tail -n 1 "$work/proxy.log")"
	printf -v "$into" '127.0.0.1:%s' "$port"
}
proxies=()

stop_proxies()
{
	local p
	for p in "${proxies[@]}"; do
		stop "$p" 2>/dev/null
	done
	proxies=()
}

why_it_waited() # FILE.json [MOST]: the functions that waited, most first
{
	python3 - "$1" "${2:-12}" <<-'PY'
		import json, sys
		try:
		    s = json.load(open(sys.argv[1]))
		except OSError as e:
		    sys.exit(f"(no counters: {e})")
		w = sorted(s["waits"].items(), key=lambda x: -x[1])
		print(f"{s['local'] + s['cached']} answered in the program, {s['post']} posted,",
		      f"{s['round_trips']} round trips:",
		      ", ".join(f"{n} {name}" for name, n in w[:int(sys.argv[2])]))
	PY
}
