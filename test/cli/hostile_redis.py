# SPDX-License-Identifier: Apache-2.0
"""A Redis server that answers the first command by one reply without an end. Its port goes to
standard output; the file that it is given has how many MiB its greediest client has taken."""

import os
import socket
import sys
import threading

MEBIBYTE = b"x" * (1 << 20)
REPLIES = {
    "bulk": (b"$500000000\r\n", MEBIBYTE),
    "array": (b"*500000\r\n", b"$1048576\r\n" + MEBIBYTE + b"\r\n"),
}
begin, more = REPLIES[sys.argv[1]]
most = 0
lock = threading.Lock()


def serve(connection):
    global most
    taken = 0
    try:
        if not connection.recv(65536):
            return
        connection.sendall(begin)
        while taken < 400:
            connection.sendall(more)
            taken += 1
            with lock:
                if taken > most:
                    most = taken
                    with open(sys.argv[2] + ".new", "w") as file:
                        file.write(f"{most}\n")
                    os.replace(sys.argv[2] + ".new", sys.argv[2])  # its reader may come any time
    except OSError:
        pass
    finally:
        connection.close()


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
