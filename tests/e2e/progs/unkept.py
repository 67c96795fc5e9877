# SPDX-License-Identifier: Apache-2.0
# unkept.py PORT: a way to the server on which no question comes through whether it keeps a shared handle: so
# nobody ever answers one, while all else is well. Prints its own port.
import socket
import sys
import threading
from wire import HEADER, KEEP, MONITOR, inline


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def pump_frames(source, sink):
    while head := source.recv(HEADER.size, socket.MSG_WAITALL):
        head_len, kind, flags, _, bulk_len, *_ = HEADER.unpack(head)
        body = source.recv(head_len + inline(kind, flags, bulk_len), socket.MSG_WAITALL)
        if kind != KEEP:
            sink.sendall(head + body)


def serve(near, far):
    preamble = near.recv(24, socket.MSG_WAITALL)
    far.sendall(preamble)
    (pump_frames if preamble[5] & MONITOR else pump)(near, far)


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    near, _ = listener.accept()
    far = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    threading.Thread(target=serve, args=(near, far), daemon=True).start()
    threading.Thread(target=pump, args=(far, near), daemon=True).start()
