# SPDX-License-Identifier: Apache-2.0
"""hostile_postgres.py KIND FILE: a PostgreSQL server that lets everybody in, and whose first reply has
no end. Its port goes to standard output. With "rows" the reply's rows do not end, with "row" the one
row does not. The file has how many MiB its greediest client has taken. With "cut" it ends
the connection behind one result, of several that it was asked for. With "void" it answers each
query with a row that has no columns, but says once that its schema is right and it a pooler."""

import struct
import sys
import time

sys.dont_write_bytecode = True
from hostile import MIB, flood, serve_all  # pylint: disable=wrong-import-position

ENCRYPTION = (80877103, 80877104)  # TLS, GSS


def message(kind, body=b""):
    return kind + struct.pack("!I", len(body) + 4) + body


COLUMN = message(b"T", struct.pack("!H", 1) + b"a\0" + struct.pack("!IHIHIH", 0, 0, 25, 0xFFFF, 0, 0))
ROW = message(b"D", struct.pack("!HI", 1, 65500) + bytes(65500))


VOID = message(b"T", bytes(2)), message(b"D", bytes(2))
# Version, process, whether it is read-only, alone, shared, and pretends.
FINE = (message(b"T", struct.pack("!H", 6) + COLUMN[7:] * 6),
        message(b"D", struct.pack("!H", 6) + b"".join(b"\0\0\0\1" + value for value in b"3 7 0 0 1 0".split())))


def receive(stream):
    (size,) = struct.unpack("!I", stream.read(4))
    return stream.read(size - 4)


def answer_void(stream):
    """Each message by itself, until the client ends."""
    fine = set()  # statements
    columns, row = VOID
    while kind := stream.read(1):
        words = receive(stream).split(b"\0")
        if kind == b"P":
            (fine.add if b" FROM version" in words[1] else fine.discard)(words[0])
        elif kind == b"B":
            columns, row = FINE if words[1] in fine else VOID
        done = message(b"C", b"SELECT 1\0")
        idle = message(b"Z", b"I")
        stream.write({b"P": message(b"1"), b"B": message(b"2"), b"D": columns, b"E": row + done, b"S": idle,
                      b"Q": b"".join(VOID) + done + idle}.get(kind, b""))
        stream.flush()


def serve(connection):
    stream = connection.makefile("rwb")
    while struct.unpack("!I", receive(stream)[:4])[0] in ENCRYPTION:
        stream.write(b"N")
        stream.flush()
    stream.write(message(b"R", bytes(4)) + message(b"S", b"server_version\x0015.0\0"))
    if sys.argv[1] in ("cut", "void"):  # the library asks for these otherwise
        stream.write(message(b"S", b"in_hot_standby\0off\0") +
                     message(b"S", b"default_transaction_read_only\0off\0"))
    stream.write(message(b"Z", b"I"))
    stream.flush()
    if sys.argv[1] == "void":
        answer_void(stream)
        return
    asked = stream.read(1)
    receive(stream)
    if sys.argv[1] == "cut":
        stream.write((b"" if asked == b"Q" else message(b"1") + message(b"2")) + COLUMN +
                     message(b"C", b"SELECT 0\0"))
        stream.flush()
        time.sleep(0.2)  # so that the end comes by itself
        return
    stream.write((b"" if asked == b"Q" else message(b"1") + message(b"2")) + COLUMN)
    if sys.argv[1] == "row":
        stream.write(b"D" + struct.pack("!IHI", 0x3FFFFFF0, 1, 0x3FFFFFE6))

    def send():
        stream.write(ROW * (MIB // len(ROW)) if sys.argv[1] == "rows" else bytes(MIB))
        stream.flush()

    flood(send, sys.argv[2])


serve_all(serve)
