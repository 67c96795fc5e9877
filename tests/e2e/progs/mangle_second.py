# SPDX-License-Identifier: Apache-2.0
"""For mangle.py: what passes by a session's second connection (wire/frame.h), one way. By TCP that is
stripes; by a unix socket, a descriptor of memory, and words that say how much of it has been taken."""
import fcntl
import os
import socket
import sys

from wire import ODD, damage_bytes

WORDS = (16 << 30, 256 << 20, *ODD)
SEALS = 2 | 4  # F_SEAL_SHRINK, F_SEAL_GROW


def receive(s):
    if s.family != socket.AF_UNIX:
        return bytearray(s.recv(65536)), []
    data, fds, _, _ = socket.recv_fds(s, 65536, 4)
    return bytearray(data), fds


def send(s, data, fds):
    if fds and data:
        data = data[socket.send_fds(s, [data], fds):]
    s.sendall(data)


def other_memory(rng, size):
    """Memory that nobody ought to take, or with nothing in it."""
    how = rng.randrange(4)
    if how == 0:
        return os.open("/dev/zero", os.O_RDWR)
    fd = os.memfd_create("mangled", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size if how < 3 else rng.choice((1, 4096, size - 1, size + 4096)))
    if how > 1:
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, SEALS)
    return fd


def damaged_fds(rng, fds):
    """In place of descriptors; those that are left out are closed."""
    how = rng.randrange(4)
    if how == 0:
        return fds
    if how == 1:
        return fds * 2
    size = os.fstat(fds[0]).st_size
    for fd in fds:
        os.close(fd)
    return [] if how == 2 else [other_memory(rng, size)]


def damaged(rng, data):
    how = rng.randrange(7)
    if how < 3 and len(data) >= 8:
        at = rng.randrange(len(data) // 8) * 8
        was = int.from_bytes(data[at:at + 8], "little")
        word = rng.choice((rng.choice(WORDS), was + 1, was - 1, rng.getrandbits(64)))
        data[at:at + 8] = (word % (1 << 64)).to_bytes(8, "little")
        return data
    if how == 3:
        return data[: rng.randrange(len(data))]
    if how == 4:
        return data + rng.randbytes(rng.choice((1, 8, 5000)))
    if how == 5:
        return data + data
    damage_bytes(rng, data)
    return data


def pump_second(source, sink, rng, name):
    """With the generator, what has come by some byte is damaged, and, half of the time, it ends there."""
    local = source.family == socket.AF_UNIX
    left = int(2 ** rng.uniform(0, 12 if local else 23)) if rng else -1
    try:
        while True:
            data, fds = receive(source)
            if not data:
                return
            bad = rng is not None and left <= len(data)
            left -= len(data)
            if bad:
                print(f"{name}: {len(data)} bytes of a second connection", file=sys.stderr, flush=True)
                data = damaged(rng, data)
                fds = damaged_fds(rng, fds) if fds else fds
                left = int(2 ** rng.uniform(0, 12))
            send(sink, data, fds)
            for fd in set(fds):
                os.close(fd)
            if bad and rng.randrange(2):
                return
    except OSError:
        pass
