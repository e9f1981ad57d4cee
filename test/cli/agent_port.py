# SPDX-License-Identifier: Apache-2.0
"""Users of a policy that speak the protocol of agent: themselves, and not as the library does:
agent_port.py NAME [ARGUMENTS] runs one test at $T/agent.sock. Root runs it, and is one user after
another when it connects."""
import os
import pwd
import signal
import socket
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from agent import PATH, Client  # pylint: disable=wrong-import-position
from agent_users import is_served, until  # pylint: disable=wrong-import-position

WRITER = 2 ** 31
WORDS = ("session", "ticket", "queue", "fence", "flags", "weight", "capacity", "kind", "queue_max",
         "delay", "version", "detached_id", "value")
EPERMISSION, EFULL, EINVALID, ELOST, ENAME, ENOTHELD = -14, -23, -10, -5, -11, -6


def identity():
    return os.urandom(16).hex()


class Port(Client):
    """A connection of this user with a session of its own."""

    def __init__(self, user, label="test", flags=""):
        os.seteuid(pwd.getpwnam(user).pw_uid)
        try:
            super().__init__()
        finally:
            os.seteuid(0)
        self.serial, self.session, self.events = 0, identity(), []
        self.send_words("MORTISE", 1, label)
        self.greeting = self.reply()
        assert self.greeting[0] == "MORTISE", self.greeting
        self.post("START", flags=flags)
        if not flags:
            self.is_started()

    def is_started(self):
        assert self.answer(1)["type"] == "STARTED"

    def send_words(self, *words):
        texts = [str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(texts)
                            + b"".join(b"$%d\r\n%s\r\n" % (len(text), text) for text in texts))

    def post(self, verb, **words):
        """Sends a command: its serial. A queue is a name in the agent's namespace."""
        self.serial += 1
        words.setdefault("session", self.session)
        if "queue" in words:
            words["queue"] = self.greeting[4] + words["queue"]
        self.send_words(verb, self.serial, *[words.get(word, "") for word in WORDS])
        return self.serial

    def take(self):
        """The next answer or event."""
        words = self.reply() + [""] * 15
        names = ("kind", "type", "serial", "session", "ticket", "flags", "fence", "span", "ahead",
                 "recheck", "place", "revoked", "version", "error", "text")
        return dict(zip(names, words))

    def answer(self, serial):
        while True:
            answer = self.take()
            if answer["kind"] == "answer" and answer["serial"] == str(serial):
                return answer
            self.events.append(answer)

    def ask(self, verb, **words):
        return self.answer(self.post(verb, **words))

    def append(self, queue, kind="mutex", weight=1, capacity=1, **words):
        """The answer; a ticket that is given, or a new one, is self.ticket."""
        self.ticket = words.pop("ticket", None) or identity()
        return self.ask("APPEND", ticket=self.ticket, queue=queue, kind=kind, weight=weight,
                        capacity=capacity, **words)

    def read(self, queue, **words):
        return self.append(queue, "read-write", 1, WRITER, **words)

    def holds(self, ticket, queue):
        answer = self.ask("REFRESH", ticket=ticket, queue=queue)
        return answer["type"] == "VIEW" and answer["ahead"] in ("", "0")

    def operate(self, *words):
        """The rows, the error and its text."""
        rows = []
        self.send_words(*words)
        while (answer := self.reply())[0] == "ROW":
            rows.append(answer)
        assert answer[0] == "END"
        return rows, int(answer[1] or 0), answer[2]


def is_refused(answer, error, text=""):
    assert answer["type"] == "FAILED" and int(answer["error"]) == error, answer
    assert text in answer["text"], answer
    return True


def may_do_what_a_rule_says():
    web, games, root = Port("www-data"), Port("games"), Port("root")
    assert web.append("www/a", flags="t")["type"] == "VIEW"
    uid = pwd.getpwnam("www-data").pw_uid
    is_refused(web.append("games/a"), EPERMISSION, f"has no rule as: allow user {uid} acquire on games/a")
    is_refused(web.append("www"), EPERMISSION, "acquire on www")
    is_refused(web.ask("APPEND", ticket=identity(), queue="../other/www/a", kind="mutex", weight=1,
                       capacity=1), EPERMISSION)
    other = web.greeting[4]
    web.greeting[4] = "other/"
    is_refused(web.append("www/a"), EPERMISSION, "give its namespace")
    web.greeting[4] = other
    is_refused(web.append("www/" + "n" * 380), ENAME)
    is_refused(web.append("www/\x01"), ENAME)
    is_refused(web.ask("CELL_GET", ticket=identity(), queue="www/a"), EPERMISSION, "cells on www/a")
    is_refused(web.ask("CELL_SET", ticket=identity(), queue="www/a", value="x", flags="v"), EPERMISSION)
    is_refused(web.ask("OBSERVE", ticket=identity(), queue="www/a"), EPERMISSION, "list on www/a")
    is_refused(web.append("www/d", flags="a"), EPERMISSION, "adopt on www/d")
    is_refused(games.append("public/a"), EPERMISSION, "acquire on public/a")
    assert games.read("public/a")["type"] == "VIEW"
    is_refused(games.read("www/a"), EPERMISSION, "shared on www/a")
    assert games.ask("CELL_GET", ticket=identity(), queue="public/c")["type"] == "CELL"
    assert games.ask("OBSERVE", ticket=identity(), queue="public/c", flags="o")["type"] == "HOLDER"
    assert root.append("anything")["type"] == "VIEW"


def has_his_own_tickets_alone():
    """Beside one who has a lock, and whose identities he knows."""
    mine, other = Port("www-data"), Port("backup")
    assert other.append("www/a")["type"] == "VIEW"
    held, session = other.ticket, other.session
    fence = other.ask("REFRESH", ticket=held, queue="www/a")["fence"]
    is_refused(mine.ask("RENEW", session=session), ELOST)
    is_refused(mine.append("www/b", session=session), ELOST)
    assert mine.ask("REMOVE", session=session, ticket=held, queue="www/a")["type"] == "REMOVED"
    assert mine.ask("STOP", session=session)["type"] == "STOPPED"
    assert mine.ask("REFRESH", ticket=held, queue="www/a")["type"] == "GONE"
    assert mine.ask("LIGHTEN", ticket=held, queue="www/a", weight=1)["type"] == "GONE"
    assert mine.ask("SET_VALUE", ticket=held, queue="www/a", value="x", flags="v")["type"] == "GONE"
    assert mine.ask("REMOVE", ticket=held, queue="www/a", fence=fence)["type"] == "REMOVED"
    is_refused(mine.ask("DETACH", ticket=held, queue="www/a", fence=fence, detached_id=identity()),
               EINVALID)
    is_refused(mine.append("www/a", ticket=held), EINVALID)
    unknown = identity()
    for verb, type_ in ("REMOVE", "REMOVED"), ("REFRESH", "GONE"), ("LIGHTEN", "GONE"):
        assert mine.ask(verb, ticket=unknown, queue="www/a", fence=fence, weight=1)["type"] == type_
    assert mine.append("www/b")["type"] == "VIEW"
    for verb in "REMOVE", "REFRESH", "LIGHTEN", "DETACH", "SET_VALUE":
        is_refused(mine.ask(verb, ticket=mine.ticket, queue="www/a", fence=fence, weight=1), EINVALID)
    assert other.holds(held, "www/a") and other.ask("RENEW")["type"] == "RENEWED"
    assert mine.ask("START", session=session)["type"] == "STARTED", "a name that he gives himself"
    assert other.holds(held, "www/a")


def gives_back_his_own_share_alone():
    mine, other = Port("www-data"), Port("backup")
    assert other.read("www/a")["type"] == "VIEW"
    fence = other.ask("REFRESH", ticket=other.ticket, queue="www/a")["fence"]
    assert mine.read("www/a")["type"] == "VIEW"
    assert mine.ask("REMOVE", ticket=mine.ticket, queue="www/a", fence=fence)["type"] == "REMOVED"
    assert other.holds(other.ticket, "www/a")
    assert len(Port("root").operate("LIST", "name", "mortise/www/a")[0]) == 1, "and his has gone"


def has_tickets_of_the_recipes_alone():
    """Else a reader could do more than read, and a weight could be larger than any store counts."""
    web, games = Port("www-data"), Port("games")
    for weight, capacity in (WRITER, WRITER), (1, 1), (1, 2), (2, WRITER), (1, 2 ** 62):
        is_refused(games.append("public/a", "read-write", weight, capacity),
                   EPERMISSION if weight == capacity == WRITER else EINVALID)
    for kind in "mutex", "semaphore", "exclusive", "election", "READ-WRITE":
        answer = games.append("public/a", kind, 1, 1)
        assert answer["type"] == "FAILED", answer
    for kind, weight, capacity in [("semaphore", 1, 2 ** 32), ("semaphore", 2 ** 62, 2 ** 62),
                                   ("semaphore", 2, 1), ("semaphore", 0, 1), ("mutex", 1, 2),
                                   ("mutex", 2, 2), ("exclusive", 1, 2), ("own", 1, 1), ("", 1, 1)]:
        is_refused(web.append("www/a", kind, weight, capacity), EINVALID)
    is_refused(web.append("www/a", flags="c"), EINVALID)
    is_refused(web.append("www/a", "semaphore", 1, 2, flags="c"), EINVALID)
    assert web.append("www/a", "semaphore", 2, 4)["type"] == "VIEW"
    for weight in 3, 4, 2 ** 62, 0:
        is_refused(web.ask("LIGHTEN", ticket=web.ticket, queue="www/a", weight=weight), EINVALID)
    assert web.ask("LIGHTEN", ticket=web.ticket, queue="www/a", weight=1)["type"] == "VIEW"
    assert games.read("public/b")["type"] == "VIEW"
    ticket = games.ticket
    is_refused(games.append("public/b", "read-write", WRITER, WRITER, ticket=ticket), EINVALID)
    is_refused(games.append("public/b", "semaphore", 1, WRITER, ticket=ticket), EINVALID)
    is_refused(games.ask("LIGHTEN", ticket=ticket, queue="public/b", weight=WRITER), EINVALID)
    assert games.read("public/b", ticket=ticket)["type"] == "VIEW", "the same again is itself"
    assert web.ask("OBSERVE", ticket=(one := identity()), queue="www/seen")["type"] == "HOLDER"
    is_refused(web.append("www/seen", ticket=one), EINVALID)
    is_refused(web.ask("OBSERVE", ticket=web.ticket, queue="www/a"), EINVALID)
    web.close()
    other = Port("backup")
    until(lambda: other.append("www/seen", flags="t")["type"] == "VIEW")


def leaves_nothing_behind():
    """However often he sends an APPEND before it is answered, and whatever else in between."""
    web, root = Port("www-data"), Port("root")
    assert root.append("www/a")["type"] == "VIEW"
    words = {"queue": "www/a", "kind": "mutex", "weight": 1, "capacity": 1, "ticket": identity()}
    first, second = web.post("APPEND", flags="t", **words), web.post("APPEND", **words)
    assert web.answer(first)["type"] == "BLOCKED" and web.answer(second)["ahead"] == "1"
    words.update(queue="www/b", ticket=identity())
    for _ in range(3):
        web.post("APPEND", **words)
        last = web.post("REMOVE", ticket=words["ticket"], queue="www/b")
    web.post("APPEND", **words)
    web.answer(last)
    web.close()
    assert root.ask("REMOVE", ticket=root.ticket, queue="www/a")["type"] == "REMOVED"
    for name in "www/a", "www/b":
        until(lambda: root.append(name, flags="t")["type"] == "VIEW")  # pylint: disable=W0640


def cannot_detach():
    web = Port("www-data")
    assert web.append("www/a")["type"] == "VIEW"
    is_refused(web.ask("DETACH", ticket=web.ticket, queue="www/a", weight=1, kind="mutex",
                       detached_id=identity()), EPERMISSION, "cannot detach")
    assert web.holds(web.ticket, "www/a")
    web.close()
    other = Port("backup")
    until(lambda: other.append("www/a", flags="t")["type"] == "VIEW")


def adopts_what_was_detached():
    """As the rule says, by the identity that only the one who detached it knows."""
    root, web, other, token = Port("root"), Port("www-data"), Port("backup"), identity()
    assert root.append("www/a")["type"] == "VIEW"
    assert root.ask("DETACH", ticket=root.ticket, queue="www/a", weight=1, kind="mutex",
                    detached_id=token)["type"] == "VIEW"
    is_refused(web.append("www/a", flags="a"), ENOTHELD)
    assert other.append("www/a")["ahead"] == "1"
    is_refused(other.append("www/a", flags="a", ticket=other.ticket), EPERMISSION, "adopt on www/a")
    assert web.append("www/a", flags="a", ticket=token)["type"] == "VIEW"
    assert web.holds(web.ticket, "www/a")


def sees_and_ends_what_he_may():
    web, games, root = Port("www-data"), Port("games", "root\nelsewhere\n1"), Port("root")
    assert web.append("www/a")["type"] == games.append("games/a")["type"] == "VIEW"
    assert root.append("secret")["type"] == "VIEW"
    uid = pwd.getpwnam("games").pw_uid
    rows, error, _ = web.operate("LIST", "prefix", "mortise/")
    assert error == 0 and sorted(row[1] for row in rows) == ["mortise/games/a", "mortise/www/a"], rows
    label, host, pid = next(row[3] for row in rows if row[1] == "mortise/games/a").split("\n")
    assert label == f"user {uid}: root" and host == os.uname().nodename and pid == str(os.getpid())
    assert all(row[11] == "" for row in rows), "and no identity"
    assert games.operate("LIST", "prefix", "mortise/")[0] == [], "he has no rule"
    assert web.operate("LIST", "prefix", "other/")[1] == EPERMISSION
    assert web.operate("LIST", "name", "mortise/secret")[0] == []
    fence = next(row[4] for row in rows if row[1] == "mortise/games/a")
    hidden = root.operate("LIST", "name", "mortise/secret")[0][0][4]
    assert games.operate("REVOKE", "mortise/games/a", fence)[1] == EPERMISSION
    assert games.operate("BREAK", "mortise/games/a", fence)[1] == EPERMISSION
    assert web.operate("BREAK", "mortise/secret", hidden)[1] == EPERMISSION
    assert web.operate("REVOKE", "mortise/games/a", fence)[1:] == (0, "")
    assert web.operate("BREAK", "mortise/games/a", fence)[1:] == (0, "")
    assert not games.holds(games.ticket, "games/a") and root.holds(root.ticket, "secret")
    assert web.operate("SERVER", "", "")[1] in (0, -20)


def has_his_space_alone():
    """namespace %u: the same names are other locks, and another's cannot be named."""
    web, backup, root = Port("www-data"), Port("backup"), Port("root")
    assert web.append("a")["type"] == backup.append("a")["type"] == "VIEW"
    own, other = (pwd.getpwnam(user).pw_uid for user in ("www-data", "backup"))
    held = backup.ticket
    assert backup.append(f"{own}/a", flags="t")["type"] == "VIEW", "a name of his own space"
    assert web.holds(web.ticket, "a") and backup.holds(held, "a")
    assert root.append(f"{own}/a", flags="t")["type"] == "BLOCKED"
    names = sorted(row[1] for row in root.operate("LIST", "prefix", "mortise/")[0])
    assert names == sorted([f"mortise/{own}/a", f"mortise/{other}/a", f"mortise/{other}/{own}/a"])
    rows = web.operate("LIST", "prefix", "mortise/")[0]
    assert [row[1] for row in rows] == ["mortise/a"], rows
    fence = rows[0][4]
    assert backup.operate("BREAK", f"mortise/{own}/a", fence)[1] in (0, ENOTHELD)
    assert web.holds(web.ticket, "a"), "it was none of his"
    is_refused(web.append("n" * 255), ENAME)
    assert web.ask("CELL_SET", ticket=identity(), queue="c", value="x", flags="v")["type"] == "CELL"
    assert backup.ask("CELL_GET", ticket=identity(), queue="c")["version"] in ("", "0")


def has_his_limits_alone():
    web, second = Port("www-data"), Port("www-data")
    for i in range(10000):
        answer = web.append(f"www/{i % 5}", "semaphore", 1, 1000)
        if answer["type"] == "FAILED":
            break
    assert i == 20, i
    is_refused(answer, EFULL, "all the tickets of his limit")
    is_refused(web.ask("OBSERVE", ticket=identity(), queue="www/0"), EFULL)
    is_refused(second.append("www/0", "semaphore", 1, 1000), EFULL, "user ")
    assert web.ask("REMOVE", ticket=web.ticket, queue="www/0")["type"] == "REMOVED"
    last = web.serial
    web.close()
    until(lambda: second.append("www/0")["type"] == "VIEW")
    for again in None, second.ticket:
        is_refused(second.append("www/0", delay=3600 * 10 ** 9, ticket=again), EPERMISSION,
                   "delay is longer")
    for i in range(1, 5):
        assert second.append(f"www/{i}")["type"] == "VIEW"
    is_refused(second.append("www/5"), EFULL, "all the names of his limit")
    third = Port("www-data")
    assert third.append("www/0")["type"] == "VIEW" and third.append("www/0")["type"] == "VIEW"
    is_refused(third.append("www/0"), EFULL, "all the waiters of his limit")
    second.close()
    third.close()
    until(is_served)
    assert last > 20
    fourth = Port("www-data")
    for _ in range(50):
        assert fourth.ask("OBSERVE", ticket=identity(), queue="www/0", flags="o")["type"] == "HOLDER"
    lists = [Port("www-data") for _ in range(6)]
    for one in lists:
        one.close()


def loses_what_he_holds_too_long():
    """Also one that does not read it, after the lease that it may believe in."""
    web, still, other = Port("www-data"), Port("www-data"), Port("root")
    began = time.monotonic()
    assert web.append("www/a")["type"] == "VIEW" and still.append("www/b")["type"] == "VIEW"
    lease = int(other.ask("RENEW")["fence"]) / 1e9
    while (answer := web.take())["type"] != "SESSION_LOST":
        pass
    assert 0.9 < time.monotonic() - began and "as long as the agent's policy" in answer["text"]
    assert web.is_ended()
    web.close()
    assert other.append("www/a")["ahead"] in ("", "0") or other.take()["type"] in ("VIEW", "WAKE")
    assert other.append("www/b")["ahead"] == "1", "one that stands still may believe yet"
    ticket = other.ticket
    while not other.holds(ticket, "www/b"):
        assert other.ask("RENEW")["type"] == "RENEWED"
        time.sleep(0.1)
    assert time.monotonic() - began > lease
    still.close()


def loses_what_he_does_not_look_at():
    """His turn has come, and he does not ask whether."""
    web, root, other = Port("www-data"), Port("root"), Port("root")
    assert root.append("www/c")["type"] == "VIEW" and web.append("www/c")["ahead"] == "1"
    assert root.ask("REMOVE", ticket=root.ticket, queue="www/c")["type"] == "REMOVED"
    while (answer := web.take())["type"] != "SESSION_LOST":
        pass
    assert "as long as the agent's policy" in answer["text"], answer
    web.close()
    until(lambda: other.append("www/c", flags="t")["type"] == "VIEW")


def pays_for_what_he_does_not_read():
    """Commands whose answers he leaves, and lists."""
    web = Port("www-data")
    web.socket.settimeout(2)
    try:
        for _ in range(20000):
            web.post("CELL_GET", ticket=identity(), queue="www/" + "n" * 200)
    except (TimeoutError, BrokenPipeError, ConnectionResetError):
        pass
    lists = []
    for _ in range(10):
        lists.append(Port("www-data"))
        lists[-1].send_words("LIST", "prefix", "mortise/")
    ends = [one.reply() for one in lists]
    assert ends[0][1] in ("", "0"), ends
    assert Port("root").append("www/a")["type"] == "VIEW"


# ---------------------------------------------------------------------------- its process


def take(flags):
    client = Port("root", flags=flags)
    if flags:
        client.is_started()
    assert client.append("deploy")["type"] == "VIEW"
    until(lambda: client.holds(client.ticket, "deploy"))
    return client


def send_and_not_read():
    client = Port.__new__(Port)
    Client.__init__(client)
    client.send_words("MORTISE", 1, "")
    client.send_words("START", 1, "1" * 32, "", "", "", "e")
    client.send_words("APPEND", 2, "1" * 32, "2" * 32, "mortise/deploy", "", "", 1, 1, "mutex")
    return client


def take_by_the_library(short_lived):
    import mortise  # pylint: disable=import-outside-toplevel,import-error
    client = mortise.Client(short_lived=short_lived)
    lock = client.lock("deploy")
    lock.acquire()
    return client, lock


def hold_in_a_process(begin, *arguments):
    """A process that holds "deploy" and has a child with the same descriptors: both numbers."""
    told, tell = os.pipe()
    holder = os.fork()
    if holder == 0:
        kept = begin(*arguments)
        child = os.fork()
        if child > 0:
            os.write(tell, f"{child}\n".encode())
        time.sleep(600)
        os._exit(kept is None)
    os.close(tell)
    child = int(os.read(told, 100))
    os.close(told)
    return holder, child


def kill_and_reap(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def gets_it():
    fence = Client().call("LOCK deploy 60000")
    assert isinstance(fence, int), fence
    return True


def has_it_yet(child):
    """The child, and nobody else: a time that is long for the agent, and short for the test."""
    assert Client().call("LOCK deploy 300").startswith("TIMEOUT "), "its child has the connection"
    os.kill(child, signal.SIGKILL)
    return gets_it()


def lets_go_at_once(holder, child):
    assert Client().call("LOCK deploy 0").startswith("BUSY ")
    kill_and_reap(holder)
    assert gets_it()
    os.kill(child, 0)
    os.kill(child, signal.SIGKILL)


def is_refused_without_a_descriptor():
    """136 places: of 100 connections and 36 processes."""
    plain, clients = Client(), [Port("root") for _ in range(99)]
    answers = [client.ask("START", flags="e") for client in clients]
    assert [answer["type"] for answer in answers] == ["STARTED"] * 36 + ["FAILED"] * 63
    assert "no descriptor left" in plain.call("LOCK other 0 BIND PROCESS")
    assert "no descriptor left" in answers[-1]["text"]
    assert clients[0].append("deploy")["type"] == "VIEW"


def ends_with_its_process():
    lets_go_at_once(*hold_in_a_process(take, "e"))


def ends_with_its_connection():
    """One that did not ask, or whose process the agent does not see."""
    holder, child = hold_in_a_process(take, sys.argv[2] if len(sys.argv) > 2 else "")
    kill_and_reap(holder)
    assert has_it_yet(child)


def library_ends_with_its_process():
    lets_go_at_once(*hold_in_a_process(take_by_the_library, False))


def library_keeps_for_its_child():
    """As `mortise run` does for its guard."""
    holder, child = hold_in_a_process(take_by_the_library, True)
    kill_and_reap(holder)
    assert has_it_yet(child)


def use_again(pid):
    """Another process of this number."""
    with open("/proc/sys/kernel/ns_last_pid", "w", encoding="ascii") as last:
        last.write(str(pid - 1))
    other = os.fork()
    if other == 0:
        time.sleep(600)
        os._exit(0)
    assert other == pid, (other, pid)
    return other


def ends_with_a_process_that_ended_before_it_asked():
    """Another one has its connection, and asks when the number is a third one's."""
    client = Port.__new__(Port)
    client.socket, client.bytes = socket.socket(socket.AF_UNIX), b""
    client.socket.settimeout(60)
    holder = os.fork()
    if holder == 0:
        client.socket.connect(PATH)
        client.send_words("MORTISE", 1, "")
        time.sleep(600)
        os._exit(0)
    until(lambda: has_connected(client.socket))
    assert client.reply()[0] == "MORTISE"
    kill_and_reap(holder)
    time.sleep(0.1)  # beginnings of processes have hundredths of a second
    other = use_again(holder)
    client.send_words("START", 1, "1" * 32, "", "", "", "e")
    assert client.is_ended()
    os.kill(other, signal.SIGKILL)


def has_connected(one):
    try:
        return one.getpeername()
    except OSError:
        return False


def ends_with_a_process_whose_number_is_used_again():
    """It is killed before the agent has read what it sent. Run as the first process of a PID
    namespace, where numbers can be chosen."""
    agent = int(sys.argv[2])
    os.kill(agent, signal.SIGSTOP)
    holder, child = hold_in_a_process(send_and_not_read)
    kill_and_reap(holder)
    other = use_again(holder)
    os.kill(agent, signal.SIGCONT)
    until(lambda: "connections:1\r\n" not in Client().call("INFO"))
    assert gets_it()
    os.kill(child, 0)
    os.kill(other, signal.SIGKILL)
    os.kill(child, signal.SIGKILL)


def ends_with_a_ticket_that_was_put_anew():
    """An operator breaks its ticket at etcd, it appends the same again, and no answer comes."""
    client = Port("root")
    assert client.append("anew", "semaphore", 1, 2)["type"] == "VIEW"
    subprocess.run(["etcdctl", "del", "--prefix", "anew/"], check=True)
    answer = client.append("anew", "semaphore", 1, 2, ticket=client.ticket)
    assert answer["type"] == "UNKNOWN", answer
    client.close()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
