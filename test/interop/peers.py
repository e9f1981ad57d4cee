# SPDX-License-Identifier: Apache-2.0
"""Processes that take turns, ours and the peers', and what their logs must show.

The commands and the log's lines are described in holder.c."""

import collections
import os
import queue
import shutil
import socket
import subprocess
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
JARS = ["curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute",
        "slf4j-api", "slf4j-nop", "guava", "netty-all", "netty-buffer", "netty-codec",
        "netty-common", "netty-handler", "netty-resolver", "netty-transport",
        "netty-transport-native-epoll", "netty-transport-native-unix-common"]
CLASSPATH = ":".join(f"/usr/share/java/{jar}.jar" for jar in JARS)
PYTHON = "/usr/bin/python3"  # the system's, which has Debian's kazoo
LIMIT = 150

Line = collections.namedtuple("Line", "count side who czxid node time")


class Fault(Exception):
    """A fault that a case found."""


def require(truth, text):
    if not truth:
        raise Fault(text)


class Peer:
    """A process by commands; its log messages are kept apart from its answers."""

    def __init__(self, command, who, environment=None):
        self.who = who
        self.logged = []
        self.lines = queue.Queue()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env=environment)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            if line.startswith("log "):
                self.logged.append(line[4:].strip())
            else:
                self.lines.put(line.strip())
        self.lines.put("has ended")

    def send(self, text):
        try:
            self.process.stdin.write(text + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # its end is the answer

    def answer(self, expected, limit=LIMIT):
        """The next line, which begins with this word; the words behind it."""
        try:
            line = self.lines.get(timeout=limit)
        except queue.Empty:
            raise Fault(f"{self.who} has not said \"{expected}\" for {limit} s") from None
        if line.split(" ")[0] != expected:
            time.sleep(0.2)  # a trace has more lines
            while not self.lines.empty() and len(line) < 1500:
                line += "\n" + self.lines.get()
            raise Fault(f"{self.who} said, instead of \"{expected}\": {line}")
        return line.split(" ")[1:]

    def ask(self, text, expected):
        self.send(text)
        return self.answer(expected)

    def silent(self, seconds=0.2):
        """Nothing has been said for so long, and so nothing been granted."""
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            return
        raise Fault(f"{self.who} was to wait, and said: {line}")

    def kill(self):
        self.process.kill()
        self.process.wait()


class Fleet:
    """Starts peers on one server, and ends them."""

    def __init__(self, holder, uri, place):
        self.holder, self.uri, self.place = holder, uri, place
        self.servers = uri[len("zk://"):]
        self.peers = []
        self.has_curator = bool(shutil.which("javac")
                                and os.path.exists("/usr/share/java/curator-recipes.jar"))
        self.has_kazoo = subprocess.run([PYTHON, "-c", "import kazoo"], capture_output=True,
                                        check=False).returncode == 0
        if self.has_curator:
            subprocess.run(["javac", "-nowarn", "-cp", CLASSPATH, "-d", place,
                            os.path.join(HERE, "CuratorHolder.java")], check=True)

    def start(self, kind, session=10, layout="curator"):
        who = f"{kind}-{len(self.peers)}"
        if kind == "mortise":
            command = [self.holder, f"{self.uri}?namespace=&session={session}s&layout={layout}",
                       who]
        elif kind == "kazoo":
            command = [PYTHON, os.path.join(HERE, "kazoo_holder.py"), self.servers, who,
                       str(session)]
        else:
            command = ["java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                       "-Xshare:auto", "-cp", self.place + ":" + CLASSPATH, "CuratorHolder",
                       self.servers, who, str(session * 1000)]
        peer = Peer(command, who)
        self.peers.append(peer)
        return peer

    def log(self, name):
        return os.path.join(self.place, name)

    def use(self, peers, name, *words):
        """All of these work on this name from now on; its path."""
        path = f"/fleet/{name}"
        for peer in peers:
            peer.send(" ".join(["use", path, self.log(name), *words]))
        for peer in peers:
            peer.answer("using")
        return path

    def read(self, name):
        with open(self.log(name), encoding="ascii") as file:
            return [Line(int(count), side, who, int(czxid), node, int(moment))
                    for count, side, who, czxid, node, moment in map(str.split, file)]

    def watched(self, path):
        """The nodes at or below a path that anybody watches, as the server says."""
        host, port = self.servers.split(":")
        with socket.create_connection((host, int(port)), 10) as server:
            server.sendall(b"wchp")
            text = b"".join(iter(lambda: server.recv(65536), b"")).decode()
        return {line for line in text.splitlines() if line.startswith(path)}

    def stop(self):
        """Kills a peer that has not ended a while after its input did: it may wait for ever."""
        for peer in self.peers:
            peer.process.stdin.close()
        end = time.monotonic() + 10
        for peer in self.peers:
            try:
                peer.process.wait(timeout=max(0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                peer.kill()


def check_counts(lines):
    """Each writer counts one on from the one before: two at once would count alike."""
    count = 0
    for line in lines:
        count += line.side == "write"
        require(line.count == count, f"{line.who} counted {line.count}, not {count}")


def check_order(lines):
    """A ticket queued before a writer's held before it; a ticket queued later held after it."""
    newest, newest_writer = 0, 0
    sequence = ""
    for line in lines:
        writing = line.side == "write"
        require(line.czxid > (newest if writing else newest_writer),
                f"{line.who} ({line.side}, {line.czxid}) had its turn after one that came later")
        newest = max(newest, line.czxid)
        if writing:
            newest_writer = line.czxid
        if writing and line.node != "-":
            require(line.node[-10:] > sequence, f"{line.node} came after sequence {sequence}")
            sequence = line.node[-10:]


def check_shares(lines, peers):
    """Nobody starves: none has less than half its share."""
    shares = collections.Counter(line.who for line in lines)
    least = len(lines) // len(peers) // 2
    for peer in peers:
        require(shares[peer.who] >= least,
                f"{peer.who} had {shares[peer.who]} of {len(lines)} turns")
    return min(shares.values()), max(shares.values())
