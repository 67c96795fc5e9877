#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every figure that the design promises, in one table of one run: goal, native, ours, ratio, reached or not;
# behind it the cost in processor time and in memory, which has no goal beside native but the idle session's.
# Under five minutes on a machine with a GPU; what is not measured is not in the table.
#
#     table.sh [micro] [torch] [network] [cost]       all unless named; network does the slow networks, of
#                                                     PyTorch only when torch is named too
#
# Variables as in lib.sh; TABLE_RTTS, milliseconds of the slow networks ("0.2 1 10 30"), TABLE_TORCH_RTTS ("1
# 10").
. "$(dirname "$0")/lib.sh"
parts=" ${*:-micro torch network cost} "
wants() { [[ $parts == *" $1 "* ]]; }
if ! "$python" -c 'import torch' 2>/dev/null; then
	! wants torch || echo "no PyTorch in $python: its rows are left out"
	parts=${parts/ torch / }
fi

keep() # NATIVE|OURS PREFIX FILE: values into the table
{
	[ ! -s "$3" ] || awk -v how="$1" -v prefix="$2" 'NF == 2 { print how, prefix $1, $2 }' "$3" \
		>>"$work/values"
}

measure_network
echo "native rtt_us $rtt" >"$work/values"
echo "native bw_gbs $bw" >>"$work/values"
bench_server
server_address=$address
start_mount
if wants micro; then
	native "$work/micro.native" 100 "$micro" full
	keep native "" "$work/micro.native"
	through "$work/micro" 100 "$micro" full
	keep ours "" "$work/micro"
	if [ -x "$B/tests/apps/vectoradd" ]; then
		# What a program of the runtime's waits for ahead of its first kernel.
		SCUDAFS_TRACE=$work/trace through "$work/vectoradd" 20 "$B/tests/apps/vectoradd"
		awk '
			$4 ~ /^cuLaunchKernel/ { exit }
			$3 == "wait" { n++ }
			END { print "ours waits_vectoradd_first_kernel", n + 0 }' "$work/trace" \
			>>"$work/values"
	fi
fi
if wants torch; then
	native "$work/torch.native" 90 "$python" "$framework"
	keep native "" "$work/torch.native"
	through "$work/torch" 120 "$python" "$framework"
	keep ours "" "$work/torch"
	why_it_waited "$work/torch.json"
fi
stop_mount
if wants network; then
	"$tools/tcp" serve 0 >"$work/echo.port" &
	at_exit stop $!
	within 5 test -s "$work/echo.port" || fail "tcp serve"
	native "$work/slow.native" 60 "$micro" slow
	! wants torch || native "$work/quick.native" 90 "$python" "$framework" --quick start resnet gpt2
	for ms in ${TABLE_RTTS:-0.2 1 10 30}; do
		delay=$(awk -v ms="$ms" 'BEGIN { printf "%d", ms * 500 }')
		start_proxy through "127.0.0.1:$(cat "$work/echo.port")" --delay-us "$delay"
		measure_network "$through"
		echo "ours net$ms/rtt_us $rtt" >>"$work/values"
		start_proxy address "$server_address" --delay-us "$delay"
		start_mount
		through "$work/slow" 60 "$micro" slow
		keep ours "net$ms/" "$work/slow"
		keep native "net$ms/" "$work/slow.native"
		if wants torch && [[ " ${TABLE_TORCH_RTTS:-1 10} " == *" $ms "* ]]; then
			through "$work/quick" 120 "$python" "$framework" --quick start resnet gpt2
			keep ours "net$ms/" "$work/quick"
			keep native "net$ms/" "$work/quick.native"
		fi
		stop_mount
		stop_proxies
	done
fi
if wants cost; then
	"$top/tests/bench/cost.sh" >"$work/cost" || echo "cost.sh: $(tail -n 1 "$work/cost")"
	awk 'NF == 3 { if ($2 != "-") print "native", $1, $2; print "ours", $1, $3 }' "$work/cost" \
		>>"$work/values"
fi

python3 - "$work/values" "${TABLE_RTTS:-0.2 1 10 30}" <<'PY'
import sys

native, ours = {}, {}
for line in open(sys.argv[1]):
    how, name, value = line.split()
    (native if how == "native" else ours)[name] = float(value)
rtt, bw = native["rtt_us"], native["bw_gbs"]
met = missed = 0


def row(label, name, goal=None, least=False, text=None, value=None):
    """`goal`: what ours may be at most, or at `least`."""
    global met, missed
    v = ours.get(name) if value is None else value
    if v is None:
        return
    n = native.get(name) if value is None else None
    ratio = f"{v / n:8.2f}" if n else f"{'-':>8}"
    verdict = ""
    if goal is not None:
        good = v >= goal if least else v <= goal
        met, missed = met + good, missed + (not good)
        verdict = "yes" if good else "NO"
    shown = text or (f"{'>=' if least else '<='} {goal:.4g}" if goal is not None else "")
    beside = n if n is not None else float("nan")
    line = f"{label:52} {shown:>20} {beside:>11.4g} {v:>11.4g} {ratio} {verdict}"
    print(line.replace("nan", "  -"))


def times(label, name, most, text=None):
    if name in native and name in ours:
        row(label, name, native[name] * most, text=text or f"<= {most} x native")


def lost(label, name, unit, most, ms):
    """Round trips lost against native."""
    key = f"net{ms}/{name}"
    if key in native and key in ours:
        trip = ours[f"net{ms}/rtt_us"]
        row(f"{label}, {trip / 1e3:.3g} ms away: round trips lost", key, most,
            value=(ours[key] - native[key]) * unit / trip)


print(f"round trip {rtt:.1f} us, one connection {bw:.2f} GB/s")
print(f"{'':52} {'goal':>20} {'native':>11} {'ours':>11} {'ratio':>8} reached")
row("launch, issue, us", "launch_issue_us", 2)
row("the same beside 5,000 allocations, 1,000 buffers", "launch_issue_beside_us", 2)
times("launch, rate, us each", "launch_rate_us", 1 / 0.9, ">= 0.9 of its rate")
for name in "launch_sync_us", "memgetinfo_us", "dtoh4_us":
    row(name.replace("_us", ", us"), name, rtt + 12, text=f"<= RTT + 12 = {rtt + 12:.0f}")
row("synchronize, nothing outstanding, us", "sync_idle_us", 2)
row("4 bytes to the device, us", "htod4_us", 2)
for way in "htod", "dtoh":
    for kind in "pageable", "pinned":
        row(f"256 MiB {way} {kind}, GB/s", f"{way}_{kind}_262144K_gbs", 0.9 * bw, True,
            f">= 0.9 BW = {0.9 * bw:.2f}")
for name, most in (("resnet50_b1", 0), ("resnet50_b64", 0), ("resnet50_b64_read", 1),
                   ("resnet50_train_b32", None), ("gpt2_token", 2),
                   ("graph_replay", 0), ("compiled_kernel", 0)):
    # A tenth: what happens once in a while is not of the steady state.
    row(f"round trips, {name}", "waits_" + name, None if most is None else most + 0.1,
        text="" if most is None else f"<= {most}")
times("ResNet-50 batch 1, ms", "resnet50_b1_ms", 1.10)
times("ResNet-50 batch 64, ms", "resnet50_b64_ms", 1.03)
row("ResNet-50 batch 64, copied in and out, ms", "resnet50_b64_hostio_ms")
times("ResNet-50 training batch 32, ms", "resnet50_train_b32_ms", 1.05)
times("GPT-2, one token, ms", "gpt2_token_ms", 1.15)
times("CUDA graph, replay, us", "graph_replay_us", 1.05)
times("kernel of torch.compile, us", "compiled_kernel_us", 1.15)
row("round trips to the first kernel, driver API", "waits_first_kernel", 8)
row("round trips to the first kernel, runtime", "waits_vectoradd_first_kernel", 8)
times("torch.cuda.is_available(), s", "torch_available_s", 1.3)
row("round trips to PyTorch's first result", "waits_torch_first_result", 60)
for ms in sys.argv[2].split():
    lost("4 bytes to the host", "dtoh4_us", 1, 1.15, ms)
    lost("launch and synchronize", "launch_sync_us", 1, 1.15, ms)
    lost("ResNet-50 b64, read", "resnet50_b64_read_ms", 1e3, 1.15, ms)
    lost("GPT-2 token", "gpt2_token_ms", 1e3, 2.3, ms)
    lost("PyTorch's first result", "torch_first_result_s", 1e6, 60, ms)
for who, name in (("library in the program", "memory_program_mib"), ("daemon", "memory_daemon_mib"),
                  ("server, without the driver", "memory_server_own_mib")):
    row(f"MiB an idle session: {who}", name, 8)
row("MiB an idle session: server's process", "memory_server_mib")
for what, unit in (("launch", "us"), ("launch_wait", "us"),
                   ("to_device", "s_per_gb"), ("to_host", "s_per_gb")):
    for who in "program", "daemon", "server":
        row(f"processor, {what}, {who}, {unit.replace('_per_gb', ' a GB')}", f"cpu_{what}_{who}_{unit}")
print(f"{met} reached, {missed} not")
PY
