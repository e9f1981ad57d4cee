"""Takes turns on a kazoo lock: SERVERS PATH COUNTER-FILE TURNS [stock].

Stock kazoo calls its nodes __lock__, which Curator does not order rightly; with
_NODE_NAME and _EXCLUDE_NAMES set to Curator's, all three agree. (The second is needed:
without it kazoo counts nobody, and overlaps.) "stock" uses kazoo's own names and lets it
see ours, for a path that Curator does not share."""

import fcntl
import sys

from kazoo.client import KazooClient
from kazoo.recipe.lock import Lock


class CuratorNamedLock(Lock):
    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


def turn(lock, path):
    if not lock.acquire(timeout=60):
        sys.exit("no turn within a minute")
    with open(path, "a+", encoding="ascii") as file:
        try:
            # POSIX locks, as Java's FileLock: they exclude each other
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit("OVERLAP")
        file.seek(0)
        value = int(file.read().strip() or 0)
        file.seek(0)
        file.truncate()
        file.write(f"{value + 1}\n")
        file.flush()
        fcntl.lockf(file, fcntl.LOCK_UN)
    lock.release()


def main():
    servers, path, counter, turns = sys.argv[1:5]
    client = KazooClient(hosts=servers, timeout=10)
    client.start(timeout=20)
    if "stock" in sys.argv[5:]:
        lock = Lock(client, path, extra_lock_patterns=["-lock-"])
    else:
        lock = CuratorNamedLock(client, path)
    for _ in range(int(turns)):
        turn(lock, counter)
    client.stop()


main()
