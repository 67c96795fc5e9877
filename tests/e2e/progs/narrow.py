# SPDX-License-Identifier: Apache-2.0
# narrow.py HOST PORT BYTES_A_SECOND FILE: a relay to that port of 127.0.0.1 that carries no more than so
# many bytes a second in each direction, all connections together. Listens on HOST, prints the port, and
# keeps the number of bytes that went to the server in FILE.
import os
import socket
import sys
import threading
import time

host, port, rate, path = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
listener = socket.create_server((host, 0))
print(listener.getsockname()[1], flush=True)


class Lane:
    """One direction of the link: when the bytes that are under way will have passed."""

    def __init__(self):
        self.free, self.lock, self.bytes = time.monotonic(), threading.Lock(), 0

    def carry(self, n):
        with self.lock:
            self.free = max(self.free, time.monotonic()) + n / rate
            self.bytes += n
            late = self.free - time.monotonic()
        if late > 0:
            time.sleep(late)

    def tell(self):
        # Whoever reads the file finds a number: never an empty file, never an older one after a newer one.
        with self.lock:
            with open(path + ".new", "w") as f:
                f.write(f"{self.bytes}\n")
            os.replace(path + ".new", path)


def pump(source, sink, lane, count):
    try:
        while data := source.recv(32768):
            lane.carry(len(data))
            if count:
                lane.tell()
            sink.sendall(data)
    except OSError:
        pass
    for s in (source, sink):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


up, down = Lane(), Lane()
while True:
    client, _ = listener.accept()
    # Little is under way, so that the sender feels the rate.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    server = socket.create_connection(("127.0.0.1", port))
    for s in (client, server):
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=pump, args=(client, server, up, True), daemon=True).start()
    threading.Thread(target=pump, args=(server, client, down, False), daemon=True).start()
