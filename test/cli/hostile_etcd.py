# SPDX-License-Identifier: Apache-2.0
"""hostile_etcd.py KIND FILE: a gateway of etcd that answers each request by one reply without an end,
which comes in chunks ("chunks") or is said to have a terabyte ("length"). Its port goes to standard
output; the file has how many MiB its greediest client has taken."""

import sys

sys.dont_write_bytecode = True
from hostile import MIB, flood, serve_all  # pylint: disable=wrong-import-position

TEXT = b'{"header":"' + b"x" * (MIB - 11)
REPLIES = {
    "chunks": (b"Transfer-Encoding: chunked", b"100000\r\n" + TEXT + b"\r\n"),
    "length": (b"Content-Length: 1099511627776", TEXT),
}


def serve(connection):
    head, more = REPLIES[sys.argv[1]]
    if connection.recv(65536):
        connection.sendall(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n")
        flood(lambda: connection.sendall(more), sys.argv[2])


serve_all(serve)
