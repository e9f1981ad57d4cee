# SPDX-License-Identifier: Apache-2.0
"""Clients of an agent and commands on its store contend for one lock, while agents and clients are
killed and clients stand still. A lock of the kernel on a file is the witness: only the holder takes
it, without waiting, so a second holder finds it taken.

    agent_contest.py MORTISE DIRECTORY SECONDS      prints counts; ends with 1 if two held at once
"""
import fcntl
import os
import random
import signal
import socket
import subprocess
import sys
import time

CLIENTS, COMMANDS = 6, 2
PAUSE_MAX = 2  # seconds that a client stands still: far less than the lease of 5


def is_taken(path):
    with open(path, "a", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def hold(directory, seed, seconds):
    """Holds the witness for this time, and meanwhile a file that says whose hold it is."""
    with open(f"{directory}/holding{seed}", "a", encoding="ascii") as mine, \
            open(directory + "/witness", "a", encoding="ascii") as file:
        fcntl.flock(mine, fcntl.LOCK_EX)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            time.sleep(seconds)
        except BlockingIOError:
            with open(directory + "/overlaps", "a", encoding="ascii") as found:
                found.write("1\n")


class Lines:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.bytes = b""

    def call(self, line):
        self.socket.sendall(line.encode() + b"\r\n")
        while b"\n" not in self.bytes:
            got = self.socket.recv(4096)
            if not got:
                raise EOFError
            self.bytes += got
        reply, self.bytes = self.bytes.split(b"\n", 1)
        return reply.decode().strip()


def client(directory, seed):
    """Takes the lock again and again, from whichever agent there is."""
    draw = random.Random(seed)
    log = open(f"{directory}/client{seed}", "a", encoding="ascii")
    while True:
        try:
            agent = Lines(directory + "/agent.sock")
            while True:
                fence = agent.call("LOCK contest -1")
                if fence[0] != ":":
                    break
                hold(directory, seed, draw.random() / 50)
                agent.call(f"UNLOCK contest {fence[1:]}")
                log.write("1\n")
                log.flush()
        except (OSError, EOFError):
            time.sleep(0.05)


class Contest:
    def __init__(self, mortise, directory):
        self.mortise, self.directory = mortise, directory
        self.url = f"sqlite:{directory}/locks.db"
        self.draw = random.Random(int(time.time()))
        self.stopped = {}
        self.agents = self.killed = self.paused = self.holders = 0
        self.agent = self.start_agent()
        self.clients = [self.start_client(n) for n in range(CLIENTS)]
        command = ('while :; do "$0" run -w 60 --url "$1" contest -- flock -n -E 9 "$2/witness" '
                   'sleep 0.002; case $? in 0) echo 1 >>"$2/command$3";; 9) echo 1 >>"$2/overlaps";; '
                   'esac; done')
        self.commands = [subprocess.Popen(
            ["sh", "-c", command, mortise, self.url, directory, str(n)],
            stderr=subprocess.DEVNULL, start_new_session=True) for n in range(COMMANDS)]

    def start_agent(self):
        self.agents += 1
        return subprocess.Popen([self.mortise, "agent", "--url", self.url, "--socket",
                                 self.directory + "/agent.sock"], stdout=subprocess.DEVNULL)

    def start_client(self, number):
        return subprocess.Popen([sys.executable, __file__, "client", self.directory, str(number)])

    def resume_due(self, now):
        for pid in [pid for pid, due in self.stopped.items() if now >= due]:
            del self.stopped[pid]
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass

    def stop(self, number, until):
        pid = self.clients[number].pid
        os.kill(pid, signal.SIGSTOP)
        self.stopped[pid] = until
        self.paused += 1

    def stop_holder(self, until):
        """Stops a client that holds, if one does within a second: it goes on too late."""
        end = time.monotonic() + 1
        while time.monotonic() < end:
            number = self.draw.randrange(CLIENTS)
            self.stop(number, until)
            if is_taken(f"{self.directory}/holding{number}"):
                self.holders += 1
                return
            self.resume_due(until)  # it does not hold

    def trouble(self, now):
        number = self.draw.randrange(CLIENTS)
        pid = self.clients[number].pid
        if self.draw.random() < 0.7:
            self.stopped.pop(pid, None)
            self.clients[number].kill()
            self.clients[number].wait()
            self.clients[number] = self.start_client(number)
            self.killed += 1
        elif not self.stopped:
            self.stop(number, now + self.draw.random() / 4)

    def run(self, seconds):
        end = time.monotonic() + seconds
        next_agent = time.monotonic() + 3
        while time.monotonic() < end:
            now = time.monotonic()
            time.sleep(self.draw.random() * 0.2)
            self.resume_due(now)
            self.trouble(now)
            if now >= next_agent:
                self.stop_holder(now + PAUSE_MAX)
                self.agent.kill()
                self.agent.wait()
                self.agent = self.start_agent()
                next_agent = now + 9

    def end(self):
        for process in self.commands:
            os.killpg(process.pid, signal.SIGKILL)
        for process in [*self.clients, self.agent]:
            process.kill()
        for process in [*self.commands, *self.clients, self.agent]:
            process.wait()

    def total(self, prefix):
        total = 0
        for name in os.listdir(self.directory):
            if name.startswith(prefix):
                with open(f"{self.directory}/{name}", encoding="ascii") as file:
                    total += len(file.readlines())
        return total

    def report(self):
        grants, runs = self.total("client"), self.total("command")
        overlaps = 0
        if os.path.exists(self.directory + "/overlaps"):
            with open(self.directory + "/overlaps", encoding="ascii") as file:
                overlaps = len(file.readlines())
        print(f"{grants} holds by {self.agents} agents, {runs} by commands; {self.killed} clients "
              f"killed, {self.paused} stopped, {self.holders} that held when their agent was killed: "
              f"{overlaps} overlaps")
        return 1 if overlaps > 0 or grants == 0 or runs == 0 else 0


def main():
    if sys.argv[1] == "client":
        return client(sys.argv[2], int(sys.argv[3]))
    contest = Contest(sys.argv[1], sys.argv[2])
    try:
        contest.run(float(sys.argv[3]))
    finally:
        contest.end()
    return contest.report()


sys.exit(main())
