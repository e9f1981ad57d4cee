# SPDX-License-Identifier: Apache-2.0
"""Between a client and the member of etcd at the port that is the first argument; its own port goes
to standard output. The second argument says how the member seems to behave:

term     each read of a session's key shows a new term of the cluster
late     the first removal gets no answer: when its client has given up it makes a file named
         `given_up`, and when a file named `go` is there it reaches the member, and makes `went`
cut      the first ticket is put, and the reply is the error of a gateway that lost the answer; a
         file named `was_cut` says so
again    the same of the second ticket
login    a login is refused by the error of a lease
slow     a login is answered after 1.5 s
null     the members announce a null in place of an address

A watch is never answered."""

import http.client
import http.server
import json
import os
import sys
import threading
import time

PORT, KIND = int(sys.argv[1]), sys.argv[2]
CUT = json.dumps({"error": "unexpected EOF", "code": 13, "message": "unexpected EOF"}).encode()
LOGIN = b'{"error":"etcdserver: requested lease not found","code":5}'
CUT_AT = {"cut": 1000, "again": 1001}  # of the tickets
terms, removals, tickets = (iter(range(1000, 1 << 30)) for _ in range(3))


def forward(path, body):
    member = http.client.HTTPConnection("127.0.0.1", PORT)
    member.request("POST", path, body, {"Content-Type": "application/json"})
    reply = member.getresponse()
    return reply.status, reply.read()


def hold_back(path, body):
    while not os.path.exists("go"):
        time.sleep(0.05)
    forward(path, body)
    open("went", "w").close()


class Between(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        removal = KIND == "late" and b"request_delete_range" in body
        if removal and next(removals) == 1000:
            threading.Thread(target=hold_back, args=(self.path, body), daemon=True).start()
            self.rfile.read(1)  # until the client ends the connection
            open("given_up", "w").close()
            return
        if self.path == "/v3/watch":
            self.rfile.read(1)
            return
        if KIND == "slow" and self.path == "/v3/auth/authenticate":
            time.sleep(1.5)
            status, reply = 200, b'{"token":"a"}'
        else:
            status, reply = forward(self.path, body)
        if KIND == "term" and b"count_only" in body:
            changed = json.loads(reply)
            changed["header"]["raft_term"] = str(next(terms))
            reply = json.dumps(changed).encode()
        if KIND in CUT_AT and b'"CREATE"' in body and next(tickets) == CUT_AT[KIND]:
            status, reply = 500, CUT
            open("was_cut", "w").close()
        if KIND == "login" and self.path == "/v3/auth/authenticate":
            status, reply = 404, LOGIN
        if KIND == "null" and self.path == "/v3/cluster/member/list":
            reply = b'{"members":[{"clientURLs":[null]}]}'
        self.send_response(status)
        self.send_header("Content-Length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Between)
print(server.server_address[1], flush=True)
server.serve_forever()
