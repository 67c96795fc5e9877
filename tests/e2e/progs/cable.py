#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A bad cable between two network namespaces, for machines whose kernel has no netem.

cable.py NAMESPACE-PID ADDRESS PEER-NAMESPACE-PID PEER-ADDRESS DELAY-MS JITTER-MS LOSS-PERCENT [SEED]

Makes a tun device in each namespace, with the addresses given (both in one /24), and carries packets between
them: each waits DELAY-MS and up to JITTER-MS more, so that packets overtake each other, and LOSS-PERCENT of
them vanish. Says "carrying" when it does, and ends at the end of its standard input, with the counts of what
it carried, dropped, and delivered out of order. One thread."""

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
libc = ctypes.CDLL(None, use_errno=True)


def enter(pid):
    with open(f"/proc/{pid}/ns/net") as f:
        if libc.setns(f.fileno(), 0):
            sys.exit(f"setns: {os.strerror(ctypes.get_errno())}")


def tun(pid, address, name):
    enter(pid)
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    subprocess.run(["ip", "addr", "add", f"{address}/24", "dev", name], check=True)
    subprocess.run(["ip", "link", "set", name, "up", "mtu", "1500"], check=True)
    return fd


def main():
    pid, address, peer_pid, peer_address, delay, jitter, loss = sys.argv[1:8]
    rng = random.Random(int(sys.argv[8]) if len(sys.argv) > 8 else 1)
    ends = [tun(pid, address, "cable0"), tun(peer_pid, peer_address, "cable1")]
    delay, jitter, loss = float(delay) / 1000, float(jitter) / 1000, float(loss) / 100
    waiting = []  # (when, number, to, packet)
    number = dropped = overtaken = 0
    last = [0, 0]
    print("carrying", flush=True)
    while True:
        timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for fd in select.select([*ends, 0], [], [], timeout)[0]:
            if fd == 0:
                print(f"carried {number} dropped {dropped} overtaken {overtaken}", flush=True)
                return
            packet = os.read(fd, 65536)
            if rng.random() < loss:
                dropped += 1
                continue
            number += 1
            when = time.monotonic() + delay + rng.random() * jitter
            heapq.heappush(waiting, (when, number, 1 - ends.index(fd), packet))
        while waiting and waiting[0][0] <= time.monotonic():
            _, n, to, packet = heapq.heappop(waiting)
            overtaken += n < last[to]
            last[to] = max(last[to], n)
            try:
                os.write(ends[to], packet)
            except OSError:
                dropped += 1


main()
