"""Listens and accepts nobody: what connects is never answered. Its port goes to standard output."""

import socket
import time

hole = socket.socket()
hole.bind(("127.0.0.1", 0))
hole.listen(64)
print(hole.getsockname()[1], flush=True)
time.sleep(600)
