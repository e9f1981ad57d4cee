# SPDX-License-Identifier: Apache-2.0
"""fake_sentinel.py REPLY: gives each command this reply, in which "\\r\\n" may be written so; "..."
at its end: and bytes without an end. Its port goes to standard output."""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from hostile import MIB, serve_all  # pylint: disable=wrong-import-position

REPLY = sys.argv[1].encode().decode("unicode_escape").encode()


def serve(connection):
    while connection.recv(65536):
        connection.sendall(REPLY.removesuffix(b"..."))
        while REPLY.endswith(b"..."):
            connection.sendall(b"x" * MIB)


serve_all(serve)
