#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where the time of one launch and of one synchronization goes: marks that the program, the mount and the
# server make by the clock of this machine (wire/hops.h) while a program does the two in turn. Medians and
# tenths, microseconds, of the time since the place before. Variables as in lib.sh; the mount's way to the
# program (SCUDAFS_CHANNEL) is the one of the environment.
. "$(dirname "$0")/lib.sh"
export SCUDAFS_HOPS=$work/hops
mkdir "$SCUDAFS_HOPS"
[ -z "${SCUDAFS_BENCH_SERVER:-}" ] || skip "the server has to be on this machine"
start_server
start_mount
measure_network
through "$work/steps" 60 "$tools/cost" steps
python3 - "$SCUDAFS_HOPS" "$rtt" "$top/wire/hops.h" <<'PY'
import glob, statistics, struct, sys

names = [line.split(",")[0].split("=")[0].strip() for line in open(sys.argv[3]) if line.startswith("\tHOP_")]
places = {i + 1: n[4:].lower().replace("_", " ") for i, n in enumerate(names)}
records = {}
for path in glob.glob(sys.argv[1] + "/*"):
    with open(path, "rb") as f:
        for ns, record, hop, _ in struct.iter_unpack("<QQII", f.read()):
            if hop:
                # The first one counts: what a place sees again is a repetition, but for what is sent.
                records.setdefault(record, {}).setdefault(hop, ns)
what = {"launch": [], "synchronization": []}
seqs = sorted(records)
for seq in seqs[len(seqs) // 3:]:
    marks = records[seq]
    if 1 in marks and len(marks) >= 6:
        what["synchronization" if 11 in marks else "launch"].append(marks)
who = {"call": "", "queued": "library: encode, number",
       "mount taken": "to the mount: memory or kernel, a thread that wakes", "mount sent": "mount: send",
       "server taken": "network, a thread that wakes", "serve": "server: order, thread, context",
       "served": "decode, driver, encode", "server sent": "server: send",
       "mount heard": "network, a thread that wakes", "mount given": "mount: hand over",
       "back": "to the program: a thread that wakes",
       "return": "library: take over"}
print(f"round trip of the network {float(sys.argv[2]):.1f} us")
for name, list_ in what.items():
    if not list_:
        print(f"no {name} was seen")
        continue
    head = f"{name} ({len(list_)}):" + " " * (30 - len(name))
    print(head + "median     10 %     90 %   since the place before")
    order = [h for h in places if sum(h in m for m in list_) > len(list_) // 2]
    # A launch returns when it is queued: what follows goes on behind it.
    for h in sorted(order, key=lambda h: statistics.median(m[h] - m[1] for m in list_ if h in m)):
        if h == 1:
            before = h
            continue
        d = sorted((m[h] - m[before]) / 1e3 for m in list_ if h in m and before in m)
        tenth = len(d) // 10
        print(f"  {places[h]:30} {d[len(d) // 2]:10.2f} {d[tenth]:8.2f} {d[len(d) * 9 // 10]:8.2f}  ",
              who[places[h]])
        before = h
    for title, a, b in (("program, in all", 1, 12), ("first to last place", 1, before)):
        d = sorted((m[b] - m[a]) / 1e3 for m in list_ if a in m and b in m)
        if d:
            print(f"  {title:30} {d[len(d) // 2]:10.2f} {d[len(d) // 10]:8.2f} {d[len(d) * 9 // 10]:8.2f}")
PY
