# SPDX-License-Identifier: Apache-2.0
"""Does to streams of NATS what an operator may, by the protocol itself.

    nats_client.py SERVER request SUBJECT [BODY]     prints the answer
    nats_client.py SERVER publish SUBJECT [BODY]     prints JetStream's acknowledgement
    nats_client.py SERVER streams                    prints the names of streams
    nats_client.py SERVER messages STREAM [SUBJECT]  each message: its number, subject and body
    nats_client.py SERVER delete STREAM NUMBER       a message
    nats_client.py SERVER delete_stream STREAM
    nats_client.py SERVER leader STREAM              the name of the server that leads the stream

SERVER is nats://[USER:PASSWORD@]HOST:PORT, and with several hosts the first that answers. An error
of JetStream's, a refusal, or no answer within 10 s ends it with 1."""

import base64
import json
import secrets
import socket
import sys
import urllib.parse


def fail(text):
    sys.exit(f"nats_client: {text}")


class Client:
    """One connection, one request at a time."""

    def __init__(self, url):
        login, _, hosts = url.split("://")[1].rpartition("@")
        self.stream = self.connect(hosts.split("?")[0].rstrip("/").split(","))
        self.stream.readline()  # INFO
        words = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True,
                 "lang": "python", "version": "0", "protocol": 1}
        if login:
            user, _, password = login.partition(":")
            words.update({"user": urllib.parse.unquote(user), "pass": urllib.parse.unquote(password)})
        self.answers = f"_INBOX.{secrets.token_hex(8)}"
        self.send(f"CONNECT {json.dumps(words)}\r\nSUB {self.answers}.* 1\r\nPING\r\n".encode())
        self.receive(b"PONG")
        self.count = 0

    @staticmethod
    def connect(hosts):
        for where in hosts:
            host, port = where.rsplit(":", 1)
            try:
                return socket.create_connection((host, int(port)), 10).makefile("rwb")
            except OSError:
                continue
        return fail("no server answers")

    def send(self, data):
        self.stream.write(data)
        self.stream.flush()

    def receive(self, word):
        """The arguments of the next line that begins so, and what follows it."""
        while line := self.stream.readline():
            verb, *rest = line.split()
            if verb == b"PING":
                self.send(b"PONG\r\n")
            elif verb == b"-ERR":
                fail(line.decode().strip())
            elif verb in (b"MSG", b"HMSG"):
                body = self.stream.read(int(rest[-1]) + 2)[:-2]
                if verb == b"HMSG":
                    body = body[int(rest[-2]):] or fail(body.decode().strip())
                return rest, body
            elif verb == word:
                return rest, b""
        return fail("the server ended the connection")

    def request(self, subject, body=""):
        self.count += 1
        data = body.encode()
        self.send(f"PUB {subject} {self.answers}.{self.count} {len(data)}\r\n".encode() + data + b"\r\n")
        return self.receive(b"MSG")[1].decode()

    def api(self, subject, **words):
        found = json.loads(self.request(f"$JS.API.{subject}", json.dumps(words) if words else ""))
        if "error" in found:
            fail(f"{subject}: {found['error']}")
        return found

    def messages(self, name, pattern=">"):
        number = 0
        while True:
            answer = json.loads(self.request(f"$JS.API.STREAM.MSG.GET.{name}",
                                             json.dumps({"seq": number + 1, "next_by_subj": pattern})))
            if "error" in answer:
                return
            number = answer["message"]["seq"]
            yield number, answer["message"]["subject"], base64.b64decode(answer["message"].get("data", ""))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    client, word, rest = Client(sys.argv[1]), sys.argv[2], sys.argv[3:]
    if word in ("request", "publish"):
        print(client.request(*rest))
    elif word == "streams":
        print("\n".join(client.api("STREAM.NAMES").get("streams") or []))
    elif word == "messages":
        for number, subject, body in client.messages(*rest):
            print(number, subject, body.decode("utf-8", "replace"))
    elif word == "delete":
        client.api(f"STREAM.MSG.DELETE.{rest[0]}", seq=int(rest[1]))
    elif word == "delete_stream":
        client.api(f"STREAM.DELETE.{rest[0]}")
    elif word == "leader":
        print(client.api(f"STREAM.INFO.{rest[0]}")["cluster"]["leader"])
    else:
        fail(f"no such word: {word}")


if __name__ == "__main__":
    main()
