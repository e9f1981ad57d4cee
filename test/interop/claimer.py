#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same with redis-py's Lock: claimer.py URL NAME COUNTER ROUNDS LEASE LETTERS."""

import os
import sys

import redis

url, name, counter, rounds, lease, letters = sys.argv[1:]
client = redis.Redis.from_url(url)
lock = client.lock(name, timeout=int(lease), sleep=0.005)
with lock:
    pass
print("ready", flush=True)
sys.stdin.readline()
left, met = int(rounds), False
while left > 0 or not met:
    left -= 1
    with lock:
        os.close(os.open(counter + ".busy", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        with open(counter, "r+", encoding="ascii") as file:
            value = int(file.read())
            file.seek(0)
            file.write(f"{value + 1}\n")
        with open(counter + ".turns", "a", encoding="ascii") as file:
            file.write("p")
        if not met:
            with open(counter + ".turns", encoding="ascii") as file:
                met = set(letters) <= set(file.read())
        os.unlink(counter + ".busy")
