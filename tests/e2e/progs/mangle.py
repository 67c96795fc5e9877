#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mangle.py PORT WHAT SEED: a relay to the server at PORT that damages what passes. WHAT is "up" (towards the
server), "down", "monitor" (both ways of a monitor's connection alone), or "bytes" (any byte behind the
preamble, as in a TLS stream). Each connection goes on undamaged for a number of frames that the seed chooses,
often for none, at most for some thousand; from then on frames are damaged now and then: fields of the header,
the head's bytes or length, the bulk, or the frame is left out, sent twice, or cut off. Prints its own port;
ends after ten minutes at the latest."""
import random
import socket
import sys
import threading
import time

from wire import HEADER, MONITOR, SECOND, inline

ODD = (0, 1, 2, 127, 128, 255, 1 << 16, (1 << 16) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 48,
       (1 << 63) - 1, (1 << 64) - 1)
WIDTHS = (32, 8, 8, 16, 64, 32, 32, 64, 64)  # of the header's fields, in bits
MARKS = (0xC0, 0xC1, 0xC4, 0xC6, 0xCB, 0xCF, 0xD3, 0xD9, 0xDB, 0xDC, 0xDD, 0xDF, 0x80, 0x90, 0xA0, 0xFF, 0x00,
         0x7F)  # of msgpack, most of them


def exactly(s, n):
    parts = bytearray()
    while len(parts) < n:
        part = s.recv(min(n - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return parts


def damage_bytes(rng, p):
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(p))
        p[at] = rng.choice((rng.randrange(256), p[at] ^ 1 << rng.randrange(8), rng.choice(MARKS)))


def damaged(rng, fields, head, bulk):
    """The bytes to be sent in place of the frame."""
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


def pump_frames(source, sink, rng):
    whole = int(2 ** rng.uniform(0, 11)) - 1 if rng else 0
    try:
        while True:
            fields = list(HEADER.unpack(exactly(source, HEADER.size)))
            bad = rng is not None and whole <= 0 and rng.random() < 0.4
            if fields[4] <= 1 << 20:
                head, bulk = exactly(source, fields[0]), exactly(source, fields[4])
                sink.sendall(damaged(rng, fields, head, bulk) if bad else HEADER.pack(*fields) + head + bulk)
            else:  # a large copy passes as it is
                sink.sendall(HEADER.pack(*fields) + exactly(source, fields[0]))
                left = inline(fields[2], fields[4])
                while left:
                    part = exactly(source, min(left, 1 << 20))
                    sink.sendall(part)
                    left -= len(part)
            whole -= 1
    except (OSError, EOFError):
        pass


def pump_bytes(source, sink, rng):
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


def both_ways(client, server, pump, up, down):
    def way(source, sink, rng):
        pump(source, sink, rng)
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


def connection(client, port, what, seed):
    rng = [random.Random(2 * seed), random.Random(2 * seed + 1)]
    try:
        server = socket.create_connection(("127.0.0.1", port))
        start = exactly(client, 24)
        server.sendall(start)
    except (OSError, EOFError):
        client.close()
        return
    for s in (client, server):
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    monitor = bool(start[5] & MONITOR)
    # Of the streams of bytes a monitor's is damaged as well, but rarely: without it there is no mount.
    # A session's second connection has no frames.
    if start[5] & SECOND:
        both_ways(client, server, pump_bytes, rng[0] if what == "up" and rng[0].random() < 0.2 else None,
                  None)
        return
    hit = monitor == (what == "monitor") or (what == "bytes" and rng[0].random() < 0.2)
    up, down = (rng[i] if hit and what != other else None for i, other in enumerate(("down", "up")))
    both_ways(client, server, pump_bytes if what == "bytes" else pump_frames, up, down)


def main():
    port, what, seed = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)

    def accept():
        for n in range(1 << 30):
            client, _ = listener.accept()
            threading.Thread(target=connection, args=(client, port, what, seed * 1000 + n),
                             daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    time.sleep(600)


main()
