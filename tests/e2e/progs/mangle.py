#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mangle.py ADDRESS WHAT SEED: a relay to the server at ADDRESS (127.0.0.1:PORT or unix:PATH) that damages
what passes. WHAT is "up" (towards the server), "down", "monitor" (both ways of a monitor's connection alone),
or "bytes" (any byte behind the preamble, as in a TLS stream). Each connection goes on undamaged for a number
of frames that the seed chooses, often for none, at most for some thousand; from then on frames are damaged
now and then: fields of the header, the head's bytes or length, the bulk, the places of what is lent, or the
frame is left out, sent twice, or cut off, or one goes ahead that says something of the second connection. Of
second connections, which have no frames, words, bytes and descriptors are damaged (mangle_second.py). Prints
its own address; ends after ten minutes at the latest."""
import os
import random
import socket
import sys
import threading
import time

from mangle_second import pump_second
from wire import (DATA, HEADER, LENT, MONITOR, ODD, POST, SAYS_SECOND, SECOND, STRIPE, STRIPED, WAIT,
                  damage_bytes, exactly, frame, inline, is_lent)

WIDTHS = (32, 8, 8, 16, 64, 32, 32, 64, 64)  # of the header's fields, in bits
# Bytes of a bulk, and the ends of what is lent: the arena, a server's memory, the most that a mount takes.
LENGTHS = (0, 1, 8, STRIPE - 1, STRIPE, STRIPE + 1, 2 * STRIPE, 2 * STRIPE + 1, (1 << 20) - 1, 1 << 20)
ENDS = (0, 16 << 30, 23 * 11 << 20, 256 << 20, 1 << 63, 1 << 64)


def odd_place(rng):
    at = rng.choice(ENDS) - rng.choice((0, 1, 8, STRIPE, 1 << 20, rng.randrange(2 << 20)))
    return (rng.getrandbits(34) if rng.randrange(3) == 0 else at) % (1 << 64)


def damaged_apart(rng, fields, head, body):
    """The bytes to be sent in place of a frame of whose bulk not all follows: it is lent, or in stripes."""
    how = rng.randrange(8)
    if how < 3 and is_lent(fields[1], fields[2]):
        at = 8 * rng.randrange(len(body) // 8)
        body[at:at + 8] = odd_place(rng).to_bytes(8, "little")
    elif how < 3:
        fields[7] = rng.choice((fields[7] + 1, fields[7] - 1, fields[7] + STRIPE, 0)) % (1 << 64)
    elif how == 3:
        body = body[: rng.randrange(len(body) + 1)]
    elif how == 4:
        body = body + rng.randbytes(rng.choice((1, 8, 5000)))
    elif how == 5:
        fields[2] ^= rng.choice((LENT, STRIPED, LENT | STRIPED))
    elif how == 6:
        fields[4] = rng.choice((*LENGTHS, *ODD, fields[4] + 1, max(fields[4] - 1, 0))) % (1 << 64)
    else:
        whole = HEADER.pack(*fields) + head + body
        return rng.choice((b"", whole + whole))
    return HEADER.pack(*fields) + head + body


def ahead(rng, fields):
    """A frame that nobody sends here: a word of the second connection, or bytes by it, or lent ones."""
    if rng.randrange(2):
        return frame(SAYS_SECOND, seq=rng.choice((0, 1, 2, 3, 4, rng.getrandbits(64))),
                     ctx=rng.choice((0, rng.getrandbits(64))), thread=0)
    kind = DATA if fields[1] > WAIT else rng.choice((POST, WAIT))
    n, flags = rng.choice(LENGTHS), rng.choice((LENT, STRIPED))
    body = bytearray(inline(kind, flags, n))
    for at in range(0, len(body) if flags == LENT else 0, 8):
        body[at:at + 8] = odd_place(rng).to_bytes(8, "little")
    return HEADER.pack(0, kind, flags, rng.randrange(700), n, int(kind != DATA), 0, *fields[7:]) + body


def damaged(rng, fields, head, bulk):
    """The bytes to be sent in place of the frame."""
    if rng.randrange(16) == 0:
        return ahead(rng, fields) + HEADER.pack(*fields) + head + bulk
    if len(bulk) != fields[4] or is_lent(fields[1], fields[2]):
        return damaged_apart(rng, fields, head, bulk)
    how = rng.randrange(12)
    if how < 5 and head:
        damage_bytes(rng, head)
    elif how == 5 and head:
        head = head[: rng.randrange(len(head))]
    elif how == 6:
        head = head + rng.randbytes(rng.randint(1, 40))
    elif how == 7 and bulk:
        if rng.randrange(2):
            damage_bytes(rng, bulk)
        else:
            bulk = bulk[: rng.randrange(len(bulk))]
    elif how == 8:
        bulk = bulk + rng.randbytes(rng.choice((1, 8, 16, 100, 5000)))
    elif how < 11:
        i = rng.choice((1, 2, 3, 3, 5, 6, 6, 7, 8))
        fields[i] = rng.choice((rng.choice(ODD), rng.getrandbits(WIDTHS[i]), fields[i] + 1,
                                fields[i] - 1)) % (1 << WIDTHS[i])
    elif rng.randrange(3):
        whole = HEADER.pack(*fields) + head + bulk
        return rng.choice((b"", whole + whole, whole[: rng.randrange(len(whole))]))
    else:  # lengths that are not so
        i = rng.choice((0, 4))
        fields[i] = rng.choice(ODD) % (1 << WIDTHS[i])
        return HEADER.pack(*fields) + head + bulk
    fields[0], fields[4] = len(head), len(bulk)
    return HEADER.pack(*fields) + head + bulk


def pump_frames(source, sink, rng, name):
    whole = int(2 ** rng.uniform(0, 11)) - 1 if rng else 0
    try:
        while True:
            fields = list(HEADER.unpack(exactly(source, HEADER.size)))
            bad = rng is not None and whole <= 0 and rng.random() < 0.4
            left = inline(fields[1], fields[2], fields[4])
            if left <= 1 << 20:
                head, bulk = exactly(source, fields[0]), exactly(source, left)
                was = HEADER.pack(*fields) + head + bulk
                sent = damaged(rng, fields, head, bulk) if bad else was
                sink.sendall(sent)
                if bad:  # for who looks why a test has failed
                    print(f"{name}: {HEADER.unpack(was[:40])} ({len(was)}): {sent[:100].hex()} ({len(sent)})",
                          file=sys.stderr, flush=True)
            else:  # a large copy passes as it is
                sink.sendall(HEADER.pack(*fields) + exactly(source, fields[0]))
                while left:
                    part = exactly(source, min(left, 1 << 20))
                    sink.sendall(part)
                    left -= len(part)
            whole -= 1
    except (OSError, EOFError):
        pass


def pump_bytes(source, sink, rng, _):
    """With the generator, one byte is damaged, somewhere."""
    at = int(2 ** rng.uniform(0, 20)) if rng else -1
    try:
        while data := bytearray(source.recv(65536)):
            if 0 <= at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            at -= len(data)
            sink.sendall(data)
    except OSError:
        pass


def both_ways(client, server, pump, up, down, name):
    def way(source, sink, rng):
        pump(source, sink, rng, name)
        for s in (client, server):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    threads = [threading.Thread(target=way, args=a, daemon=True)
               for a in ((client, server, up), (server, client, down))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    client.close()
    server.close()


def dial(address):
    if address.startswith("unix:"):
        s = socket.socket(socket.AF_UNIX)
        s.connect(address[5:])
    else:
        host, port = address.rsplit(":", 1)
        s = socket.create_connection((host, int(port)))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def connection(client, address, what, seed):
    rng = [random.Random(2 * seed), random.Random(2 * seed + 1)]
    try:
        server = dial(address)
        start = exactly(client, 24)
        server.sendall(start)
    except (OSError, EOFError):
        client.close()
        return
    if client.family == socket.AF_INET:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    monitor = bool(start[5] & MONITOR)
    # Of the streams of bytes a monitor's is damaged as well, but rarely: without it there is no mount.
    # A session's second connection has no frames.
    second = bool(start[5] & SECOND)
    hit = monitor == (what == "monitor") or (what == "bytes" and rng[0].random() < 0.2)
    if second:
        hit = rng[0].random() < 0.4
    up, down = (rng[i] if hit and what != other else None for i, other in enumerate(("down", "up")))
    both_ways(client, server, pump_second if second else pump_bytes if what == "bytes" else pump_frames,
              up, down, seed % 1000)


def listen(address):
    """As the server does, and the address."""
    if not address.startswith("unix:"):
        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        return listener, f"127.0.0.1:{listener.getsockname()[1]}"
    path = address[5:] + ".mangled"
    if os.path.exists(path):
        os.unlink(path)
    return socket.create_server(path, family=socket.AF_UNIX, backlog=64), "unix:" + path


def main():
    address, what, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
    listener, own = listen(address)
    print(own, flush=True)

    def accept():
        for n in range(1 << 30):
            client, _ = listener.accept()
            threading.Thread(target=connection, args=(client, address, what, seed * 1000 + n),
                             daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    time.sleep(600)


main()
