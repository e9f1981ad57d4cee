# SPDX-License-Identifier: Apache-2.0
"""limit.py PORT COUNT holds|cuts: a way to a server at PORT of this machine. It prints its own port.
Of each connection it lets COUNT bytes of the server's through, and then nothing more, or it ends."""

import socket
import sys
import threading

port, count, way = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
print(listener.getsockname()[1], flush=True)


def up(client, server):
    try:
        while part := client.recv(65536):
            server.sendall(part)
    except OSError:
        pass


def down(client, server):
    left = count
    while left > 0 and (part := server.recv(min(left, 65536))):
        client.sendall(part)
        left -= len(part)
    if way == "cuts":
        client.shutdown(socket.SHUT_RDWR)


kept = []
while True:
    kept.append((listener.accept()[0], socket.create_connection(("127.0.0.1", port))))
    for direction in (up, down):
        threading.Thread(target=direction, args=kept[-1], daemon=True).start()
