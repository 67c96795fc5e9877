#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# On a GPU machine: nvidia-smi and nvidia-ml-py natively and through a mount, compared. usage: smi.sh [LOG
# FOLDER]. Variables: B (the build folder), PYTHON (one with torch and nvidia-ml-py). Prints one line a
# question and the lines that differ; volatile numbers are not compared.
set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-$PWD/build}
case $B in /*) ;; *) B=$PWD/$B ;; esac
PYTHON=${PYTHON:-python3}
out=${1:-${OUT:-/tmp/smi-out}}
work=$(mktemp -d)
mkdir -p "$out" "$work/m"
finish()
{
	"$B/bin/scudafs" umount "$work/m"
	kill "$server"
	wait "$server"
	rm -rf "$work"
}
"$B/bin/scuda-server" --listen 127.0.0.1:0 --ready-fd 3 3>"$work/port" 2>"$out/server.log" &
server=$!
trap finish EXIT
for _ in $(seq 200); do
	[ -s "$work/port" ] && break
	kill -0 "$server" || exit 1
	sleep 0.05
done
"$B/bin/scudafs" mount "127.0.0.1:$(head -n 1 "$work/port")" "$work/m" || exit 1

mounted()
{
	LD_LIBRARY_PATH=$B/lib SCUDAFS_MOUNT=$work/m timeout 30 "$@"
}

# What changes from second to second: times, watts, degrees, clocks, use, counters of traffic and energy.
mask()
{
	sed -E -e 's/[A-Z][a-z]{2} [A-Z][a-z]{2} +[0-9]+ [0-9:]{8} [0-9]{4}/DATE/' \
		-e 's/[0-9]+(\.[0-9]+)? ?(W|MHz|C|KB\/s|mJ|%|us)\b/N \2/g' -e 's/[0-9]+W \//N W \//' \
		-e '/^ *[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+ /s/[0-9]+/N/g' \
		-e 's/[0-9]{4}\/[0-9]{2}\/[0-9]{2} [0-9:.]+/DATE/' \
		-e 's/^( +(Tx|Rx) Throughput).*/\1/' -e 's/(tx_util|rx_util)>[^<]*/\1>/' -e 's/ +$//'
}

n=0 differ=0
compare() # ARGUMENT...
{
	local a b lines
	n=$((n + 1))
	timeout 30 nvidia-smi "$@" >"$work/native" 2>&1
	a=$?
	mounted nvidia-smi "$@" >"$work/mounted" 2>&1
	b=$?
	cp "$work/native" "$out/$n.native"
	cp "$work/mounted" "$out/$n.mounted"
	mask <"$work/native" >"$work/native.m"
	mask <"$work/mounted" >"$work/mounted.m"
	lines=$(diff -a "$work/native.m" "$work/mounted.m" | grep -a '^[<>]')
	echo "smi [$*]: exit $a/$b, $(wc -l <"$work/native")/$(wc -l <"$work/mounted") lines," \
		"differ $(echo -n "$lines" | grep -c '')"
	[ -z "$lines" ] && [ $a = $b ] || differ=$((differ + 1))
	[ -z "$lines" ] || echo "$lines" | head -n 14 | cut -c1-150
}
compare
compare -L
compare -q
compare -x -q
compare topo -m
compare dmon -c 2
compare pmon -c 1
display=ECC,CLOCK,POWER,TEMPERATURE,UTILIZATION,PIDS,ACCOUNTING
compare -q -d $display,PAGE_RETIREMENT,ROW_REMAPPER,SUPPORTED_CLOCKS
compare nvlink -s
compare --query-compute-apps=pid,name,used_memory --format=csv
compare --query-supported-clocks=mem,gr --format=csv
compare mig -lgip
echo "$n views, $differ differ"

# Round trips: the whole of -L, and what each further line of dmon costs.
waits() { cat "$work/m/stats/waits"; }
trips() # COMMAND...: the round trips of it
{
	local before
	before=$(waits)
	mounted "$@" >/dev/null 2>&1
	echo $(($(waits) - before))
}
short=$(trips nvidia-smi dmon -c 2) long=$(trips nvidia-smi dmon -c 6)
echo "round trips: -L $(trips nvidia-smi -L), the default view $(trips nvidia-smi)," \
	"each line of dmon $(awk "BEGIN { print ($long - $short) / 4 }")"
echo "of 6 lines of dmon, asked in one round trip:" \
	"$(SCUDAFS_LOG=debug mounted nvidia-smi dmon -c 6 2>&1 | grep -ac 'questions are asked with')"
slots=$(SCUDAFS_LOG=info mounted nvidia-smi -q 2>&1 | grep -ao 'slot [0-9]* of' |
	sort | uniq -c | tr '\n' ';')
echo "slots of the private table that are asked and not known: $slots"
mounted nvidia-smi -i 0 -pl 500
echo "power limit through the mount: exit $? (refused: 4 is natively 'no permission')"

nvidia-smi --help-query-gpu | grep -oE '^"[^"]+"' | tr -d '"' | sort -u >"$out/fields"
# The help names some that a query does not know: those are left out.
for _ in $(seq 20); do
	fields=$(paste -sd, "$out/fields")
	nvidia-smi --query-gpu="$fields" --format=csv >"$work/native"
	wrong=$(grep -aoP 'Field "\K[^"]+(?=" is not a valid)' "$work/native") || break
	grep -vxF "$wrong" "$out/fields" >"$work/fields" && mv "$work/fields" "$out/fields"
done
mounted nvidia-smi --query-gpu="$fields" --format=csv >"$work/mounted"
$PYTHON - "$work/native" "$work/mounted" <<'P'
import re, sys
a, b = (open(f).read().splitlines() for f in sys.argv[1:])
if len(a) < 2 or len(b) < 2:
    sys.exit(f"query-gpu: {a[:2]} {b[:2]}")
names, x, y = (line.split(", ") for line in (a[0], a[1], b[1]))
number = re.compile(r"[-+]?[0-9.]+")
rows = [(n, p, q) for n, p, q in zip(names, x, y) if p != q]
kind = [r for r in rows if number.sub("N", r[1]) != number.sub("N", r[2]) and r[0] != "timestamp"]
print(f"query-gpu: {len(names)} fields, {len(names) - len(rows)} equal,",
      f"{len(rows) - len(kind)} other numbers, {len(kind)} of another kind")
for r in rows[:24]:
    print("  ", *r, sep=" | ")
P

# nvidia-ml-py, natively and mounted.
if "$PYTHON" -c 'import pynvml' 2>/dev/null; then
	timeout 40 "$PYTHON" tests/e2e/progs/nvml_getters.py >"$out/getters.native" 2>/dev/null
	mounted "$PYTHON" tests/e2e/progs/nvml_getters.py >"$out/getters.mounted" 2>"$out/getters.err"
	echo "getters: $(wc -l <"$out/getters.native")/$(wc -l <"$out/getters.mounted") calls," \
		"differ $(diff -a "$out/getters.native" "$out/getters.mounted" | grep -a -c '^<')"
	diff -a "$out/getters.native" "$out/getters.mounted" | grep -a '^[<>]' | cut -c1-140 | head -n 30
fi

# Who computes, while a program does; and what torch asks.
cat >"$work/job.py" <<'P'
import time
import torch
x = torch.randn(4000, 4000, device="cuda")
end = time.time() + 9
while time.time() < end:
    x = x @ x * 1e-3
torch.cuda.synchronize()
P
if "$PYTHON" -c 'import torch' 2>/dev/null; then
	LD_LIBRARY_PATH=$B/lib SCUDAFS_MOUNT=$work/m timeout 60 "$PYTHON" "$work/job.py" &
	job=$!
	for _ in $(seq 300); do
		[ -s "$work/m/gpu0/sessions" ] && break
		sleep 0.1
	done
	echo "job $job:"
	mounted nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv
	mounted nvidia-smi | tail -n 4
	mounted nvidia-smi pmon -c 1 | tail -n 1
	echo "tree: $(cat "$work/m/gpu0/sessions")"
	mounted "$PYTHON" -c 'import torch
print("torch", torch.cuda.device_count(), torch.cuda.utilization(), torch.cuda.temperature(),
      torch.cuda.power_draw(), torch.cuda.clock_rate())
print(torch.cuda.list_gpu_processes())'
	wait "$job"
	echo "job: exit $?"
fi
values="utilization temperature power clocks pcie ecc minor_number vbios_version serial mode"
for f in $(cd "$work/m/gpu0" && find $values -type f 2>/dev/null)
do
	echo "$f $(cat "$work/m/gpu0/$f")"
done | paste -sd ';'
cat "$work/m/gpu0/information"
tail -n 3 "$out/server.log"
