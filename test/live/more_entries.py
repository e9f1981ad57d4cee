# SPDX-License-Identifier: Apache-2.0
"""Copies a held lock's entry past the client: URI NAME COUNT makes COUNT more locks NAME/0, NAME/1...

By the client each would take 1 to 2 ms on these servers: two directories and a node, or a
transaction. On ZooKeeper the copies are persistent, and stay as long as the server; on PostgreSQL,
MariaDB, etcd and NATS they are the holder's session's, and end with it. On etcd they are NAME.0,
NAME.1...: a view of NAME reads the keys of locks below NAME, too, and a list is what is tested."""

import base64
import glob
import json
import re
import subprocess
import sys
import urllib.parse
import urllib.request

BATCH = 1000


def on_zookeeper(place, name, count):
    from kazoo.client import KazooClient
    client = KazooClient(hosts=place.netloc, timeout=10)
    client.start(timeout=20)
    queue = f"{place.path}/mortise/{name}"
    node = client.get_children(queue)[0]
    data = client.get(f"{queue}/{node}")[0]
    for first in range(0, count, BATCH):
        batch = client.transaction()
        for i in range(first, min(first + BATCH, count)):
            batch.create(f"{queue}/{i}")
            batch.create(f"{queue}/{i}/{node}", data)
        failed = [result for result in batch.commit() if isinstance(result, Exception)]
        if failed:
            sys.exit(f"{queue}: {failed[0]!r}")
    client.stop()


def on_mariadb(place, name, count):
    copied = "session, id, weight, kind, capacity, since, asked"
    text = (f"INSERT INTO ticket (queue, {copied}) SELECT CONCAT(queue, '/', seq), {copied}"
            f" FROM ticket, seq_1_to_{count} WHERE queue = 'mortise/{name}'")
    subprocess.run(["mariadb", "--protocol=tcp", "-h", place.hostname, "-P", str(place.port),
                    "-u", place.username, "-e", text, place.path[1:]], check=True)


def on_postgres(place, name, count):
    copied = "session, number, weight, kind, capacity, since, asked"
    text = (f"INSERT INTO mortise.ticket (queue, id, {copied})"
            f" SELECT queue || '/' || n, md5(queue || n)::uuid, {copied}"
            f" FROM mortise.ticket, generate_series(1, {count}) n WHERE queue = 'mortise/{name}'")
    psql = sorted(glob.glob("/usr/lib/postgresql/*/bin/psql"))[-1]
    subprocess.run([psql, "-q", "-v", "ON_ERROR_STOP=1", "-c", text, place.geturl()], check=True)


def on_etcd(place, name, count):
    def call(path, body):
        request = urllib.request.Request(f"http://{place.netloc}/v3/kv/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=20) as reply:
            return json.load(reply)

    def coded(text):
        return base64.b64encode(text.encode()).decode()

    queue = f"mortise/{name}"
    held = call("range", {"key": coded(queue + "/"), "range_end": coded(queue + "0")})["kvs"][0]
    node = base64.b64decode(held["key"]).decode().rsplit("/", 1)[1]
    for first in range(0, count, 100):  # of at most 128 operations
        call("txn", {"success": [
            {"request_put": {"key": coded(f"{queue}.{i}/{node}"), "value": held["value"],
                             "lease": held["lease"]}}
            for i in range(first, min(first + 100, count))]})


def on_nats(place, name, count):
    sys.dont_write_bytecode = True
    from nats_client import Client
    client = Client(place.geturl())
    _, subject, body = next(client.messages("mortise_q_mortise", f"mortise.mortise.q.mortise/{name}.>"))
    node = subject.rsplit(".", 1)[1]
    for i in range(count):
        client.request(f"mortise.mortise.q.mortise/{name}/{i}.{node}", body.decode())


def main():
    uri, name, count = sys.argv[1:]
    place = urllib.parse.urlsplit(re.sub("[?].*", "", uri))
    {"zk": on_zookeeper, "mysql": on_mariadb, "postgresql": on_postgres, "etcd": on_etcd,
     "nats": on_nats}[place.scheme](
        place, name, int(count))


main()
