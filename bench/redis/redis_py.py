# SPDX-License-Identifier: Apache-2.0
"""redis-py's Lock, acquired and released for so long: redis_py.py SECONDS URL [SLEEP].

Waits for a line of input first, so that several begin together. Prints one JSON object.
"""

import json
import statistics
import sys
import time

import redis

seconds, url = float(sys.argv[1]), sys.argv[2]
lock = redis.Redis.from_url(url).lock("claim", timeout=10,
                                      sleep=float(sys.argv[3]) if len(sys.argv) > 3 else 0.1)
lock.acquire()
lock.release()
print("ready", flush=True)
sys.stdin.readline()
times, begin = [], time.monotonic()
done = begin
while done < begin + seconds:
    before = done
    lock.acquire()
    lock.release()
    done = time.monotonic()
    times.append(done - before)
print(json.dumps({"acquisitions_per_s": len(times) / (done - begin), "count": len(times),
                  "cycle_us": statistics.median(times) * 1e6}))
