# SPDX-License-Identifier: Apache-2.0
"""Tests of mortise top on a pseudo-terminal of 24 lines of 80 columns: top.py NAME runs one."""
import fcntl
import os
import re
import struct
import subprocess
import sys
import termios

from terminal import MORTISE, Terminal


class Top(Terminal):
    def __init__(self, *options):
        super().__init__("sh", "-c", 'read go; exec env $WORDS "$@"', "sh", MORTISE, "top",
                         "--interval", "100ms", *options)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.fd)
        self.send("\n")

    def frame(self, wanted, unwanted=None, marked=None):
        """Waits for a screen with the one and without the other, and the mark there: its lines."""
        while True:
            text = self.expect(r"(?s)\x1b\[H(.*?)\x1b\[J").group(1)
            if marked and not re.search(r"\x1b\[7m" + marked, text):
                continue
            lines = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text).split("\r\n")
            assert len(lines) <= 24 and max(map(len, lines)) <= 80, lines
            text = "\n".join(lines)
            if re.search(wanted, text) and not (unwanted and re.search(unwanted, text)):
                return lines

    def end(self, code):
        self.expect(r"\x1b\[\?1049l")
        assert termios.tcgetattr(self.fd) == self.before
        assert self.wait() == code


def has_event(name):
    with open("events", encoding="utf-8") as file:
        return f'"event": "{name}"' in file.read()


def sorts():
    top = Top()
    top.frame(r"(?s)▾WAIT.*zbusy +2 .*calm +0 ")
    top.send("n")
    top.frame(r"(?s)calm .*zbusy ")
    top.send("w")
    top.frame(r"(?s)▾QUEUE.*zbusy .*calm ")
    top.send("q")
    top.end(0)


def moves():
    top = Top("--sort", "name")
    top.frame("zbusy", marked="calm")
    for key, lock in (("\x1b[B", "zbusy"), ("\x1b[B", "zbusy"), ("\x1b[A", "calm"), ("\x1b[F", "zbusy"),
                      ("\x1b[H", "calm"), ("\x1b[6~", "zbusy"), ("\x1b[5~", "calm"), ("\x1bOB", "zbusy"),
                      ("\x1b[1;5C", "zbusy"), ("g", "calm"), ("G", "zbusy")):
        top.send(key)
        top.frame("zbusy", marked=lock)
    top.send("w")  # it goes up, and the mark with it
    top.frame(r"(?s)zbusy .*calm ", marked="zbusy")
    top.send("\n")
    top.frame("PLACE", marked="holds")
    top.send("q")
    top.frame("calm", marked="zbusy")
    top.send("\x1b")
    top.end(0)


def names():
    top = Top("--sort", "name")
    lines = top.frame("(?s)shard.*shard")
    for line, number in zip(lines[2:4], ("10", "11")):
        assert re.match(rf"jobs/\S*…\S*-{number}-of-many ", line), line
        assert re.search(rf"  the.*….*{os.environ['PID' + number]}$", line), line
    top.send("b")
    top.frame("Break jobs/nightly-of-all-tenants/shard-10-of-many, fence")
    top.send("nq")
    top.end(0)


def helps():
    top = Top("--sort", "name")
    top.frame("NAME▾")
    top.send("?")
    top.frame("(?s)Keys.*longest wait.*Any key", "zbusy")
    top.send("q")
    top.frame("(?s)calm.*zbusy")
    top.send("/cal\n")
    top.frame("1 of 2 locks with cal,", "zbusy")
    top.send("\x1b")
    top.frame("(?s)2 locks,.*zbusy", "with")
    top.send("/zb")
    top.frame("1 of 2 locks with zb_,", "calm")
    top.send("\x1b")
    top.frame("(?s)2 locks,.*calm", "with")
    top.send("/zb\n")
    top.frame("with zb,", "calm")
    top.send("q")
    top.frame("calm", "with")
    top.send("q")
    top.end(0)


def shows_the_agent():
    top = Top()
    lines = top.frame("agent: .* 1 held; 1 grants, 0 refused, 0 ended", marked="a ")
    assert re.search("^1 locks, 1 held", lines[0]) and lines[1].startswith("agent: "), lines
    top.send("\n")
    top.frame("PLACE", "agent:", marked="holds")
    top.send("q")
    top.frame("agent: .* 2 tickets, 1 held; 1 grants", marked="a ")
    top.send("q")
    top.end(0)


def counts():
    top = Top()
    top.frame("CHG/S")
    top.send("?")
    top.frame("CHG/S +changes of the holder a second, those that were seen: at least so many")
    top.send("qq")
    top.end(0)


def coloured(*environment):
    """The newest frame of a top that sees it all, with all escapes."""
    os.environ["WORDS"] = " ".join(environment)
    top = Top()
    text = top.expect(r"(?s)\x1b\[H((?:(?!\x1b\[H).)*zbusy .*?)\x1b\[J").group(1)
    top.send("q")
    top.end(0)
    return text


def colours():
    text = coloured("TERM=xterm", "NO_COLOR=")
    assert re.search(r"\x1b\[1mNAME", text) and re.search(r"\x1b\[33m(\x1b\[7m)?zbusy", text), text
    assert not re.search(r"\x1b\[3.m(\x1b\[7m)?calm", text), text
    for none in (("TERM=xterm", "NO_COLOR=1"), ("TERM=dumb",)):
        text = coloured(*none)
        assert not re.search(r"\x1b\[(1|33)m", text), text


def ages():
    top = Top("--sort", "time")
    top.frame(r"(?s)zbusy .*calm ")
    os.kill(int(os.environ["BUSY"]), 15)
    top.frame(r"(?s)calm .*zbusy +1 ")  # who follows has waited for longer, but not held
    top.send("q")
    top.end(0)


def hangs():
    top = Top()
    top.frame("locks")
    subprocess.run([*os.environ["PAUSE"].split()], check=True, stdout=subprocess.DEVNULL)
    while top.read(1):
        pass
    top.seen = ""
    top.send("\x03")
    drawn = top.expect(r"(?s)(.*?)\x1b\[\?1049l").group(1)
    assert "\x1b[H" not in drawn  # as it is when it has heard that the store does not answer
    assert top.wait() == 130


def filters():
    top = Top("--sort", "name")
    top.frame("zbusy")
    top.send("/cal")
    top.frame("with cal", "zbusy")
    top.send("\x7f\x7f\x7f\n")
    top.frame("zbusy")
    top.send("\x03")
    top.end(130)


def queue():
    top = Top()
    top.frame("zbusy")
    top.send("\n")
    lines = top.frame(r"(?s)holds .*\n1 .*\n2 ")
    assert lines[0] == "zbusy" and not any("calm" in line for line in lines), lines
    top.send("\x1b[B")
    top.send("b")
    top.frame(r"Break zbusy, fence [1-9][0-9]*\? y/n")
    top.send("y")  # the first waiter's ticket: it queues again, behind the second
    top.frame("taken away")
    top.send("q")
    top.frame("calm")
    top.send("q")
    top.end(0)


def previous():
    top = Top()
    top.frame("zbusy")
    top.send("\n")
    top.frame(r"(?s)holds .*\n1 .*\n2 ")
    os.kill(int(os.environ["BUSY"]), 15)
    lines = top.frame(r"(?s)holds .*\n1 .*HELD +AGO +FENCE +WHO.*\nbefore +[0-9.]+s +[0-9.]+s ")
    assert any(re.match(rf"before .* pid {os.environ['BUSY']}$", line) for line in lines), lines
    top.send("qq")
    top.end(0)


def operates():
    top = Top("--filter", "zbusy")
    top.frame("zbusy")
    top.send("r")
    top.frame("Ask to give up zbusy, fence")
    top.send("y")
    top.frame("asked")
    while not has_event("revoke"):  # told before the holder is looked for in vain
        top.frame("zbusy")
    top.send("b")
    top.frame("Break zbusy, fence")
    top.send("n")
    top.frame("w t n c sort")
    top.send("b")
    top.frame("Break zbusy, fence")
    top.send("y")
    top.frame("taken away")
    os.kill(top.pid, 15)
    top.end(143)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
