# SPDX-License-Identifier: Apache-2.0
"""kazoo's lock: measured (SERVERS PATH SECONDS), or once around a command (SERVERS PATH once)."""

import json
import statistics
import subprocess
import sys
import time

from kazoo.client import KazooClient

client = KazooClient(hosts=sys.argv[1])
client.start()
lock = client.Lock(sys.argv[2])
if sys.argv[3] == "once":
    with lock:
        subprocess.call(["true"])
else:
    acquires, cycles = [], []
    for warm in (True, False):
        end = time.monotonic() + (0.5 if warm else float(sys.argv[3]))
        acquires.clear()
        cycles.clear()
        while time.monotonic() < end:
            asked = time.monotonic()
            lock.acquire()
            got = time.monotonic()
            lock.release()
            acquires.append(got - asked)
            cycles.append(time.monotonic() - asked)
    print(json.dumps({"acquire_us": {"p50": statistics.median(acquires) * 1e6},
                      "cycle_us": {"p50": statistics.median(cycles) * 1e6}}))
client.stop()
