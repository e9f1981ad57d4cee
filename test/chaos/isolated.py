# SPDX-License-Identifier: Apache-2.0
"""How long a leader that is cut off from the other servers acknowledges what it is asked (ZK-30).

A sync is no vote: a leader answers it by itself until it notices that it is alone. Measured here is
when the newest acknowledged sync and read were sent, beside when another server leads; by run,
--scene isolated_syncs. In seconds since the cut.
"""

import logging
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException
from kazoo.handlers.threading import KazooTimeoutError

LIMIT = 60  # seconds; the machine may be busy


class Asker(threading.Thread):
    """Asks one thing again and again; `last` is when the newest that was answered was sent."""

    def __init__(self, ask):
        super().__init__(daemon=True)
        self.ask, self.last, self.over = ask, 0.0, False

    def run(self):
        while not self.over:
            asked = time.monotonic()
            try:
                self.ask().get(timeout=1)
                self.last = asked
            except (KazooException, KazooTimeoutError):
                time.sleep(0.02)
            time.sleep(0.005)


def await_other(ensemble, leader):
    """When another server leads; None: never."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if any(ensemble.mode(n) == "leader" for n in range(3) if n != leader):
            return time.monotonic()
        time.sleep(0.02)
    return None


def measure(network, ensemble, session):
    """Cuts the leader off once: the newest sync, the newest read, and the other leader."""
    logging.disable()  # that the connection is cut is no news
    ensemble.await_whole()
    leader = ensemble.leader()
    client = KazooClient(hosts=ensemble.hosts[leader], timeout=session / 1000)
    client.start(timeout=LIMIT)
    askers = [Asker(lambda: client.sync_async("/")), Asker(lambda: client.get_async("/"))]
    for asker in askers:
        asker.start()
    time.sleep(1.5)
    cut = time.monotonic()
    network.cut([leader + 1], [h for h in (1, 2, 3) if h != leader + 1])
    other = await_other(ensemble, leader)
    time.sleep(3)  # it may be the later one
    for asker in askers:
        asker.over = True
    network.heal()
    client.stop()
    return [asker.last - cut for asker in askers], other and other - cut
