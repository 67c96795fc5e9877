#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""second.py PORT HOW BYTES [first|back]: a relay to the server at PORT that does to second connections
(wire/frame.h), or to the one of sessions' first ones that comes so far, what HOW says, once BYTES of one have
passed to the server, or, with "back", to the mount:
"pass", "cut" (both ends are closed), "reset" (the mount's end is reset), "swallow" (nothing passes in
that direction any more, and nobody is told), "devour" (the same, but all that comes is taken). Prints its own
port, "second" for each second connection, and "there" when BYTES of one have passed; ends after ten minutes
at the latest."""
import socket
import struct
import sys
import threading
import time

from wire import MONITOR, SECOND


FIRST = sys.argv[4:] == ["first"]
BACK = sys.argv[4:] == ["back"]
once = threading.Semaphore(1)


def pump(source, sink, most, how):
    """True when `most` bytes have passed."""
    try:
        while most and (data := source.recv(min(most, 65536))):
            sink.sendall(data)
            most -= len(data)
            if not most and FIRST and not once.acquire(blocking=False):
                most = 1 << 62
    except OSError:
        pass
    if not most:
        print("there", flush=True)
    try:
        while not most and how == "devour" and source.recv(65536):
            pass
    except OSError:
        pass
    if not most and how == "swallow":
        time.sleep(600)
    return not most


def connection(client, port, how, most):
    server = socket.create_connection(("127.0.0.1", port))
    start = b""
    while len(start) < 24 and (part := client.recv(24 - len(start))):
        start += part
    server.sendall(start)
    second = len(start) == 24 and start[5] & SECOND
    for s in (client, server):
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if second:
        print("second", flush=True)

    chosen = len(start) == 24 and not start[5] & MONITOR if FIRST else second
    limit = most if chosen and how != "pass" else 1 << 62

    def one_way(source, sink, limit):
        if pump(source, sink, limit, how) and how == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.close()
        for s in (client, server):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    threading.Thread(target=one_way, args=(server, client, limit if BACK else 1 << 62), daemon=True).start()
    one_way(client, server, 1 << 62 if BACK else limit)


def main():
    port, how, most = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)

    def accept():
        while True:
            client, _ = listener.accept()
            threading.Thread(target=connection, args=(client, port, how, most), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    time.sleep(600)


main()
