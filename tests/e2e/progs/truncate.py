#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""truncate.py PORT COMMAND: runs COMMAND (PORT in it replaced) through a relay to the server at PORT and
records what it sends, then replays that session again and again: with each record's head cut to every shorter
length (the frame itself is whole, so the record is what is bad), and with the whole stream cut at many
places. The server must end each of them by itself. Prints how many bad records and cut streams it sent."""
import socket
import subprocess
import sys
import threading

from wire import HEADER, HELLO, MONITOR, PING, POST, SLOW, WAIT, ended, preamble

SAMPLES = 48  # lengths tried of one long head
CUTS = 200    # places where the stream is cut


def pump(source, sink, record):
    try:
        while data := source.recv(65536):
            if record is not None:
                record.extend(data)
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def relay(listener, port, records):
    while True:
        try:
            client, _ = listener.accept()
        except OSError:
            return
        server = socket.create_connection(("127.0.0.1", port))
        record = bytearray()
        records.append(record)
        threading.Thread(target=pump, args=(client, server, record), daemon=True).start()
        threading.Thread(target=pump, args=(server, client, None), daemon=True).start()


def recorded_session(port, command):
    records = []
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=relay, args=(listener, port, records), daemon=True).start()
    command = command.replace("PORT", str(listener.getsockname()[1]))
    subprocess.run(command, shell=True, check=True, stdout=subprocess.DEVNULL, timeout=60 * SLOW)
    listener.close()
    sessions = [bytes(r) for r in records if len(r) > 24 and not r[5] & MONITOR]
    if len(sessions) != 1:
        sys.exit(f"{len(sessions)} sessions were recorded, not 1")
    return sessions[0]


def frames(stream):
    """(offset, header fields, head, bulk) of each frame."""
    at = 24
    while at + HEADER.size <= len(stream):
        fields = HEADER.unpack_from(stream, at)
        head_at = at + HEADER.size
        bulk_at = head_at + fields[0]
        yield at, fields, stream[head_at:bulk_at], stream[bulk_at:bulk_at + fields[4]]
        at = bulk_at + fields[4]
    if at != len(stream):
        sys.exit("the recorded session does not end with a whole frame")


def spread(n, most):
    return range(n) if n <= most else sorted({i * n // most for i in range(most)} | {n - 1})


def main():
    port = int(sys.argv[1])
    stream = recorded_session(port, sys.argv[2])
    assert stream[:24] == preamble(), stream[:24]
    seen, bad = set(), 0
    for at, fields, head, bulk in frames(stream):
        kind, call = fields[1], fields[3]
        if kind not in (HELLO, POST, WAIT) or (kind, call) in seen:
            continue
        seen.add((kind, call))
        for n in spread(len(head), SAMPLES):
            record = HEADER.pack(n, *fields[1:]) + head[:n] + bulk
            if ended(port, stream[:at] + record, half_close=False, seconds=5) is None:
                sys.exit(f"the session goes on after kind {kind}, call {call}, "
                         f"cut to {n} of {len(head)} bytes")
            bad += 1
    if len(seen) < 5:
        sys.exit(f"only {len(seen)} kinds of records were recorded")
    for n in spread(len(stream), CUTS):
        if ended(port, stream[:n], seconds=5) is None:
            sys.exit(f"the connection stays after {n} of {len(stream)} bytes")
    cuts = len(spread(len(stream), CUTS))
    print(f"bad records {bad}, of {len(seen)} calls; cut streams {cuts}, of {len(stream)} bytes")


main()
