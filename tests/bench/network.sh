#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a longer network costs: micro and PyTorch programs natively, and through a mount whose server is
# behind a proxy that delays every byte (proxy.c). Each table says what the proxied network itself gave in
# that run, and how many of its round trips a step loses against native; a goal is in round trips, or in
# microseconds where a call must not wait at all.
#
#     network.sh [micro] [torch]      both unless named
#
# Variables, beside those of lib.sh: RTTS, milliseconds for micro ("0.2 1 10 30"); TORCH_RTTS ("1 10"); RATE,
# bytes a second (unlimited). With processors enough the proxy never sleeps: a network has no thread to wake.
. "$(dirname "$0")/lib.sh"
rtts=${RTTS:-0.2 1 10 30}
torch_rtts=${TORCH_RTTS:-1 10}
parts=" ${*:-micro torch} "
busy=
[ "$(nproc)" -lt 8 ] || busy=yes
if ! "$python" -c 'import torch' 2>/dev/null; then
	[[ $parts != *" torch "* ]] || echo "no PyTorch in $python: left out"
	parts=${parts/ torch / }
fi

losses() # NATIVE OURS: a line for each value of ours
{
	awk -v rtt="$rtt" '
		BEGIN {
			printf "%-28s %12s %12s %8s %10s %8s\n",
				"", "native", "ours", "ratio", "lost RTTs", "goal"
		}
		function goal(name) {
			if (name ~ /^(launch_sync_us|memgetinfo_us|dtoh4_us|resnet50_b64_read_ms)$/)
				return 1.15
			if (name == "gpt2_token_ms") return 2.3
			if (name == "torch_first_result_s") return 60
			if (name ~ /^(launch_issue_us|sync_idle_us|event_query_us|htod4_us)$/) return "2 us"
			return ""
		}
		FILENAME == ARGV[1] { native[$1] = $2; next }
		{
			k = $1; v = $2; g = goal(k); lost = ratio = mark = "-"
			unit = k ~ /_us$/ ? 1 : k ~ /_ms$/ ? 1e3 : k ~ /_s$/ ? 1e6 : 0
			if (k in native && native[k] > 0) ratio = sprintf("%.2f", v / native[k])
			if (k in native && unit) lost = sprintf("%.2f", (v - native[k]) * unit / rtt)
			if (g == "") mark = ""
			else if (g == "2 us") mark = v <= 2 ? "ok" : "missed"
			else if (lost != "-") mark = lost <= g ? "ok" : "missed"
			printf "%-28s %12s %12s %8s %10s %8s %s\n", k, (k in native) ? native[k] : "-", v,
				ratio, lost, g, mark
		}' "$1" "$2"
}

one() # RTT: the parts whose list has it
{
	local ms=$1 through delay
	delay=$(awk -v ms="$ms" 'BEGIN { printf "%d", ms * 500 }')
	set -- --delay-us "$delay" ${RATE:+--rate "$RATE"} ${busy:+--busy}
	start_proxy through "$echo_address" "$@"
	measure_network "$through"
	start_proxy address "$server_address" "$@"
	start_mount
	echo "== $ms ms asked for: round trip $rtt us, one connection $bw GB/s"
	[[ $parts != *" micro "* || " $rtts " != *" $ms "* ]] || {
		through "$work/micro" 100 "$micro" slow
		losses "$work/micro.native" "$work/micro"
	}
	[[ $parts != *" torch "* || " $torch_rtts " != *" $ms "* ]] || {
		through "$work/torch" 150 "$python" "$framework" --quick start resnet gpt2
		losses "$work/torch.native" "$work/torch"
		why_it_waited "$work/torch.json"
	}
	stop_mount
	stop_proxies
}

bench_server
server_address=$address
"$tools/tcp" serve 0 >"$work/echo.port" &
at_exit stop $!
within 5 test -s "$work/echo.port" || fail "tcp serve"
echo_address=127.0.0.1:$(cat "$work/echo.port")
[[ $parts != *" micro "* ]] || native "$work/micro.native" 60 "$micro" slow
[[ $parts != *" torch "* ]] || {
	native "$work/torch.native" 120 "$python" "$framework" --quick start resnet gpt2
	start_mount
	through "$work/start" 60 "$python" "$framework" start
	echo "== PyTorch to its first result: $(why_it_waited "$work/start.json" 40)"
	stop_mount
}
for ms in $(printf '%s\n' $rtts $torch_rtts | sort -nu); do
	one "$ms"
done
