# SPDX-License-Identifier: Apache-2.0
"""Faults between an agent and its clients: agent_faults.py NAME [ARGUMENTS], at $T/agent.sock."""
import fcntl
import os
import random
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

sys.dont_write_bytecode = True
from agent import PATH, Client  # pylint: disable=wrong-import-position


def is_free(name, seconds=20):
    """Whether another client gets the lock; it gives it back."""
    other = Client()
    fence = other.call(f"LOCK {name} {seconds * 1000}")
    if not isinstance(fence, int):
        return False
    assert other.call(f"UNLOCK {name} {fence}") == "OK"
    other.close()
    return True


def ends_with(data):
    """The line that the agent sends before it ends the connection that sent this."""
    client = Client()
    try:
        client.socket.sendall(data)
        line = client.line()
    except (BrokenPipeError, ConnectionResetError):
        line = "-ERR gone"
    assert client.is_ended(), data[:40]
    client.close()
    return line


def bad_input():
    holder = Client()
    fence = holder.call("LOCK deploy 0")
    for data in [b"*1\r\n$1073741824\r\n", b"*1073741824\r\n", b"*2\r\n$99999999999999999999\r\n",
                 b"*-1\r\n", b"*1\r\n:5\r\n", b"*1\r\n$-1\r\n",
                 b"*2\r\n$4\r\nHELDxx", b"x" * 9000, b"*1\r\n$" + b"1" * 40, b"*17\r\n",
                 b"a " * 17 + b"\r\n"]:
        assert ends_with(data).startswith("-ERR Protocol error: "), data[:40]
    client = Client()
    for name in [b"a\0b", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x80", b"a\nb", b"", b"n" * 256]:
        client.socket.sendall(b"*3\r\n$4\r\nLOCK\r\n$%d\r\n%s\r\n$1\r\n0\r\n" % (len(name), name))
        assert client.reply().startswith("BADNAME "), name
    for verb in [b"\0", b"\xff", b"LOCK\0", b"\r\nLOCK"]:
        client.socket.sendall(b"*1\r\n$%d\r\n%s\r\n" % (len(verb), verb))
        reply = client.reply()
        assert reply.startswith("ERR ") and "\0" not in reply, reply
    draw = random.Random(1)
    for _ in range(300):
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(PATH)
            try:
                one.sendall(draw.randbytes(draw.randrange(1, 3000)))
            except (BrokenPipeError, ConnectionResetError):
                pass
    many = [f"LOCK many/{i % 10} 0\r\nUNLOCK many/{i % 10} 1\r\n" for i in range(500)]
    for _ in range(100):
        client.socket.sendall("".join(many).encode())
        replies = [client.reply() for _ in range(1000)]
    assert all(str(reply).split()[0] in ("DEADLOCK", "NOTHELD") for reply in replies)
    assert holder.call("HELD deploy") > 0 and holder.call(f"UNLOCK deploy {fence}") == "OK"


def live_and_die(point):
    """Does what a client does, and is killed at this point."""
    steps = iter(range(100))

    def step():
        if next(steps) == point:
            os.kill(os.getpid(), signal.SIGKILL)

    step()
    client = socket.socket(socket.AF_UNIX)
    step()
    client.connect(PATH)
    step()
    for byte in b"LOCK deploy -1\r\n":
        client.sendall(bytes([byte]))
        step()
    reply = client.recv(4096)
    step()
    client.sendall(b"HELD deploy\r\n")
    step()
    client.recv(4096)
    step()
    client.sendall(b"UNLOCK deploy %s\r\nLOCK deploy 0\r\n" % reply[1:-2])
    step()
    client.recv(4096)
    step()
    client.close()
    step()


def killed_at_each_point():
    for point in range(30):
        child = os.fork()
        if child == 0:
            live_and_die(point)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert is_free("deploy"), point
        if not os.WIFSIGNALED(status):
            print(f"{point} points")
            assert point > 20
            return
    raise AssertionError("it never came to its end")


def forked_and_killed():
    reader, writer = os.pipe()
    parent = os.fork()
    if parent == 0:
        client = Client()
        client.call("LOCK deploy 0")
        child = os.fork()
        if child == 0:
            time.sleep(600)
        os.write(writer, b"%d" % child)
        time.sleep(600)
    child = int(os.read(reader, 20))
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    assert Client().call("LOCK deploy 500").startswith("TIMEOUT "), "the child has the connection"
    os.kill(child, signal.SIGKILL)
    assert is_free("deploy")


def holder_in(*namespaces):
    return subprocess.Popen(["unshare", *namespaces, "--fork", "--kill-child", sys.executable,
                             os.path.join(os.path.dirname(os.path.abspath(__file__)), "agent.py"),
                             "hold_for_ever"], stdout=subprocess.PIPE, text=True)


def across_namespaces():
    last = 0
    for namespaces in [["--time", "--boottime", "100000"], ["--pid"], ["--net"],
                       ["--user", "--map-root-user"], ["--user", "--map-root-user", "--pid"],
                       ["--time", "--boottime", "100000", "--pid", "--net"]]:
        holder = holder_in(*namespaces)
        fence = int(holder.stdout.readline())
        assert fence > last, namespaces
        last = fence
        other = Client()
        assert other.call("LOCK deploy 200").startswith("TIMEOUT "), namespaces
        holder.kill()  # and its child with it
        assert is_free("deploy"), namespaces
        holder.wait()


def not_seen():
    client = Client()
    assert client.call("LOCK deploy 0 BIND PROCESS").startswith("BADVALUE BIND PROCESS: ")
    assert client.call("LOCK deploy 0") > 0
    client.close()
    assert is_free("deploy")


def agent_stands_still():
    """For longer than the lease; the witness is taken by the holder, and must be free for the next."""
    agent = int(sys.argv[2])
    mine, others = (open(os.environ["T"] + "/witness", "a", encoding="ascii") for _ in range(2))
    client, other = Client(), Client()
    fence = client.call("LOCK deploy 0")
    fcntl.flock(mine, fcntl.LOCK_EX | fcntl.LOCK_NB)
    other.send("LOCK deploy -1")

    def be_next():
        assert other.reply() > fence
        fcntl.flock(others, fcntl.LOCK_EX | fcntl.LOCK_NB)

    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(be_next)
        for seconds in (1, 6):
            os.kill(agent, signal.SIGSTOP)
            time.sleep(seconds)
            client.send("HELD deploy")
            assert not client.has_reply(0.2), "silence means that the lock may be lost"
            os.kill(agent, signal.SIGCONT)
            assert client.reply() > 0, "on this store nobody else can have it"
            time.sleep(0.2)
        fcntl.flock(mine, fcntl.LOCK_UN)
        assert client.call(f"UNLOCK deploy {fence}") == "OK"
        following.result()


def socket_removed():
    client = Client()
    fence = client.call("LOCK other 0")
    os.unlink(PATH)
    assert client.call("HELD other") > 0
    try:
        Client()
        raise AssertionError("nobody can connect")
    except FileNotFoundError:
        pass
    assert client.call(f"UNLOCK other {fence}") == "OK"
    os.kill(int(sys.argv[2]), signal.SIGTERM)
    assert client.is_ended()


def disk_full():
    client = Client()
    assert client.call("LOCK first 0") > 0
    fill = sys.argv[2] + "/fill"
    file = os.open(fill, os.O_WRONLY | os.O_CREAT)
    for size in (65536, 1):
        try:
            while os.write(file, b"x" * size) > 0:
                pass
        except OSError:
            pass
    os.close(file)
    reply = client.call(f"LOCK {'n' * 200} 500")
    assert reply.startswith(("TIMEOUT ", "STORE ")), reply
    assert Client().call("PING") == "PONG" and client.call("HELD first") > 0
    os.unlink(fill)
    assert client.call("LOCK last 20000") > 0


if __name__ == "__main__":
    globals()[sys.argv[1]]()
