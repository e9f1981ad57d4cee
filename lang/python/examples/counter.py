# SPDX-License-Identifier: Apache-2.0
"""Adds 1 to the number in a file, safely however many do it at the same time: counter.py FILE

The store is $MORTISE_URL, or a file of this user."""

import sys
from pathlib import Path

import mortise


def main() -> int:
    path = Path(sys.argv[1])
    with mortise.Client() as client:
        try:
            with client.lock("counter", timeout=5) as hold:
                number = int(path.read_text()) if path.exists() else 0
                hold.check()  # LostError: another may be here by now
                path.write_text(f"{number + 1}\n")
                print("fence", hold.fence)
        except mortise.LockTimeoutError as fault:
            print(f"counter: {fault}", file=sys.stderr)
            return 75
    return 0


if __name__ == "__main__":
    sys.exit(main())
