#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A server that is none of ours, on a free loopback port that it prints: `silent` accepts and never answers,
`http` answers everything with an HTTP error, `random` with random bytes, `closing` closes at once. Ends when
it is killed, or after two minutes."""
import os
import socket
import sys
import threading
import time


def serve(how, peer):
    try:
        if how == "closing":
            peer.close()
            return
        while peer.recv(4096):
            if how == "http":
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            elif how == "random":
                peer.sendall(os.urandom(4096))
    except OSError:
        pass


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    end = time.monotonic() + 120
    listener.settimeout(1)
    while time.monotonic() < end:
        try:
            peer, _ = listener.accept()
        except TimeoutError:
            continue
        threading.Thread(target=serve, args=(sys.argv[1], peer), daemon=True).start()


main()
