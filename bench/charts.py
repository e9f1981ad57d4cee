# SPDX-License-Identifier: Apache-2.0
"""Makes charts of what a benchmark has measured, and writes both as one file of figures.

A benchmark calls save() with its figures by their names, as "processes8.handovers_per_s". Each
function here yields the charts of one kind of server, for bench/plot, which draws them.
"""

import json
import os
import platform
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TITLES = {"sqlite": "SQLite, beside flock(1) and SQLite alone",
          "zk": "ZooKeeper, one server, beside Curator, kazoo and etcd",
          "zk3": "ZooKeeper, three servers, beside Curator, kazoo and etcd",
          "redis": "Redis, beside hiredis alone, redis-py and npm's redlock",
          "postgres": "PostgreSQL, beside a durable row and pg_advisory_lock",
          "mariadb": "MariaDB, beside a durable row and GET_LOCK",
          "etcd": "etcd, beside its gateway's own requests and etcdctl lock",
          "nats": "NATS, beside libnats's own publish and keys",
          "agent": "mortise agent, beside a broker that keeps nothing"}
COMMAND = "start, lock, run true, end"
ALONE = "acquire and release, alone"
CONTENDED = "processes that compete: changes of owner a second"


def chart(title, unit, better, bars):
    return {"title": title, "unit": unit, "better": better, "bars": bars}


def sqlite(f):
    yield chart(COMMAND, "ms", "less",
                [["", f"{name}", f[f"commands.{key}_us"] / 1000] for name, key in
                 (("mortise run", "mortise"), ("flock", "flock"), ("true alone", "true"))])
    yield chart(ALONE, "us", "less",
                [["", "mortise", 1e6 / f["uncontended.acquisitions_per_s"]],
                 ["", "two bare transactions", f["sqlite.write_us"]]])
    yield chart(CONTENDED, "a second", "more",
                [[f"{count} processes", name, f[f"{key}{count}.handovers_per_s"]]
                 for count in (2, 8, 32)
                 for name, key in (("mortise", "processes"), ("flock loops", "flock"))])


def zookeeper(f):
    yield chart(ALONE, "us", "less",
                [["", name, f[f"cycle.{name}.cycle_us.p50"]]
                 for name in ("mortise", "curator", "kazoo")])
    yield chart("acquire, alone", "us", "less",
                [["", "mortise", f["acquire.mortise.acquire_us.p50"]],
                 ["", "curator", f["acquire.curator.acquire_us.p50"]],
                 ["", "a bare create", f["acquire.floor.create_us"]]])
    yield chart(CONTENDED, "a second", "more",
                [[f"{count} processes", name, f[f"contended{count}.{key}.handovers_per_s"]]
                 for count in (8, 32)
                 for name, key in (("mortise", "mortise"), ("curator", "curator_processes"),
                                   ("curator, threads of one", "curator_threads"))])
    yield chart(COMMAND, "ms", "less",
                [["", "mortise run", f["commands.mortise"]],
                 ["", "etcdctl lock", f["commands.etcdctl"]],
                 ["", "a kazoo one-liner", f["commands.kazoo"]]])


def redis(f):
    yield chart(ALONE, "us", "less",
                [[group, name, f[f"{key}.cycle_us"]] for group, name, key in
                 (("one server", "mortise, fair", "fair"), ("one server", "mortise, exclusive", "claim"),
                  ("one server", "hiredis alone", "floor"), ("one server", "redis-py", "redis-py"),
                  ("five servers", "mortise, redlock", "quorum-5"),
                  ("five servers", "hiredis alone", "floor-5"),
                  ("five servers", "npm redlock", "redlock-5"))])
    yield chart("processes that compete: acquisitions a second", "a second", "more",
                [[f"{count} processes", name, f[f"{key}-{count}.acquisitions_per_s"]]
                 for count in (8, 32)
                 for name, key in (("mortise, fair", "fair"), ("redis-py", "redis-py"))])


def sql(call, forms):
    def charts(f):
        names = [("mortise", "mortise"), ("a durable row, in and out", "rows"), (call, "call"),
                 *((f"mortise, {form}", form) for form in forms)]
        yield chart(ALONE, "us", "less", [["", name, f[f"{key}.cycle_us"]] for name, key in names])
        yield chart(CONTENDED, "a second", "more",
                    [["8 processes", name, f[f"{key}-8.handovers_per_s"]]
                     for name, key in names if key != "rows"])
    return charts


def agent(f):
    yield chart("processes that compete: grants a second", "a second", "more",
                [[f"{count} processes", name, f[f"{key}{count}.handovers_per_s"]]
                 for count in sorted(int(key[5:].split(".")[0]) for key in f
                                     if key.startswith("floor") and key.endswith("handovers_per_s"))
                 for name, key in (("mortise agent", "grants"), ("a bare broker", "floor"))])
    yield chart("a lock that the agent has", "us", "less",
                [["", "mortise, LOCK and UNLOCK", f["cycle_us"]], ["", "two PINGs", f["pings_us"]]])


def etcd(f):
    yield chart("acquire, alone", "us", "less",
                [["", "mortise", f["mortise-paused.acquire_us"]],
                 ["", "the gateway's transaction", f["floor-paused.acquire_us"]],
                 ["", "a bare put", f["floor-paused.put_us"]]])
    yield chart(ALONE, "us", "less",
                [["", "mortise", f["mortise.cycle_us"]],
                 ["", "two transactions of the gateway", f["floor.cycle_us"]]])
    yield chart(COMMAND, "ms", "less",
                [["", "mortise run", f["run.mortise"]], ["", "etcdctl lock", f["run.etcdctl"]]])


def nats(f):
    yield chart("acquire, alone", "us", "less",
                [["", "mortise", f["mortise-paused.acquire_us"]],
                 ["", "a key created", f["floor-paused.acquire_us"]],
                 ["", "a bare publish", f["floor-paused.publish_us"]]])
    yield chart(ALONE, "us", "less",
                [["", "mortise", f["mortise.cycle_us"]],
                 ["", "a key created and deleted", f["floor.cycle_us"]]])
    yield chart(CONTENDED, "a second", "more",
                [[f"{count} processes", "mortise", f[f"mortise-{count}.handovers_per_s"]]
                 for count in (4, 16)])


CHARTS = {"sqlite": sqlite, "zk": zookeeper, "zk3": zookeeper, "redis": redis, "agent": agent,
          "etcd": etcd, "nats": nats,
          "postgres": sql("pg_advisory_lock", ("form=advisory", "form=row")),
          "mariadb": sql("GET_LOCK", ("form=get_lock", "form=row"))}


def flat(figures, prefix=""):
    """Figures in figures, by one name: {"a": {"b": 1}} is {"a.b": 1}."""
    found = {}
    for key, value in figures.items():
        found.update(flat(value, f"{prefix}{key}.") if isinstance(value, dict) else
                     {prefix + key: value})
    return found


def save(name, path, figures, **more):
    """Writes the figures, their charts and `more` into the file, and draws them beside it."""
    command = "make bench" + ("" if name == "sqlite" else f" STORE={name}")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"name": name, "title": TITLES[name], "command": command,
                   "measured": time.strftime("%Y-%m-%d", time.gmtime()),
                   "machine": f"{os.cpu_count()} processors, {platform.platform()}",
                   "charts": list(CHARTS[name](flat(figures))), "figures": figures, **more},
                  file, indent=1)
    drawn = subprocess.run([sys.executable, os.path.join(HERE, "plot"), path], check=False)
    if drawn.returncode != 0:
        sys.exit(drawn.returncode)
    print(f"all figures: {path}, and drawn: {os.path.splitext(path)[0]}.svg", file=sys.stderr)
