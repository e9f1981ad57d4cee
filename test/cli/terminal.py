# SPDX-License-Identifier: Apache-2.0
"""Tests of mortise run on a pseudo-terminal: terminal.py NAME runs one of them."""
import codecs
import os
import pty
import re
import select
import signal
import sys
import time

MORTISE = os.environ["MORTISE"]


class Terminal:
    """A program that leads a session on a terminal of its own."""

    def __init__(self, *argv):
        self.seen = ""
        self.decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["PS1"] = "ready> "
            os.environ["TERM"] = "dumb"
            for number in (signal.SIGINT, signal.SIGQUIT):
                signal.signal(number, signal.SIG_DFL)
            os.execvp(argv[0], argv)

    def read(self, timeout):
        if not select.select([self.fd], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self.fd, 4096)
        except OSError:
            return False
        self.seen += self.decoder.decode(data)  # a character may come in two pieces
        return bool(data)

    def expect(self, pattern, seconds=60):
        """Waits for the pattern; drops what was seen up to its end."""
        end = time.monotonic() + seconds
        while True:
            match = re.search(pattern, self.seen)
            if match:
                self.seen = self.seen[match.end():]
                return match
            left = end - time.monotonic()
            if left <= 0 or (not self.read(left) and self.is_over()):
                raise AssertionError("no %r in %r" % (pattern, self.seen))

    def is_over(self):
        return not select.select([self.fd], [], [], 0)[0] or not self.read(0)

    def send(self, text):
        os.write(self.fd, text.encode())

    def wait(self):
        while self.read(60):
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def shell():
    terminal = Terminal("bash", "--norc", "--noprofile", "-i")
    terminal.expect("ready> ")
    return terminal


def queue_length(name):
    import json
    import subprocess
    out = subprocess.run([MORTISE, "ls", "--json", name], stdout=subprocess.PIPE, check=True)
    return len(json.loads(out.stdout))


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "never came true"
        time.sleep(0.02)


def status(pid):
    """State, parent and group of a process."""
    state, parent, group = open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[:3]
    return state, int(parent), int(group)


def until_reading(terminal, pid):
    """Until the process waits for input and the terminal's keys are its own."""
    until(lambda: status(pid)[0] == "S" and os.tcgetpgrp(terminal.fd) == status(pid)[2])


def foreground():
    terminal = Terminal(MORTISE, "run", "a", "--", "sh", "-c",
                        "ps -o pgid=,tpgid= -p $$; read line; echo got $line; exit 9")
    match = terminal.expect(r"(\d+) +(\d+)")
    assert match[1] == match[2], match[0]
    terminal.send("words\n")
    terminal.expect("got words")
    assert terminal.wait() == 9


def given_back():
    terminal = Terminal("sh", "-c", MORTISE + " run a -- true; ps -o pgid=,tpgid= -p $$; read line;"
                        " echo got $line; exit 8")
    match = terminal.expect(r"(\d+) +(\d+)")
    assert match[1] == match[2], match[0]
    terminal.send("words\n")
    terminal.expect("got words")
    assert terminal.wait() == 8


def interrupt():
    terminal = Terminal(MORTISE, "run", "a", "--", "sh", "-c", "echo begun; sleep 60")
    terminal.expect("begun")
    time.sleep(0.1)
    terminal.send("\x03")
    assert terminal.wait() == 130


def interrupt_waiting():
    holder = Terminal(MORTISE, "run", "a", "--", "sh", "-c", "echo begun; sleep 60")
    holder.expect("begun")
    waiter = Terminal(MORTISE, "run", "a", "--", "echo", "never")
    until(lambda: queue_length("a") == 2)
    waiter.send("\x03")
    assert waiter.wait() == 130
    assert queue_length("a") == 1
    assert "never" not in waiter.seen
    holder.send("\x03")
    assert holder.wait() == 130


def suspend():
    terminal = shell()
    terminal.send(MORTISE + " run a -- sh -c 'echo be''gun $$.; read line; echo got $line; exit 7'\n")
    pid = int(terminal.expect(r"begun (\d+)\.")[1])
    for _ in range(3):
        until_reading(terminal, pid)
        terminal.send("\x1a")
        terminal.expect("Stopped")
        terminal.expect("ready> ")
        assert queue_length("a") == 1
        terminal.send("echo al''ive\n")
        terminal.expect("alive")
        terminal.expect("ready> ")
        terminal.send("fg\n")
        terminal.expect("run a")
    until_reading(terminal, pid)
    terminal.send("words\n")
    terminal.expect("got words")
    terminal.expect("ready> ")
    terminal.send("echo co''de $?\n")
    terminal.expect("code 7")
    terminal.send("exit\n")
    terminal.wait()


def suspend_orphan():
    terminal = Terminal(MORTISE, "run", "a", "--", "sh", "-c", "echo begun; read line; echo got $line")
    terminal.expect("begun")
    time.sleep(0.1)
    terminal.send("\x1a")
    time.sleep(0.2)
    terminal.send("words\n")
    terminal.expect("got words")
    assert terminal.wait() == 0


def background():
    terminal = shell()
    terminal.send(MORTISE + " run a -- sh -c 'echo be''gun $$.; read line; echo got $line; exit 7' &\n")
    pid = int(terminal.expect(r"begun (\d+)\.")[1])
    until(lambda: status(status(pid)[1])[0] == "T")
    terminal.send("jobs\n")
    terminal.expect("Stopped")  # it asked for the terminal
    terminal.expect("ready> ")
    terminal.send("fg\n")
    terminal.expect("run a")
    until_reading(terminal, pid)
    terminal.send("words\n")
    terminal.expect("got words")
    terminal.expect("ready> ")
    terminal.send("echo co''de $?\n")
    terminal.expect("code 7")
    terminal.send("exit\n")
    terminal.wait()


def pipeline():
    terminal = shell()
    terminal.send(MORTISE + " run a -- sh -c 'echo da''ta' | sh -c 'cat; read line < /dev/tty; echo got $line'\n")
    terminal.expect("data")
    time.sleep(0.1)
    terminal.send("words\n")
    terminal.expect("got words")
    terminal.expect("ready> ")
    terminal.send(MORTISE + " run a -- sh -c 'echo as''king >&2; read line < /dev/tty; echo got $line' | cat\n")
    terminal.expect("asking")
    time.sleep(0.2)
    terminal.send("more\n")
    terminal.expect("got more")
    terminal.expect("ready> ")
    terminal.send("exit\n")
    terminal.wait()


def demo():
    terminal = Terminal(MORTISE, "demo")
    terminal.expect(r"\rwithout lock: +\d+ of 4000 steps")
    terminal.expect(r"\rwith lock: +\d+ of 4000 steps")
    terminal.expect(r"without lock: \d+ of 4000 updates lost; with lock: 0 of 4000 lost\r\n")
    assert terminal.wait() == 0


if __name__ == "__main__":
    globals()[sys.argv[1]]()
