# SPDX-License-Identifier: Apache-2.0
"""A kazoo lock by commands: SERVERS WHO SESSION; the commands are in holder.c.

Stock kazoo calls its nodes __lock__, which Curator does not order rightly; with
_NODE_NAME and _EXCLUDE_NAMES set to Curator's, all three agree. (The second is needed:
without it kazoo counts nobody, and overlaps.) "use NAME LOG stock" is kazoo as it stands, also its
read/write lock, for a path that Curator does not share. "lead" is acquire as an Election does it,
without the witness, and gives back by itself when the next command comes."""

import fcntl
import os
import sys
import time

from kazoo.client import KazooClient
from kazoo.recipe.election import Election
from kazoo.recipe.lock import Lock, ReadLock, WriteLock

WAIT = 120


class CuratorNamedLock(Lock):
    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


class Holder:
    def __init__(self, servers, who, session):
        self.who = who
        self.client = KazooClient(hosts=servers, timeout=float(session))
        self.client.start(timeout=20)
        self.name = self.path = self.log = self.lock = self.mutex = self.sides = None

    def say(self, text):
        print(text, flush=True)

    def use(self, name, path, kind="curator"):
        if self.log:
            self.log.close()
        self.name, self.path = name, path
        self.log = open(path, "a+b", buffering=0)
        self.mutex = self.lock = (Lock if kind == "stock" else CuratorNamedLock)(self.client, name)
        self.sides = {"read": ReadLock(self.client, name + "-sides"),
                      "write": WriteLock(self.client, name + "-sides")}
        self.say("using")

    def count(self, total):
        reading = self.lock is self.sides["read"]
        """One line more under the witness, unless there are `total`; the count."""
        try:
            # POSIX locks, as Java's FileLock: they exclude each other
            fcntl.lockf(self.log, fcntl.LOCK_NB | (fcntl.LOCK_SH if reading else fcntl.LOCK_EX))
        except OSError:
            self.say("OVERLAP")
            sys.exit(1)
        self.log.seek(-min(512, self.log.seek(0, os.SEEK_END)), os.SEEK_END)
        lines = self.log.read().decode().splitlines()
        value = (int(lines[-1].split()[0]) if lines else 0) + (not reading)
        if value <= total:
            side = "read" if reading else "write"
            self.log.write(f"{value} {side} {self.who} {self.czxid()} {self.lock.node} "
                           f"{time.monotonic_ns()}\n".encode())
        return value

    def czxid(self):
        return self.client.exists(f"{self.lock.path}/{self.lock.node}").czxid

    def release(self):
        fcntl.lockf(self.log, fcntl.LOCK_UN)
        self.lock.release()

    def acquire(self, **how):
        if not self.lock.acquire(**how):
            self.say("busy")
            return
        self.count(sys.maxsize)
        self.say(f"held {self.czxid()} {self.lock.node}")

    def turns(self, total, pause):
        turns = 0
        while True:
            self.lock.acquire(timeout=WAIT)
            over = self.count(total) > total or os.path.exists(self.path + ".stop")
            if not over:
                time.sleep(pause)
            self.release()
            if over:
                break
            turns += 1
        self.say(f"done {turns}")

    def lead(self):
        election = Election(self.client, self.name)
        if isinstance(self.lock, CuratorNamedLock):
            election.lock = self.lock  # its own sees kazoo's names alone
        election.run(self.led)
        self.say("released")

    def led(self):
        self.say("held - -")
        sys.stdin.readline()

    def obey(self, word, *rest):
        if word == "use":
            self.use(*rest)
        elif word == "acquire":
            self.acquire(timeout=WAIT)
        elif word in self.sides:
            self.lock = self.sides[word]
            self.acquire(timeout=WAIT)
        elif word == "try":
            self.acquire(blocking=False)
        elif word == "release":
            self.release()
            self.lock = self.mutex
            self.say("released")
        elif word == "lead":
            self.lead()
        elif word == "turns":
            self.turns(int(rest[0]), int(rest[1]) / 1000)
        else:
            sys.exit("no such command")


def main():
    holder = Holder(*sys.argv[1:4])
    for line in iter(sys.stdin.readline, ""):
        holder.obey(*line.split())
    holder.client.stop()


main()
