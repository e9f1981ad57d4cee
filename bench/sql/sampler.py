# SPDX-License-Identifier: Apache-2.0
"""Counts, at a server, the connections of the programs that are measured, and how many of them are
in a transaction: what a lock costs it while it is held or waited for."""

import statistics
import subprocess
import threading

INTERVAL = 0.2  # s; MariaDB shows what it saw before if it is asked more often
MAXIMA = ("connections", "transactions")  # of what is found
QUERIES = {
    "postgres": "SELECT count(*), count(xact_start) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid();",
    "mariadb": "SELECT count(*), count(t.trx_id) FROM information_schema.processlist p"
               " LEFT JOIN information_schema.innodb_trx t ON t.trx_mysql_thread_id = p.id"
               " WHERE p.user = 'mortise';",
}
CLIENTS = {
    "postgres": ["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-h", "127.0.0.1", "-U", "postgres",
                 "-d", "mortise", "-p"],
    "mariadb": ["mariadb", "--no-defaults", "--batch", "--skip-column-names", "--unbuffered", "-h",
                "127.0.0.1", "-u", "root", "-P"],
}


class Sampler:
    """For as long as it is entered; then `found` has it. It asks by a connection of its own, which
    it does not count."""

    def __init__(self, store, port):
        self.query = QUERIES[store] + "\n"
        self.command = [*CLIENTS[store], port]
        self.samples = []
        self.ending = threading.Event()

    def sample(self):
        while not self.ending.is_set():
            self.client.stdin.write(self.query)
            self.client.stdin.flush()
            counts = self.client.stdout.readline().split()
            if not counts:
                return  # the server has ended the connection
            self.samples.append(tuple(map(int, counts)))
            self.ending.wait(INTERVAL)

    def __enter__(self):
        self.client = subprocess.Popen(self.command, stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.sample)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()
        self.client.stdin.close()
        self.client.wait()

    @property
    def found(self):
        """The maxima, and how many transactions there were on average while anybody was there."""
        there = [sample for sample in self.samples if sample[0] > 0]
        if not there:
            raise SystemExit("bench: no connection was seen at the server")
        connections, transactions = zip(*there)
        return {"connections": max(connections), "transactions": max(transactions),
                "transactions_mean": statistics.mean(transactions)}
