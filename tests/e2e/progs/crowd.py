# SPDX-License-Identifier: Apache-2.0
"""Many connections at once. `crowd.py PORT idle N`: N connections that send nothing; says "idle" and then how
many the server ended within 10 s (times SLOW). `crowd.py PORT sessions N`: N sessions that only say PING;
tells how many were taken and with which code the others were refused. `crowd.py PORT silent N`: N monitor
connections that never begin their TLS handshake, 50 a second; says "silent" and stays until its input
ends."""
import select
import socket
import sys
import time

from wire import HEADER, MONITOR, PING, SLOW, TLS, frame, preamble

PONG, BYE = 7, 12
port, what, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])


def connect():
    return socket.create_connection(("127.0.0.1", port), timeout=10 * SLOW)


def answer(s):
    data = b""
    while len(data) < HEADER.size:
        more = s.recv(4096)
        if not more:
            return None
        data += more
    kind, head = data[4], data[HEADER.size:]
    if kind == BYE and head[1:2] == b"\xcd":
        return int.from_bytes(head[2:4], "big")
    return "taken" if kind == PONG else kind


if what == "idle":
    crowd = [connect() for _ in range(count)]
    print("idle", flush=True)
    left, end = set(crowd), time.monotonic() + 10 * SLOW
    while left and time.monotonic() < end:
        for s in select.select(list(left), [], [], 0.5)[0]:
            try:
                gone = not s.recv(100)
            except OSError:
                gone = True
            if gone:
                left.discard(s)
    print("ended", count - len(left), flush=True)
elif what == "silent":
    crowd = []
    for _ in range(count):
        crowd.append(connect())
        crowd[-1].sendall(preamble(TLS | MONITOR))
        time.sleep(0.02)
    print("silent", flush=True)
    sys.stdin.readline()
else:
    crowd, live, result, pinged = [], [], {}, time.monotonic()
    for _ in range(count):
        s = connect()
        crowd.append(s)
        s.sendall(preamble() + frame(PING, thread=0, seq=0))
        a = answer(s)
        result[a] = result.get(a, 0) + 1
        if a == "taken":
            live.append(s)
        if time.monotonic() - pinged > 2:  # as a mount does; the first would be silent for too long else
            pinged = time.monotonic()
            for other in live:
                other.sendall(frame(PING, thread=0, seq=0))
    print(" ".join(f"{k}:{v}" for k, v in sorted(result.items(), key=str)), flush=True)
    sys.stdin.readline()
