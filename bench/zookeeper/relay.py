# SPDX-License-Identifier: Apache-2.0
"""A relay before a ZooKeeper server that counts requests by kind, events, and bytes both ways."""

import collections
import socket
import struct
import threading

LISTS = (8, 12)  # getChildren, getChildren2
EVENT = b"\xff\xff\xff\xff"  # number of what is no answer but the event of a watch
UPKEEP = (11, 9, -11)  # ping, sync and close keep or end a session, whatever is acquired


class Relay:
    """Listens on a port of its own; `counts` may be read at any time."""

    def __init__(self, host, port):
        self.target = (host, port)
        self.counts = collections.Counter()
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(self.target)
            for end in (client, server):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.carry, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.carry, args=(server, client, False), daemon=True).start()

    def carry(self, source, sink, requests):
        rest, first = b"", True
        try:
            while part := source.recv(65536):
                sink.sendall(part)
                with self.lock:
                    self.counts["bytes_out" if requests else "bytes_in"] += len(part)
                    rest += part
                    while len(rest) >= 4 and len(rest) >= 4 + (size := struct.unpack(">i", rest[:4])[0]):
                        if not first and not requests:
                            self.counts["events"] += rest[4:8] == EVENT
                        elif not first:
                            kind = struct.unpack(">i", rest[8:12])[0]
                            self.counts["upkeep" if kind in UPKEEP else "requests"] += 1
                            self.counts["lists"] += kind in LISTS
                        rest, first = rest[4 + size:], False
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def snapshot(self):
        with self.lock:
            return collections.Counter(self.counts)

    def close(self):
        self.listener.close()
