"""Listens, and never answers whoever connects. Its port goes to standard output; with an argument, so
many seconds later it goes on with how many had connected, else it accepts nobody."""

import socket
import sys
import time

hole = socket.socket()
hole.bind(("127.0.0.1", 0))
hole.listen(64)
print(hole.getsockname()[1], flush=True)
if len(sys.argv) == 1:
    time.sleep(600)
    sys.exit()
connections = []
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    hole.settimeout(max(end - time.monotonic(), 0.001))
    try:
        connections.append(hole.accept()[0])
    except TimeoutError:
        pass
print(len(connections))
