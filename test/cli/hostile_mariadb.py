# SPDX-License-Identifier: Apache-2.0
"""A MariaDB server that lets everybody in and answers each query with a row of one column.
Its port goes to standard output. With an argument "PLUGIN FILE" it asks for the password by that
plugin of the client's, and writes to the file what it gets; that it was asked, and what the client
can do, is its first line. With an argument "progress" a report of progress is its first packet.
With "rows FILE" or "columns FILE" a query's rows or columns do not end; the file has how many MiB
its greediest client has taken."""

import struct
import sys

sys.dont_write_bytecode = True
from hostile import flood, serve_all  # pylint: disable=wrong-import-position

OK = b"\0\0\0\2\0\0\0"
END = b"\xfe\0\0\2\0"
PROGRESS = b"\xff\xff\xff\1\1\1" + bytes(3) + b"\1a"
MORE = b"\xfe\0\0\x0a\0"


def text(value):
    return bytes([len(value)]) + value


class Client:
    """One connection: packets have a length of three bytes and a number."""

    def __init__(self, connection):
        self.stream = connection.makefile("rwb")
        self.number = 0

    def send(self, *packets):
        for packet in packets:
            self.stream.write(struct.pack("<I", len(packet))[:3] + bytes([self.number]) + packet)
            self.number = (self.number + 1) % 256
        self.stream.flush()

    def receive(self):
        try:
            head = self.stream.read(4)
        except ConnectionError:
            return None
        if len(head) < 4:
            return None
        self.number = (head[3] + 1) % 256
        return self.stream.read(head[0] | head[1] << 8 | head[2] << 16)

    def flood(self):
        column = (text(b"def") + text(b"") * 3 + text(b"a") + text(b"") + b"\x0c" +
                  struct.pack("<HIBHBxx", 45, 4, 0xFD, 0, 0))
        self.send(b"\1")
        packet = column + bytes(60000) if sys.argv[1] == "columns" else b"\xfd\0\0\1" + bytes(65536)
        if sys.argv[1] == "rows":
            self.send(column, END)
        flood(lambda: self.send(*[packet] * 16), sys.argv[2])

    def serve(self):
        capabilities = 0x000FF7DF
        if sys.argv[1:] == ["progress"]:
            self.send(PROGRESS)
        self.send(b"\x0a5.5.5-10.11.6-MariaDB\0" + struct.pack("<I", 7) + b"12345678\0" +
                  struct.pack("<HBHH", capabilities & 0xFFFF, 45, 2, capabilities >> 16) +
                  b"\x15" + bytes(10) + b"123456789012\0mysql_native_password\0")
        login = self.receive()
        if login is None:
            return
        if len(sys.argv) > 2 and sys.argv[1] not in ("rows", "columns"):
            self.send(b"\xfe" + sys.argv[1].encode() + b"\0")
            answer = self.receive()
            with open(sys.argv[2], "ab") as file:
                files = struct.unpack("<I", login[:4])[0] & 128
                file.write(b"asked, %s\n%s\n" % (b"files" if files else b"no files", answer or b""))
        self.send(OK)
        while packet := self.receive():
            if packet[:1] == b"\x03" and sys.argv[1:2] in (["rows"], ["columns"]):
                self.flood()
            elif packet[:1] == b"\x03":
                more = packet.rstrip(b"; ").count(b";")
                column = (text(b"def") + text(b"") * 3 + text(b"a") + text(b"") + b"\x0c" +
                          struct.pack("<HIBHBxx", 45, 4, 0xFD, 0, 0))
                for left in range(more, -1, -1):
                    end = END if left == 0 else MORE
                    self.send(b"\1", column, end, text(b"1" + b"A" * 99), end)
            else:
                self.send(OK)


serve_all(lambda connection: Client(connection).serve())
