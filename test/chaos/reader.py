# SPDX-License-Identifier: Apache-2.0
"""A lock client as they are often written: its lease is proven by reading.

    reader.py HOST:PORT DIRECTORY PROCESS HISTORY SESSION_MS

Queues as the recipe says, holds until its lease ends, and writes a history (history.h).
Right in all but the proof, a read of "/" each third of the session, dated from its sending.
It is here to be caught.
"""

import logging
import os
import sys
import time

from kazoo.client import KazooClient

hosts, directory, process, history, session = sys.argv[1:]
SESSION = int(session) * 1_000_000
log = os.open(history, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def note(at, kind, fence=0, until=0):
    os.write(log, f"{at} {kind} {process} {fence} {until}\n".encode())


def await_turn(client):
    """Waits until the own node is the first; its czxid."""
    path = client.create(directory + "/lock-", ephemeral=True, sequence=True, makepath=True)
    while min(client.get_children(directory)) != os.path.basename(path):
        time.sleep(0.01)
    return client.exists(path).czxid


def hold(client, fence):
    """Until the lease that the reads prove is over."""
    until = asked = now()
    answer = client.get_async("/")
    said = "got"
    while said == "got" or now() < until:
        if answer and answer.ready():
            if answer.successful():
                until = asked + SESSION
                note(asked, said, fence, until)
                said = "still"
            answer = None
        if not answer and now() > asked + SESSION // 3:
            asked = now()
            answer = client.get_async("/")
        time.sleep(0.005)
    note(until, "lost", fence)


logging.disable()  # that the connection was cut is no news
reader = KazooClient(hosts=hosts, timeout=int(session) / 1000)
reader.start(timeout=20)
note(now(), "ask")
hold(reader, await_turn(reader))
note(now(), "left")
os._exit(0)
