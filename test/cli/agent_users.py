# SPDX-License-Identifier: Apache-2.0
"""Clients of mortise agent that are other users, and hostile ones: agent_users.py NAME [ARGUMENTS]
runs one test at $T/agent.sock, as the user who calls it."""
import os
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from agent import PATH, Client  # pylint: disable=wrong-import-position

PATIENCE = 10  # seconds, on a busy machine; each call takes milliseconds on an idle one


def until(condition):
    """The agent sees an end as soon as it runs."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_served():
    try:
        return Client().call("PING") == "PONG"
    except OSError:  # it was ended before
        return False


def call():
    """The replies to these lines, one a line."""
    client = Client()
    for line in sys.argv[2:]:
        print(client.call(line))


def hold():
    client = Client()
    print(client.call(f"LOCK {sys.argv[2]} 0"), flush=True)
    time.sleep(600)


def is_refused_often():
    for _ in range(50):
        assert Client().reply().startswith("NOPERM ")


def is_refused_a_verb_often():
    client = Client()
    for _ in range(50):
        assert client.call("LOCK private 0").startswith("NOPERM ")


def has_his_connections_alone():
    mine = [Client() for _ in range(3)]
    assert all(client.call("PING") == "PONG" for client in mine)
    assert Client().reply().startswith("FULL ")
    mine.pop().close()
    until(is_served)


def has_his_tickets_alone():
    a, b = Client(), Client()
    fences = [a.call(f"LOCK own/{i} 0") for i in range(4)]
    assert all(fence > 0 for fence in fences)
    assert b.call("LOCK own/4 0").startswith("FULL user "), "tickets are of the user"
    assert a.call(f"UNLOCK own/0 {fences[0]}") == "OK"
    assert b.call("LOCK own/0 0") > 0
    assert a.call("LOCK own/9 0").startswith("FULL ")
    b.close()
    until(lambda: isinstance(a.call("LOCK own/5 0 TTL 3600000"), int))
    assert 0 < a.call("HELD own/5") <= 30000, "and a hold lasts as long as the policy has it"


def has_his_names_and_waiters_alone():
    clients = [Client() for _ in range(3)]
    assert clients[0].call("LOCK own/0 0") > 0 and clients[0].call("LOCK own/1 0") > 0
    assert clients[0].call("LOCK own/2 0").startswith("FULL "), "a third name"
    clients[1].send("LOCK own/0 -1")
    assert not clients[1].has_reply(0.2)
    assert clients[2].call("LOCK own/0 -1").startswith("FULL "), "a second waiter"


def has_his_bytes_alone():
    clients = [Client() for _ in range(3)]
    line = b"ECHO " + b"x" * 4000 + b"\r\n"
    for client in clients:
        client.socket.settimeout(1)
    try:
        for _ in range(400):
            clients[0].socket.sendall(line)
        assert False, "he is ended"
    except (TimeoutError, BrokenPipeError, ConnectionResetError):
        pass
    assert clients[1].call("PING") == "PONG", "by the connection that has them"


def serves_root_beside_many_users():
    """Numbers of users beyond what the agent remembers, each refused: others are served all the same."""
    for uid in range(100000, 105000):
        os.seteuid(uid)
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(PATH)
            assert one.recv(100).startswith(b"-NOPERM ")
        os.seteuid(0)
    assert Client().call("LOCK deploy 0") > 0


def has_many_connections():
    clients = [Client() for _ in range(int(sys.argv[2]))]
    assert all(client.call("PING") == "PONG" for client in clients)


def follows_the_policy():
    """By a connection, and a lock, of before: each line of the input is a policy that holds now."""
    client = Client()
    fence = client.call("LOCK www/a 0")
    assert client.call("LOCK new/a 0").startswith("NOPERM ")
    print("ready", flush=True)
    sys.stdin.readline()
    assert client.call("LOCK www/b 0").startswith("NOPERM "), "what was allowed"
    assert client.call("LOCK games/a 0").startswith("NOPERM "), "by another's rule"
    assert client.call("HELD www/a") > 0, "what somebody has he keeps"
    other = client.call("LOCK new/a 0")
    assert client.call("LOCK new/b 0").startswith("FULL "), "a limit of two tickets, and he has two"
    assert client.call(f"UNLOCK www/a {fence}") == "OK" and client.call(f"UNLOCK new/a {other}") == "OK"
    print("ready", flush=True)
    sys.stdin.readline()
    assert client.call("LOCK new/a 0") > other, "a wrong policy changes nothing"


# ---------------------------------------------------------------------------- hostile


def flood(line, reads):
    client = None
    while True:
        try:
            client = client or Client()
            client.socket.settimeout(0.1)
            client.socket.sendall(line * 50)
            if reads:
                client.socket.recv(65536)
        except (OSError, EOFError):
            client = None


def connect_without_end():
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as one:
                one.connect(PATH)
        except OSError:
            pass


def stall_with_half_frames():
    frame = b"*3\r\n$4\r\nLOCK\r\n$6\r\ndeploy\r\n$1\r\n"
    mine = []
    while True:
        try:
            one = socket.socket(socket.AF_UNIX)
            one.connect(PATH)
            one.sendall(frame)
            mine.append(one)
        except OSError:
            mine = mine[8:]
            time.sleep(0.01)


def open_tickets_without_end():
    while True:
        try:
            client = Client()
            for i in range(10000):
                client.send(f"LOCK evil/{i} 0")
                if i % 100 == 99:
                    client.socket.recv(65536)
        except (OSError, EOFError):
            time.sleep(0.01)


def frame(*words):
    texts = [str(word).encode() for word in words]
    return b"*%d\r\n" % len(texts) + b"".join(b"$%d\r\n%s\r\n" % (len(text), text) for text in texts)


def flood_by_the_port():
    """By the protocol of agent: sessions and tickets without end, and lists of all there is."""
    sent = frame("MORTISE", 1, "evil") + frame("LIST", "prefix", "mortise/")
    for i in range(1, 10001):
        session, ticket = f"{i // 50 + 1:032x}", f"{i:032x}"
        if i % 50 == 0:
            sent += frame("START", 3 * i, session)
        sent += frame("APPEND", 3 * i + 1, session, ticket, f"mortise/evil/{i % 7}", "", "", 1, 1,
                      "mutex")
        sent += frame("REMOVE", 3 * i + 2, session, ticket, f"mortise/evil/{i % 7}")
    while True:
        try:
            client = Client()
            client.socket.settimeout(0.1)
            for at in range(0, len(sent), 4096):
                client.socket.sendall(sent[at:at + 4096])
                client.socket.recv(65536)
        except (OSError, EOFError):
            pass


def spin():
    while True:
        pass


HOSTILE = {"flood": lambda: flood(b"PING\r\n" * 100, True),
           "deaf": lambda: flood(b"ECHO " + b"x" * 4000 + b"\r\n", False),
           "garbage": lambda: flood(b"*99\r\n\0\xff", True),
           "connect": connect_without_end, "stall": stall_with_half_frames,
           "tickets": open_tickets_without_end, "port": flood_by_the_port, "spin": spin}


def be_hostile():
    HOSTILE[sys.argv[2]]()


def rate(client, seconds):
    """Locks taken and given back a second, and how long the longest took."""
    client.call(f"UNLOCK good {client.call('LOCK good 60000')}")  # the agent has it from now on
    count, longest, end = 0, 0, time.monotonic() + seconds
    while (began := time.monotonic()) < end:
        fence = client.call(f"LOCK good {PATIENCE * 1000}")
        assert isinstance(fence, int), fence
        assert client.call(f"UNLOCK good {fence}") == "OK"
        assert client.call("PING") == "PONG"
        longest = max(longest, time.monotonic() - began)
        count += 1
    return count / seconds, longest


def connect_patiently():
    """A listener whose queue is full says EAGAIN to a client that does not wait there."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return Client()
        except BlockingIOError:
            assert time.monotonic() < end
            time.sleep(0.001)


def works_beside(kind, seconds):
    """The rate of a client while two processes of another user are of this kind."""
    others = [subprocess.Popen(["setpriv", "--reuid", "www-data", "--regid", "www-data",
                                "--clear-groups", "/usr/bin/python3", __file__, "be_hostile", kind],
                               stderr=subprocess.DEVNULL) for _ in range(2)]
    try:
        time.sleep(0.3)
        return rate(connect_patiently(), seconds)
    finally:
        for other in others:
            other.kill()
        for other in others:
            other.wait()


def is_not_hindered_by_others():
    """No long wait, and a part at least of what is left beside as many processes that spin. The
    machine may be busy, and not always equally: so the part is small, and one of some attempts
    decides."""
    seconds = float(sys.argv[2])
    beside_spinning, _ = works_beside("spin", seconds)
    for kind in HOSTILE:
        for _ in range(5):
            locks, longest = works_beside(kind, seconds)
            print(f"{kind}: {locks:.0f} locks/s beside {beside_spinning:.0f}, {longest * 1000:.0f} ms")
            if longest < PATIENCE and locks > beside_spinning / 500:
                break
        else:
            raise AssertionError(kind)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
