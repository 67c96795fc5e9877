#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One table, measured in one run: what a call costs natively, through the mount, and the ratio; beside it the
# round trip and the bandwidth of the network of the same run, and the goals that design and README promise
# in those terms. `bench.sh quick` takes a tenth of the time. Variables as in lib.sh.
. "$(dirname "$0")/lib.sh"
how=${1:-full}
measure_network
native "$work/native" 150 "$micro" "$how"
bench_server
start_mount
through "$work/ours" 150 "$micro" "$how"

echo "network of this run: round trip $rtt us, one connection $bw GB/s"
awk -v rtt="$rtt" -v bw="$bw" '
	function goal(name) {
		if (name == "launch_issue_us" || name == "launch_issue_beside_us") return 2
		if (name == "sync_idle_us" || name == "event_query_us" || name == "htod4_us") return 2
		if (name == "launch_sync_us" || name == "memgetinfo_us" || name == "dtoh4_us") return rtt + 12
		if (name == "waits_first_kernel") return 8
		if (name ~ /_262144K_gbs$/) return 0.9 * bw
		return ""
	}
	FILENAME == ARGV[1] { native[$1] = $2; next }
	{ ours[$1] = $2; order[++n] = $1 }
	BEGIN { printf "%-28s %12s %12s %8s %10s\n", "", "native", "ours", "ratio", "goal" }
	END {
		for (i = 1; i <= n; i++) {
			k = order[i]; g = goal(k); mark = ""
			if (g != "")
				mark = (k ~ /_gbs$/ ? ours[k] >= g : ours[k] <= g) ? "ok" : "missed"
			r = (k in native) && native[k] > 0 ? sprintf("%.2f", ours[k] / native[k]) : "-"
			printf "%-28s %12s %12s %8s %10s %s\n", k, (k in native) ? native[k] : "-",
				ours[k], r, g == "" ? "" : sprintf("%.2f", g), mark
		}
		if (!n)
			exit 1
	}' "$work/native" "$work/ours" ||
		fail "nothing was measured through the mount: $(cat "$work/ours.err")"
