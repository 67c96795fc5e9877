# SPDX-License-Identifier: Apache-2.0
# skew.py PORT VERSION: a way to the server on which every connection is one of another version of the
# protocol. Prints its own port.
import socket
import sys
import threading


def pump(source, sink, version):
	try:
		while data := source.recv(65536):
			if version is not None:
				data, version = data[:4] + bytes([version]) + data[5:], None
			sink.sendall(data)
		sink.shutdown(socket.SHUT_WR)
	except OSError:
		pass


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
	near, _ = listener.accept()
	far = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
	threading.Thread(target=pump, args=(near, far, int(sys.argv[2])), daemon=True).start()
	threading.Thread(target=pump, args=(far, near, None), daemon=True).start()
