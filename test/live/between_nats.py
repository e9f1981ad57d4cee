# SPDX-License-Identifier: Apache-2.0
"""Between clients and a server of NATS, at nats://HOST:PORT, the first argument; its own port goes to
standard output. The second argument says what becomes of the Nth message that clients publish, N
being the third; a file named `was_cut` says that it has come:

request  it does not reach the server, and the connection is cut
half     half of it reaches the server, and the connection is cut
answer   it reaches the server, and the connection is cut in place of the answer
late     the connection is cut, and it reaches the server once there is a file named `go`, on a
         connection of its own; a file named `went` says so
every    N milliseconds after it has been made, each connection is cut, whatever is on its way"""

import os
import socket
import sys
import threading
import time

WHERE, KIND, NTH = sys.argv[1].split("//")[1].rsplit(":", 1), sys.argv[2], int(sys.argv[3])
counted = iter(range(1, 1 << 30))
lock = threading.Lock()


def touch(name):
    with open(name, "w", encoding="ascii"):
        pass


def end(*sockets):
    for one in sockets:
        try:
            one.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def is_chosen():
    with lock:
        return KIND != "every" and next(counted) == NTH


class Between:
    """One connection of a client, and the one to the server that belongs to it."""

    def __init__(self, client):
        self.client, self.server = client, socket.create_connection((WHERE[0], int(WHERE[1])))
        for one in (self.client, self.server):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.greeting, self.awaited = b"", None
        for way in (self.requests, self.answers):
            threading.Thread(target=self.guard, args=(way,), daemon=True).start()
        if KIND == "every":
            threading.Timer(NTH / 1000, self.cut).start()

    def cut(self):
        touch("was_cut")
        end(self.client, self.server)

    def guard(self, way):
        try:
            way()
        except (OSError, ValueError):
            pass
        end(self.client, self.server)

    def requests(self):
        stream = self.client.makefile("rb")
        while line := stream.readline():
            words = line.split()
            if words and words[0] == b"CONNECT":
                self.greeting = line
            if words and words[0] in (b"PUB", b"HPUB"):
                line += stream.read(int(words[-1]) + 2)
                if is_chosen():
                    self.meddle(line, words)
                    continue
            self.server.sendall(line)

    def meddle(self, data, words):
        if KIND == "answer":
            self.awaited = words[2]
            self.server.sendall(data)
            return
        if KIND == "half":
            self.server.sendall(data[:len(data) // 2])
        if KIND == "late":
            threading.Thread(target=self.hold_back, args=(data,), daemon=True).start()
        self.cut()

    def hold_back(self, data):
        while not os.path.exists("go"):
            time.sleep(0.02)
        with socket.create_connection((WHERE[0], int(WHERE[1]))) as late:
            late.sendall(self.greeting + data + b"PING\r\n")
            stream = late.makefile("rb")
            while not stream.readline().startswith(b"PONG"):
                pass
        touch("went")

    def answers(self):
        stream = self.server.makefile("rb")
        while line := stream.readline():
            words = line.split()
            if words and words[0] in (b"MSG", b"HMSG"):
                line += stream.read(int(words[-1]) + 2)
                if self.awaited and words[1] == self.awaited:
                    self.cut()
                    return
            self.client.sendall(line)


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    Between(listener.accept()[0])
