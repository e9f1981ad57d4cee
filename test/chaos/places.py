# SPDX-License-Identifier: Apache-2.0
"""Where a chaos run takes place: a network whose links can be cut, and the servers on it.

Each server has a network namespace on a bridge, and the caller, in a namespace of its own too, sits
on the bridge itself. A link between two hosts is cut by giving one a wrong hardware address for
the other: packets are lost without a sound, one way or both.
"""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request

SERVERS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "servers")
NETWORK = "10.77.0."
HUB = 100  # the caller's place on the network; servers have 1 to 3
SERVING_LIMIT = 60  # seconds; the machine may be busy


def sh(*words):
    return subprocess.run([str(w) for w in words], check=True, stdout=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True).stdout


class Network:
    """Hosts 1 to 3 and the hub; who cannot reach whom."""

    def __init__(self):
        os.makedirs("/run/netns", exist_ok=True)
        sh("mount", "-t", "tmpfs", "none", "/run/netns")
        sh("ip", "link", "set", "lo", "up")
        sh("ip", "link", "add", "hub", "type", "bridge")
        sh("ip", "link", "set", "hub", "address", self.hardware(HUB), "up")
        sh("ip", "addr", "add", f"{NETWORK}{HUB}/24", "dev", "hub")
        self.hosts = [1, 2, 3]
        for host in self.hosts:
            sh("ip", "netns", "add", f"s{host}")
            sh("ip", "link", "add", f"v{host}", "type", "veth", "peer", "name", "eth0",
               "address", self.hardware(host), "netns", f"s{host}")
            sh("ip", "link", "set", f"v{host}", "master", "hub", "up")
            self.ip(host, "addr", "add", f"{NETWORK}{host}/24", "dev", "eth0")
            self.ip(host, "link", "set", "lo", "up")
            self.ip(host, "link", "set", "eth0", "up")
        self.heal()

    @staticmethod
    def hardware(host, wrong=False):
        return f"02:{'ff' if wrong else '00'}:00:00:00:{host:02x}"

    @staticmethod
    def ip(host, *words):
        sh("ip", *([] if host == HUB else ["-n", f"s{host}"]), *words)

    def point(self, source, target, wrong):
        self.ip(source, "neigh", "replace", f"{NETWORK}{target}", "lladdr",
                self.hardware(target, wrong), "nud", "permanent", "dev",
                "hub" if source == HUB else "eth0")

    def cut(self, sources, targets, both=True):
        """Loses all that `sources` send to `targets`; with `both` also the answers."""
        for source in sources:
            for target in targets:
                self.point(source, target, True)
                if both:
                    self.point(target, source, True)

    def heal(self):
        everybody = [*self.hosts, HUB]
        for source in everybody:
            for target in everybody:
                if source != target:
                    self.point(source, target, False)


class Ensemble:
    """Three servers, each in a namespace of its own."""
    # Labels of failures (doc/failures.md), and of those that the store's document considers.
    ids = {"leader_killed": "A1 ", "follower_killed": "A1 ", "clients_killed": "A6 "}

    def __init__(self, directory, kind, *options):
        self.directory = os.path.join(directory, "servers")
        places = [w for n in (1, 2, 3) for w in ("--place", f"s{n}={NETWORK}{n}")]
        line = sh(SERVERS, *options, *places, "start", kind, self.directory)
        self.hosts = line.split("://")[1].strip().split(",")

    def do(self, command, number):
        sh(SERVERS, command, self.directory, number)

    def mode(self, number):
        """"leader", "follower", or "" of a server that does not serve."""
        raise NotImplementedError

    def await_whole(self):
        """Until each server serves, but not for ever: that is not what is judged."""
        end = time.monotonic() + SERVING_LIMIT
        while not all(self.mode(n) for n in range(3)) and time.monotonic() < end:
            time.sleep(0.05)

    def leader(self):
        end = time.monotonic() + SERVING_LIMIT
        while time.monotonic() < end:
            for number in range(3):
                if self.mode(number) == "leader":
                    return number
            time.sleep(0.05)
        sys.exit("Bail out! the ensemble has no leader")

    def followers(self):
        leader = self.leader()
        return [n for n in range(3) if n != leader]


class ZooKeeper(Ensemble):
    ids = {**Ensemble.ids, "clients_stopped": "ZK-07 ", "leader_stopped": "ZK-44 ",
           "rolling_restart": "ZK-44 "}

    def __init__(self, directory, tick):
        super().__init__(directory, "zk3", "--tick", tick)

    def mode(self, number):
        host, port = self.hosts[number].split(":")
        try:
            with socket.create_connection((host, int(port)), 1) as s:
                s.sendall(b"srvr")
                text = b"".join(iter(lambda: s.recv(4096), b"")).decode()
                return text.partition("Mode: ")[2].split("\n")[0]
        except OSError:
            return ""

    def uri(self, numbers, session):
        hosts = ",".join(self.hosts[n] for n in numbers)
        return f"zk://{hosts}/chaos?session={session}ms&connect=10s"

    def left(self, locks):
        """Nodes in the locks' directories."""
        from kazoo.client import KazooClient
        from kazoo.exceptions import NoNodeError
        client = KazooClient(hosts=",".join(self.hosts), timeout=10)
        client.start(timeout=30)
        left = []
        for lock in locks:
            try:
                left += client.get_children(f"/chaos/mortise/{lock}")
            except NoNodeError:
                pass
        client.stop()
        return left


class Etcd(Ensemble):
    ids = {**Ensemble.ids, "leader_killed": "ET-05 ", "leader_stopped": "ET-05 ",
           "leader_isolated": "ET-10 ", "leader_isolated_from_all": "ET-10 ",
           "follower_isolated": "ET-10 ", "link_to_leader_frozen": "ET-10 ",
           "one_way_from_leader": "ET-10 ", "one_way_to_leader": "ET-10 "}

    def __init__(self, directory, _tick):
        super().__init__(directory, "etcd3")

    def mode(self, number):
        try:
            with urllib.request.urlopen(f"http://{self.hosts[number]}/v3/maintenance/status",
                                        b"{}", 1) as reply:
                status = json.load(reply)
        except OSError:
            return ""
        if not int(status.get("leader", 0)):
            return ""
        return "leader" if status["leader"] == status["header"]["member_id"] else "follower"

    def uri(self, numbers, session):
        hosts = ",".join(self.hosts[n] for n in numbers)
        return f"etcd://{hosts}?namespace=chaos&lease={session}ms&connect=10s"

    def left(self, locks):
        """Keys below the locks' names."""
        keys = [sh("etcdctl", "--endpoints", ",".join(self.hosts), "get", "--prefix",
                   "--keys-only", f"chaos/{lock}/").split() for lock in locks]
        return [key for found in keys for key in found]


class Nats(Ensemble):
    ids = {**Ensemble.ids, "leader_killed": "NA-06 ", "follower_killed": "NA-06 ",
           "leader_stopped": "NA-07 ", "leader_isolated": "NA-14 ",
           "leader_isolated_from_all": "NA-14 ", "follower_isolated": "NA-14 ",
           "link_to_leader_frozen": "NA-14 ", "one_way_from_leader": "NA-14 ",
           "one_way_to_leader": "NA-14 "}

    def __init__(self, directory, _tick):
        super().__init__(directory, "nats3")

    def mode(self, number):
        """By the stream of tickets; before there is one, by the leader of all streams."""
        with open(os.path.join(self.directory, str(number), "nats.conf"), encoding="ascii") as file:
            monitor = next(line[len("http: "):].strip() for line in file if line.startswith("http: "))
        try:
            with urllib.request.urlopen(f"http://{monitor}/jsz?streams=1", None, 1) as reply:
                state = json.load(reply)
        except OSError:
            return ""
        clusters = [stream["cluster"] for account in state.get("account_details", [])
                    for stream in account.get("stream_detail", []) if stream["name"].startswith("mortise_q")]
        leader = (clusters or [state.get("meta_cluster", {})])[0].get("leader")
        return leader and ("leader" if leader == f"n{number}" else "follower")

    def uri(self, numbers, session):
        hosts = ",".join(self.hosts[n] for n in numbers)
        return f"nats://{hosts}?namespace=chaos&replicas=3&lease={session}ms&connect=10s"

    def left(self, locks):
        """Tickets of these locks."""
        client = os.path.join(os.path.dirname(SERVERS), "..", "test", "live", "nats_client.py")
        rows = [sh(sys.executable, client, f"nats://{','.join(self.hosts)}", "messages", "mortise_q_chaos",
                   f"mortise.chaos.q.chaos/{lock}.>").splitlines() for lock in locks]
        return [row for found in rows for row in found]


STORES = {"zookeeper": ZooKeeper, "etcd": Etcd, "nats": Nats}
