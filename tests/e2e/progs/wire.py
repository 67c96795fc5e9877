# SPDX-License-Identifier: Apache-2.0
"""What the hostile clients of these tests know about the wire (wire/frame.h): the preamble, the 40-byte frame
header, a connection with deadlines."""
import os
import socket
import struct
import time

ODD = (0, 1, 2, 127, 128, 255, 1 << 16, (1 << 16) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 48,
       (1 << 63) - 1, (1 << 64) - 1)
MARKS = (0xC0, 0xC1, 0xC4, 0xC6, 0xCB, 0xCF, 0xD3, 0xD9, 0xDB, 0xDC, 0xDD, 0xDF, 0x80, 0x90, 0xA0, 0xFF, 0x00,
         0x7F)  # of msgpack, most of them

SLOW = int(os.environ.get("SLOW") or 1)  # the factor of all the tests' time limits

HEADER = struct.Struct("<IBBHQIIQQ")  # head_len kind flags call bulk_len thread deliveries seq ctx
HELLO, POST, WAIT, THREAD_END, UPCALL_DONE, PING = 1, 2, 3, 4, 5, 6
REPLY, DATA, GET_SNAPSHOT, KEEP, SAYS_SECOND = 8, 9, 13, 15, 18
TLS, MONITOR, PACK, SECOND = 1, 2, 4, 16
LENT, STRIPED, STRIPE = 2, 128, 256 << 10


def is_lent(kind, flags):
    return bool(flags & LENT) and kind != REPLY


def inline(kind, flags, bulk_len):
    """Bytes of a bulk that follow its header: of a striped one the rest comes by the second connection, of a
    lent one there come the places, of a DATA frame one and of a record one for each piece."""
    if is_lent(kind, flags):
        return 8 if kind == DATA else -(-bulk_len // STRIPE) * 8
    if not flags & STRIPED:
        return bulk_len
    rest = bulk_len % (2 * STRIPE)
    return bulk_len // (2 * STRIPE) * STRIPE + min(rest, STRIPE)


def preamble(flags=0, magic=b"SCUD", version=2, zero=0, routing=bytes(16)):
    return magic + struct.pack("<BBH", version, flags, zero) + routing


def frame(kind, head=b"", bulk=b"", head_len=None, bulk_len=None, flags=0, call=0, thread=1, deliveries=0,
          seq=1, ctx=0):
    return HEADER.pack(len(head) if head_len is None else head_len, kind, flags, call, len(bulk)
                       if bulk_len is None else bulk_len,
                       thread, deliveries, seq, ctx) + head + bulk


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


def ended(port, data, half_close=True, seconds=15):
    """Sends data and waits until the server ends the connection. Returns how long that took, None when it did
    not."""
    seconds *= SLOW
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as s:
        try:
            s.sendall(data)
            if half_close:
                s.shutdown(socket.SHUT_WR)
            while time.monotonic() - start < seconds:
                if not s.recv(65536):
                    return time.monotonic() - start
        except TimeoutError:
            return None
        except OSError:  # a reset is an end as well
            return time.monotonic() - start
    return None
