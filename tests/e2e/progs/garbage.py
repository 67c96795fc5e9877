#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sends garbage to the server at the port given, one connection each, and demands that the server ends every
one of them. Prints how many there were; exits 1 and names the first that stayed. The random part has a fixed
seed, so that a failure comes again."""
import random
import struct
import sys

from wire import GET_SNAPSHOT, HELLO, MONITOR, PING, POST, SECOND, TLS, WAIT, ended, frame, preamble


def cases():
    rng = random.Random(20)
    good = preamble()
    for n in range(24):
        yield f"{n} bytes of a preamble", good[:n]
    yield "wrong magic", preamble(magic=b"HTTP")
    yield "a future version", preamble(version=200) + frame(HELLO)
    yield "version 0", preamble(version=0) + frame(HELLO)
    yield "unknown flags", preamble(flags=0xfc) + frame(HELLO)
    yield "a routing id of nobody", preamble(routing=bytes(range(16))) + frame(HELLO)
    yield "a second connection of nobody", preamble(flags=SECOND, routing=bytes(range(16))) + frame(PING)
    yield "a second connection of no name", preamble(flags=SECOND) + frame(PING)
    yield "a second connection with TLS", preamble(flags=SECOND | TLS,
                                                   routing=bytes(range(16))) + rng.randbytes(500)
    yield "a second connection of a monitor", preamble(flags=SECOND | MONITOR,
                                                       routing=bytes(range(16))) + frame(PING)
    yield "a preamble that is not zero where it must be", preamble(zero=7) + frame(HELLO)
    yield "a TLS flag and no TLS", preamble(flags=TLS) + rng.randbytes(500)
    yield "a web browser", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    for n in (1, 23, 24, 25, 63, 64, 65, 1000, 70000):
        yield f"{n} random bytes", rng.randbytes(n)
        yield f"{n} random bytes after a preamble", good + rng.randbytes(n)
        yield f"{n} random bytes to the monitor", preamble(flags=MONITOR) + rng.randbytes(n)
    for kind in range(256):
        yield f"a first frame of kind {kind}", good + frame(kind)
    for kind in (HELLO, POST, WAIT, PING):
        yield f"kind {kind} with a head of 4 GiB", good + frame(kind, head_len=0xffffffff)
        yield f"kind {kind} with a head past the limit", good + frame(kind, head_len=(64 << 10) + 1)
        yield f"kind {kind} with a bulk of 2^64 - 1", good + frame(kind, bulk_len=(1 << 64) - 1)
        yield f"kind {kind} with a bulk past the limit", good + frame(kind, bulk_len=(256 << 30) + 1)
    heads = {
        "nil": b"\xc0", "an array in an array, 1000 deep": b"\x91" * 1000,
        "maps 1000 deep": b"\x81\xa1a" * 1000,
        "an array of 2^32 - 1": b"\xdd\xff\xff\xff\xff", "a map of 2^32 - 1": b"\xdf\xff\xff\xff\xff",
        "a text of 4 GiB": b"\xdb\xff\xff\xff\xff", "a bin of 4 GiB": b"\xc6\xff\xff\xff\xff",
        "an array of 2^29 - 1": b"\xdd\x1f\xff\xff\xff",
        "60 KiB of nil in an array": b"\xdd\x00\x00\xf0\x00" + b"\xc0" * 0xf000,
        "the byte that msgpack never uses": b"\xc1", "an empty map": b"\x80",
        "a protocol that is a text": b"\x81\xa8protocol\xa3abc",
        "a protocol of 2^64 - 1": b"\x81\xa8protocol\xcf" + b"\xff" * 8,
        "calls without end": b"\x81\xa5calls\xdd\x00\x00\xff\xff" + b"\x92\xa1a\x01" * 5000,
    }
    for name, head in heads.items():
        for kind in (HELLO, POST, WAIT):
            yield f"kind {kind}, a head of {name}", good + frame(kind, head)
        yield f"to the monitor, a head of {name}", preamble(flags=MONITOR) + frame(GET_SNAPSHOT, head)
    hello = good + frame(HELLO, rng.randbytes(300))
    for n in range(24, len(hello), 9):
        yield f"{n} bytes of a bad hello", hello[:n]
    for _ in range(100):
        mutated = bytearray(hello)
        for _ in range(rng.randint(1, 8)):
            mutated[rng.randrange(len(mutated))] = rng.randrange(256)
        yield "a mutated hello", bytes(mutated)
    for _ in range(50):
        header = struct.pack("<IBB", rng.randint(0, 2000), rng.randint(0, 16),
                             rng.randint(0, 255)) + rng.randbytes(34)
        yield "a random header", good + header + rng.randbytes(200)


def main():
    port = int(sys.argv[1])
    count = 0
    for name, data in cases():
        if ended(port, data) is None:
            sys.exit(f"the connection stays after {name}")
        count += 1
    # Who says nothing more is not waited for either: the preamble has its time, and so has the hello.
    for name, data, seconds in (("half a preamble, then silence", preamble()[:11], 6),
                                ("a preamble, then silence", preamble(), 20),
                                ("half a header, then silence", preamble() + frame(HELLO)[:20], 20)):
        if ended(port, data, half_close=False, seconds=seconds) is None:
            sys.exit(f"the connection stays after {name}")
        count += 1
    print(count)


main()
