# SPDX-License-Identifier: Apache-2.0
"""Between a client and the ZooKeeper server at the port that is the argument. Its own port goes to
standard output. While a file named strike exists, the client also gets a reply to a request that it
never made, ten times a second."""

import os
import socket
import sys
import threading
import time

REPLY = bytes.fromhex("00000010" "0000004d" "0000000000000000" "00000000")


def forward(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def strike(client):
    try:
        while True:
            time.sleep(0.1)
            if os.path.exists("strike"):
                client.sendall(REPLY)
    except OSError:
        pass


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(64)
print(listener.getsockname()[1], flush=True)
while True:
    taken = listener.accept()[0]
    server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    for job in ((forward, taken, server), (forward, server, taken), (strike, taken)):
        threading.Thread(target=job[0], args=job[1:], daemon=True).start()
