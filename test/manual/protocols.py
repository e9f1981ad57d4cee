#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Other clients, which know mortise-protocols(7) alone: they take locks by the tools of each store,
and mortise must find these taken, and free afterwards. One TAP line a store.

    test/manual/protocols.py BUILD

The lists of columns in the page are compared with the tables that there are.
"""

import concurrent.futures
import fcntl
import json
import os
import re
import shutil
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import uuid

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SERVERS = os.path.join(ROOT, "tools", "servers")
F_OFD_SETLK = 37  # of fcntl.h: no name of Python 3.8 to 3.11 stands for it
TAKEN, FREE = 75, 0

with open(os.path.join(ROOT, "man", "mortise-protocols.7"), encoding="utf-8") as page:
    PAGE = page.read()


def run(command, given=None):
    result = subprocess.run(command, input=given, capture_output=True, text=True, check=False,
                            timeout=60)
    assert result.returncode == 0, f"{command}: {result.stderr}"
    return result.stdout


class Mortise:
    """The command on one store."""

    def __init__(self, build, url):
        self.command, self.url = os.path.join(build, "mortise"), url

    def run(self, *arguments):
        return subprocess.run([self.command, "--url", self.url, *arguments], capture_output=True,
                              text=True, check=False, timeout=60)

    def expect(self, code, name):
        result = self.run("try", name)
        assert result.returncode == code, f"{name}: {result.returncode}, not {code}: {result.stderr}"

    def fence_of(self, name):
        return json.loads(self.run("ls", "--json", name).stdout)[0]["fence"]


def columns(section, table):
    """The columns that the page names for a table, in the section of a store."""
    text = PAGE[PAGE.index(f".SH {section}\n"):]
    return re.findall(r"\w+", re.search(rf"\b{table}\s+\(([\w,\s]+)\)", text)[1])


def other_of_sqlite(mortise, place):
    mortise.expect(FREE, "a")
    path = mortise.url.removeprefix("sqlite:")
    database = sqlite3.connect(path, isolation_level=None, timeout=30)
    for table in ("mortise_ticket", "mortise_cell"):
        there = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
        assert there == columns("SQLITE", table), there
    for pragma in ("application_id", "user_version"):
        number = database.execute(f"PRAGMA {pragma}").fetchone()[0]
        assert re.search(rf"{pragma}\s+(?:is\s+)?{number}\b", PAGE), f"{pragma} is {number}"
    session = os.urandom(16)
    name = "".join(f"{half:016x}" for half in struct.unpack("QQ", session))
    file = os.open(f"{path}-sessions/{name}", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    fcntl.fcntl(file, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    database.execute("BEGIN IMMEDIATE")
    database.execute("UPDATE mortise_ticket SET weight = weight + 1 WHERE queue = '' AND number = 0")
    number = database.execute("SELECT weight FROM mortise_ticket WHERE queue = ''").fetchone()[0]
    database.execute("INSERT INTO mortise_ticket (queue, number, id, session, kind, capacity, weight,"
                     " label, since) VALUES ('mortise/a', ?, ?, ?, 'mutex', 1, 1, '', 0)",
                     (number, os.urandom(16), session))
    database.execute("COMMIT")
    mortise.expect(TAKEN, "a")
    assert mortise.fence_of("a") == number * 65536
    os.close(file)  # as the end of a process does
    mortise.expect(FREE, "a")
    del place


def other_of_zookeeper(mortise, place):
    del place
    from kazoo.client import KazooClient  # pylint: disable=import-outside-toplevel
    client = KazooClient(re.search(r"//([^/?]*)", mortise.url)[1], timeout=5)
    client.start(30)
    name = f"/mortise/a/_c_{uuid.uuid4()}-lock-"
    path = client.create(name, ephemeral=True, sequence=True, makepath=True)
    mortise.expect(TAKEN, "a")
    assert mortise.fence_of("a") == client.exists(path).czxid * 4096
    client.delete(path)
    mortise.expect(FREE, "a")
    client.stop()


SQL_TICKET = {
    "postgres": """BEGIN; INSERT INTO mortise.session VALUES ('{session}', 1,
        clock_timestamp() + interval '60 s', 'other');
        INSERT INTO mortise.queue VALUES ('mortise/a', 0, clock_timestamp()) ON CONFLICT DO NOTHING;
        UPDATE mortise.queue SET number = nextval('mortise.fence') WHERE name = 'mortise/a';
        INSERT INTO mortise.ticket (session, id, queue, number, weight, kind, capacity, since, asked)
        SELECT '{session}', '{ticket}', name, number, 1, 'mutex', 1, clock_timestamp(), 0
        FROM mortise.queue WHERE name = 'mortise/a'; COMMIT;""",
    "mariadb": """SET @now = CAST(UNIX_TIMESTAMP(SYSDATE(6)) * 1000000 AS SIGNED); BEGIN;
        INSERT INTO session VALUES (x'{session}', 1, @now + 60000000, 'other');
        INSERT IGNORE INTO queue VALUES ('mortise/a', @now);
        SELECT 1 FROM queue WHERE name = 'mortise/a' FOR UPDATE;
        INSERT INTO ticket (session, id, queue, weight, kind, capacity, since, asked)
        VALUES (x'{session}', x'{ticket}', 'mortise/a', 1, 'mutex', 1, @now, 0); COMMIT;"""}
SQL_END = {"postgres": "UPDATE mortise.session SET expires = clock_timestamp() WHERE id = '{session}'",
           "mariadb": "UPDATE session SET expires = 1 WHERE id = x'{session}'"}


def other_of_sql(mortise, place, kind, execute):
    del place
    assert mortise.run("init").returncode == 0
    values = {"session": uuid.uuid4().hex, "ticket": uuid.uuid4().hex}
    execute(SQL_TICKET[kind].format(**values))
    mortise.expect(TAKEN, "a")
    number = int(execute("SELECT number FROM " + ("mortise." if kind == "postgres" else "")
                         + "ticket WHERE queue = 'mortise/a'").split()[-1])
    assert mortise.fence_of("a") == number * 65536
    execute(SQL_END[kind].format(**values))  # its lease is over
    mortise.expect(FREE, "a")


def other_of_postgres(mortise, place):
    def execute(text):
        return run(["psql", "-qAtXv", "ON_ERROR_STOP=1", mortise.url], text)
    other_of_sql(mortise, place, "postgres", execute)
    for table in ("session", "queue", "ticket", "cell", "version"):
        there = execute("SELECT attname FROM pg_attribute WHERE attnum > 0 AND attrelid ="
                        f" 'mortise.{table}'::regclass ORDER BY attnum").split()
        assert there == columns("POSTGRESQL", table), f"{table}: {there}"


def other_of_mariadb(mortise, place):
    user, host, port, database = re.fullmatch(r"mysql://(\w+)@([\w.]+):(\d+)/(\w+).*",
                                              mortise.url).groups()

    def execute(text):
        return run(["mariadb", "--no-defaults", "-u", user, "-h", host, "-P", port, "-NB", database],
                   text)
    mortise.run("init")
    other_of_sql(mortise, place, "mariadb", execute)


def other_of_redis(mortise, place):
    del place
    port = re.search(r":(\d+)", mortise.url)[1]
    look = ["redis-cli", "-p", port, "zrange", "{mortise/}q:mortise/a", "0", "-1", "withscores"]
    holder = mortise.run("run", "a", "--", *look)
    entry, number = holder.stdout.split()
    assert re.fullmatch(r"[0-9a-f]{64}1:\d+", entry), holder.stdout
    fence = mortise.run("run", "a", "--", "sh", "-c", " ".join(
        ["redis-cli -p", port, "zrange '{mortise/}q:mortise/a' 0 -1 withscores; echo $MORTISE_FENCE"]))
    _, number, fence = fence.stdout.split()
    assert int(fence) == int(number) * 32768, fence
    run(["redis-cli", "-p", port, "zadd", "{mortise/}sessions", "1", "0" * 32])  # is over


def other_of_agent(mortise, place):
    path = os.path.join(place, "agent.sock")
    agent = subprocess.Popen([mortise.command, "--url", mortise.url, "agent", "--socket", path],
                             stdout=subprocess.PIPE)
    try:
        agent.stdout.readline()
        frames = re.search(r"^\*3.*$", PAGE, re.M)[0].replace("\\er\\en", "\r\n")
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(60)
            client.connect(path)
            client.sendall(frames.encode())
            fence = re.fullmatch(rb":(\d+)\r\n", client.recv(100))[1].decode()
            mortise.expect(TAKEN, "deploy")
            client.sendall(f"UNLOCK deploy {fence}\r\nHELD deploy\r\nQUIT\r\n".encode())
            said = b""
            while part := client.recv(100):
                said += part
            assert said.startswith(b"+OK\r\n-NOTHELD "), said
    finally:
        agent.terminate()
        agent.wait()


OTHERS = {"sqlite": other_of_sqlite, "zk": other_of_zookeeper, "redis": other_of_redis,
          "postgres": other_of_postgres, "mariadb": other_of_mariadb, "agent": other_of_agent}


def one(build, place, kind):
    """None, or what is wrong."""
    where = os.path.join(place, kind)
    url = f"sqlite:{where}/locks.db"
    try:
        if kind in ("sqlite", "agent"):
            os.mkdir(where)
        else:
            url = run([sys.executable, SERVERS, "start", kind, where]).split()[-1]
        OTHERS[kind](Mortise(build, url), where)
    except Exception as fault:  # pylint: disable=broad-except
        return f"{type(fault).__name__}: {fault}"
    finally:
        if kind not in ("sqlite", "agent"):
            subprocess.run([sys.executable, SERVERS, "stop", where], check=False)
    return None


def main():
    build = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(ROOT, "build"))
    for name in [n for n in os.environ if n.startswith(("MORTISE", "PG", "MYSQL"))]:
        del os.environ[name]
    os.environ["MORTISE_MODULES"] = build
    place = tempfile.mkdtemp(prefix="mortise-protocols-")
    os.chmod(place, 0o755)
    os.environ |= {"HOME": place, "XDG_CONFIG_HOME": place, "XDG_CONFIG_DIRS": place}
    try:
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            faults = list(pool.map(lambda kind: one(build, place, kind), OTHERS))
    finally:
        shutil.rmtree(place, ignore_errors=True)
    for number, (kind, fault) in enumerate(zip(OTHERS, faults), 1):
        print(f"{'not ok' if fault else 'ok'} {number} - another client of {kind}")
        print("".join(f"# {line}\n" for line in (fault or "").splitlines()), end="")
    print(f"1..{len(OTHERS)}")
    return 1 if any(faults) else 0


if __name__ == "__main__":
    sys.exit(main())
