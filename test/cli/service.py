# SPDX-License-Identifier: Apache-2.0
"""Starts a service as systemd does: service.py [--listen PATH [PATH]] COMMAND...

Opens a socket for --listen as descriptor 3 and says so in the environment, as for a unit with a
socket. Else it waits for READY=1 of the command, as for Type=notify, and prints "ready".
"""
import os
import socket
import sys


def listen(paths, command):
    sockets = [socket.socket(socket.AF_UNIX) for _ in paths]
    for number, (one, path) in enumerate(zip(sockets, paths)):
        one.bind(path)
        one.listen()
        if one.fileno() != 3 + number:
            os.dup2(one.fileno(), 3 + number)
        os.set_inheritable(3 + number, True)
    os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS=str(len(paths)))
    os.execvp(command[0], command)


def wait_until_ready(command):
    path = os.environ["T"] + "/notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(path)
        told.settimeout(30)
        pid = os.fork()
        if pid == 0:
            os.environ["NOTIFY_SOCKET"] = path
            os.execvp(command[0], command)
        assert told.recv(4096) == b"READY=1\n"
        print("ready", flush=True)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(os.environ["T"] + "/agent.sock") # it serves by then
        os.kill(pid, 15)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


if sys.argv[1] == "--listen":
    rest = sys.argv[2:]
    end = rest.index("--")
    listen(rest[:end], rest[end + 1:])
else:
    wait_until_ready(sys.argv[1:])
