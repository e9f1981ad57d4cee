# SPDX-License-Identifier: Apache-2.0
"""fake_sentinel.py REPLY [PATH]: gives each command this reply, in which "\\r\\n" may be written so;
"..." at its end: and bytes without an end. With PATH it speaks TLS, by PATH.pem and PATH.key. Its port
goes to standard output."""

import os
import ssl
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from hostile import MIB, serve_all  # pylint: disable=wrong-import-position

REPLY = sys.argv[1].encode().decode("unicode_escape").encode()


def serve(connection):
    if len(sys.argv) > 2:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{sys.argv[2]}.pem", f"{sys.argv[2]}.key")
        connection = context.wrap_socket(connection, server_side=True)
    while connection.recv(65536):
        connection.sendall(REPLY.removesuffix(b"..."))
        while REPLY.endswith(b"..."):
            connection.sendall(b"x" * MIB)


serve_all(serve)
