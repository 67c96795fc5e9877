#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Another user's try at the socket at the path given: to look at it, connect to it, take it away, put another
in its place. Prints what worked, a line each: "seen", "connected", "descriptors N", "removed", "renamed",
"bound", ...; nothing when nothing did."""
import os
import socket
import sys

path = sys.argv[1]


def works(word, what):
    try:
        what()
        print(word, flush=True)
    except OSError:
        pass


def connect():
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(5 * int(os.environ.get("SLOW", "1")))
        s.connect(path)
        print("connected", flush=True)
        _, fds, _, _ = socket.recv_fds(s, 1, 4)
        if fds:
            print("descriptors", len(fds), flush=True)


def bind(at):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.bind(at)


works("seen", lambda: os.stat(path))
works("spoken with", connect)
works("removed", lambda: os.unlink(path))
works("renamed", lambda: os.rename(path, path + ".old"))
works("bound", lambda: bind(path))
works("bound another", lambda: bind(os.path.dirname(path) + "/99999.channel"))
works("made", lambda: os.mknod(os.path.dirname(path) + "/99998.channel", 0o140666))
works("linked", lambda: os.symlink("/tmp/elsewhere", os.path.dirname(path) + "/99997.channel"))
