# SPDX-License-Identifier: Apache-2.0
"""hostile_nats.py KIND FILE: a server of NATS that answers each request by what no server should; its
port goes to standard output. KIND:

info     a greeting without an end
line     the line before an answer has no end
message  an answer is said to have 1 GiB, and has no end
size     an answer is said to have 2 GiB less one byte: libnats reads outside its buffer
pings    it greets without end, and takes nothing
tls      it has its client begin with TLS, and says nothing more
tickets  each read finds another ticket, with a value of 40,000 bytes
junk     answers are no JSON, other JSON than JetStream's, or have numbers that cannot be

The file has how many MiB its greediest client has taken."""

import base64
import itertools
import json
import sys

sys.dont_write_bytecode = True
from hostile import MIB, flood, serve_all  # pylint: disable=wrong-import-position

KIND, TAKEN = sys.argv[1], sys.argv[2]
INFO = b'INFO {"server_id":"a","version":"2.9.10","headers":true,"max_payload":1048576,"jetstream":true}\r\n'
STREAM = b'{"config":{"num_replicas":1,"name":%s},"state":{"messages":%s},"cluster":%s}'
JUNK = itertools.cycle([
    b"", b"null", b"[]", b"{", b"\xff\xfe", b'"text"', b"[" * 10000, b'{"error":1}', b'{"error":{}}',
    b'{"error":{"code":"a","err_code":{},"description":[]}}', b'{"seq":-1}', b'{"seq":"a"}',
    b'{"seq":99999999999999999999999999}', b'{"stream":"a","seq":0}', b'{"message":null}',
    b'{"message":{"subject":1,"seq":-5,"data":{}}}',
    b'{"message":{"subject":"mortise.mortise.q.a.b","seq":7,"data":"!!!!"}}',
    b'{"message":{"subject":"mortise.mortise.q.a.b","seq":9223372036854775807,"data":"bW9ydGlzZQ=="}}',
    b'{"message":{"subject":"' + b"x" * 100000 + b'","seq":1,"data":"' + b"A" * 400000 + b'"}}',
    STREAM % (b"1", b"[]", b"7"), STREAM % (b"null", b"-1", b'{"leader":1}')])


def ticket(request):
    """The one at the sequence from which a read begins."""
    line = f"mortise1 mutex 1 1 0 1 {7:032x} {9:032x} 10000 label.\n".encode() + b"x" * 40000
    return json.dumps({"message": {
        "subject": f"mortise.mortise.q.mortise/a.{7:032x}", "seq": json.loads(request)["seq"],
        "data": base64.b64encode(line).decode()}}).encode()


def answer(connection, subject, request):
    if KIND == "tickets":
        body = ticket(request)
        connection.sendall(b"MSG %s 1 %d\r\n%s\r\n" % (subject, len(body), body))
    elif KIND == "junk":
        body = next(JUNK)
        connection.sendall(b"MSG %s 1 %d\r\n%s\r\n" % (subject, len(body), body))
    elif KIND == "size":
        connection.sendall(b"MSG %s 1 2147483647\r\nabc" % subject)
    elif KIND == "pings":
        flood(lambda: connection.sendall(b"PING\r\n" * (MIB // 6)), TAKEN)
    elif KIND == "message":
        connection.sendall(b"MSG %s 1 1073741824\r\n" % subject)
        flood(lambda: connection.sendall(b"x" * MIB), TAKEN)
    else:
        connection.sendall(b"MSG ")
        flood(lambda: connection.sendall(b"x" * MIB), TAKEN)


def serve(connection):
    if KIND == "info":
        connection.sendall(b"INFO {")
        flood(lambda: connection.sendall(b"x" * MIB), TAKEN)
        return
    if KIND == "tls":
        connection.sendall(INFO.replace(b'"jetstream"', b'"tls_required":true,"jetstream"'))
        while connection.recv(MIB):
            pass
        return
    connection.sendall(INFO)
    stream = connection.makefile("rb")
    while line := stream.readline():
        words = line.split()
        if words[0] == b"PING":
            connection.sendall(b"PONG\r\n")
        elif words[0] in (b"PUB", b"HPUB"):
            request = stream.read(int(words[-1]) + 2)
            if len(words) > 3:
                answer(connection, words[2], request)


serve_all(serve)
