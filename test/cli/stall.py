# SPDX-License-Identifier: Apache-2.0
"""Forwards connections to a server's port on this machine: the argument. Its own port goes to standard
output. While the file "stalled" is in the working directory, what clients send is kept back; what the
server sends always passes.
"""

import os
import selectors
import socket
import sys

server = ("127.0.0.1", int(sys.argv[1]))
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
selector = selectors.DefaultSelector()
selector.register(listener, selectors.EVENT_READ)
peers, clients = {}, set()


def open_pair():
    client, upstream = listener.accept()[0], socket.create_connection(server)
    peers.update({client: upstream, upstream: client})
    clients.add(client)
    for end in (client, upstream):
        selector.register(end, selectors.EVENT_READ)


def close_pair(end):
    for each in (end, peers[end]):
        selector.unregister(each)
        del peers[each]
        each.close()


while True:
    stalled = os.path.exists("stalled")
    for key, _ in selector.select(0.02):
        end = key.fileobj
        if end is listener:
            open_pair()
        elif end in peers and not (stalled and end in clients):
            try:
                data = end.recv(65536)
                peers[end].sendall(data)
            except OSError:
                data = b""
            if not data:
                close_pair(end)
