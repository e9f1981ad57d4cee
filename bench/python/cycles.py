# SPDX-License-Identifier: Apache-2.0
"""Acquires and releases a lock for so long: cycles.py LOCK URL NAME SECONDS

LOCK: mortise, exclusive, aio (all of the package in lang/python), kazoo, redis-py. Waits for a line
of input first, so that several begin together. Prints one JSON object."""

import asyncio
import json
import sys
import time


class Record:
    """The times that were measured; the first tenth of the time is not counted."""

    def __init__(self, seconds):
        print("ready", flush=True)
        sys.stdin.readline()
        self.now = time.monotonic()
        self.counted, self.end = self.now + seconds * 0.1, self.now + seconds * 1.1
        self.acquires, self.cycles = [], []

    def goes_on(self):
        return self.now < self.end

    def note(self, asked, got):
        self.now = time.monotonic()
        if asked >= self.counted:
            self.acquires.append(got - asked)
            self.cycles.append(self.now - asked)


def measure(seconds, acquire, release):
    record = Record(seconds)
    while record.goes_on():
        asked = record.now
        hold = acquire()
        got = time.monotonic()
        release(hold)
        record.note(asked, got)
    return record


async def of_tasks(url, name, seconds):
    from mortise import aio
    async with aio.Client(url) as client:
        lock = client.lock(name)
        (await lock.acquire()).release()
        record = Record(seconds)
        while record.goes_on():
            asked = record.now
            hold = await lock.acquire()
            got = time.monotonic()
            hold.release()
            record.note(asked, got)
        return record


def of_mortise(url, name, seconds, kind):
    import mortise
    with mortise.Client(url) as client:
        lock = client.exclusive(name) if kind == "exclusive" else client.lock(name)
        lock.acquire().release()
        return measure(seconds, lock.acquire, lambda hold: hold.release())


def of_kazoo(url, name, seconds):
    from kazoo.client import KazooClient
    client = KazooClient(hosts=url[len("zk://"):].split("?")[0])
    client.start()
    lock = client.Lock("/kazoo/" + name)
    lock.acquire()
    lock.release()
    record = measure(seconds, lock.acquire, lambda _: lock.release())
    client.stop()
    return record


def of_redis_py(url, name, seconds):
    import redis
    lock = redis.Redis.from_url(url.split("?")[0]).lock("redis-py/" + name, timeout=10)
    lock.acquire()
    lock.release()
    return measure(seconds, lock.acquire, lambda _: lock.release())


def main():
    who, url, name, seconds = *sys.argv[1:4], float(sys.argv[4])
    if who == "kazoo":
        record = of_kazoo(url, name, seconds)
    elif who == "redis-py":
        record = of_redis_py(url, name, seconds)
    elif who == "aio":
        record = asyncio.run(of_tasks(url, name, seconds))
    else:
        record = of_mortise(url, name, seconds, who)
    print(json.dumps({"acquire_us": [time * 1e6 for time in record.acquires],
                      "cycle_us": [time * 1e6 for time in record.cycles],
                      "acquisitions_per_s": len(record.cycles) / seconds}))


main()
