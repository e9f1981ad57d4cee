# SPDX-License-Identifier: Apache-2.0
"""The common part of the servers hostile_*.py: the listener's loop, a thread for each connection,
and the count of how much clients take of a reply without an end."""

import os
import socket
import struct
import threading

MIB = 1 << 20
lock = threading.Lock()
most = 0


def flood(send, path):
    """Sends a MiB again and again; the file has how many the greediest client has taken, 0 if it left
    within the first."""
    global most
    for taken in range(400):
        with lock:
            if taken > most or taken == 0:
                most = max(most, taken)
                with open(path + ".new", "w", encoding="ascii") as file:
                    file.write(f"{most}\n")
                os.replace(path + ".new", path)  # its reader may come any time
        send()


def serve_all(serve):
    """Prints the port; each connection is served until one side leaves."""
    def serve_or_leave(connection):
        try:
            serve(connection)
        except (OSError, struct.error):
            pass
        finally:
            connection.close()

    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listener.getsockname()[1], flush=True)
    while True:
        threading.Thread(target=serve_or_leave, args=[listener.accept()[0]], daemon=True).start()
