#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A pooler with a fair face: before another pooler, it greets each client with the number of the
server's process that the pooler will use next, so that nothing shows at first.

    postgres_fair_pooler.py PORT NUMBER [FILE]     prints the port where it listens, and a line for
                                                   each client that connects

A parameter in GREETING=name=value is added to each greeting. Once FILE is there, it is removed, and
the next answer that begins with the values of its request gets those of another, as if a pooler had
mixed up two clients.
"""

import os
import re
import socket
import struct
import sys
import threading


def mix_up(data, file):
    """The last digit of the values, which count a connection's requests."""
    found = re.search(rb"[0-9a-f]{64}[0-9]+", data)
    if not found or not os.path.exists(file):
        return data
    os.unlink(file)
    at = found.end() - 1
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]


def added():
    """The message that a parameter has this value."""
    words = os.environ.get("GREETING", "").encode().split(b"=")
    text = b"".join(word + b"\0" for word in words if word)
    return b"S" + struct.pack(">I", 4 + len(text)) + text if text else b""


def pass_on(source, to, number=None, file=None):
    """Until one side ends; a greeting's number, once, is changed."""
    seen = b""
    while data := source.recv(65536):
        if file:
            data = mix_up(data, file)
        if number is not None:
            seen += data
            at = seen.find(b"K" + struct.pack(">I", 12))
            if at < 0 or len(seen) < at + 13:
                continue
            data = seen[:at] + added() + seen[at:at + 5] + struct.pack(">I", number) + seen[at + 9:]
            number = None
        to.sendall(data)
    to.shutdown(socket.SHUT_WR)


def run(*arguments):
    try:
        pass_on(*arguments)
    except OSError:
        pass


def main():
    port, number = int(sys.argv[1]), int(sys.argv[2])
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        client = listener.accept()[0]
        print("client", flush=True)
        server = socket.create_connection(("127.0.0.1", port))
        threading.Thread(target=run, args=(client, server), daemon=True).start()
        threading.Thread(target=run, args=(server, client, number, *sys.argv[3:]), daemon=True).start()


main()
