# SPDX-License-Identifier: Apache-2.0
"""hostile_redis.py KIND FILE: a Redis server that answers the first command by one reply without an
end, "bulk" or "array". Its port goes to standard output; the file has how many MiB its greediest
client has taken."""

import sys

sys.dont_write_bytecode = True
from hostile import MIB, flood, serve_all  # pylint: disable=wrong-import-position

REPLIES = {
    "bulk": (b"$500000000\r\n", b"x" * MIB),
    "array": (b"*500000\r\n", b"$1048576\r\n" + b"x" * MIB + b"\r\n"),
}


def serve(connection):
    begin, more = REPLIES[sys.argv[1]]
    if connection.recv(65536):
        connection.sendall(begin)
        flood(lambda: connection.sendall(more), sys.argv[2])


serve_all(serve)
