# SPDX-License-Identifier: Apache-2.0
"""Listens, and is no store. Prints its port. The argument says what happens to a connection:

    (none)    nobody is accepted, and nobody answers
    full      as that, and the queue of calls is full: not even the kernel answers
    ends      the connection is ended at once
    talks     an answer of another protocol
    begins    the first byte of the protocol's own answer, and then nothing
    COUNT     nobody answers; when so many have connected, the milliseconds from the first to the
              last go to standard output
"""

import socket
import sys
import threading
import time

way = sys.argv[1] if len(sys.argv) > 1 else "silent"
hole = socket.socket()
hole.bind(("127.0.0.1", 0))
hole.listen(0 if way == "full" else 64)
callers = []
while way == "full" and len(callers) < 4:
    callers.append(socket.socket())
    callers[-1].setblocking(False)
    callers[-1].connect_ex(hole.getsockname())
print(hole.getsockname()[1], flush=True)
while way in ("ends", "talks"):
    connection = hole.accept()[0]
    if way == "talks":
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
    connection.close()
if way in ("silent", "full"):
    time.sleep(600)
    sys.exit()



def begin(connection):
    """Redis is asked by "*", PostgreSQL for TLS; MariaDB's server speaks first."""
    connection.settimeout(0.2)
    try:
        asked = connection.recv(4)
    except TimeoutError:
        asked = b""
    connection.sendall(b"+" if asked[:1] == b"*" else b"S" if asked == b"\0\0\0\x08" else b"\0")


begun = []
while way == "begins":
    begun.append(hole.accept()[0])
    threading.Thread(target=begin, args=(begun[-1],), daemon=True).start()
connections, times = [], []
for _ in range(int(way)):
    connections.append(hole.accept()[0])
    times.append(time.monotonic())
print(int((times[-1] - times[0]) * 1000), flush=True)
time.sleep(600)
