# SPDX-License-Identifier: Apache-2.0
"""Where the tests run: the store of $MORTISE_TEST_URL, and names that no other test has.

A wait that should end is given LIMIT, so that a busy machine fails no test; a wait that should not
end is ended by an event of the test's own."""

import contextlib
import itertools
import os
import subprocess
import sys
import tempfile
import threading
import unittest

import mortise

LIMIT = 60
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(mortise.__file__)))
HERE = os.path.dirname(os.path.abspath(__file__))
numbers = itertools.count(1)


class Place(unittest.TestCase):
    """A case with a client on the store."""

    @classmethod
    def setUpClass(cls):
        cls.url = os.environ.get("MORTISE_TEST_URL") or "sqlite:" + os.path.join(
            cls.enterClassContext(tempfile.TemporaryDirectory()), "locks.db")
        cls.client = mortise.Client(cls.url, label="tests")

    @classmethod
    def tearDownClass(cls):
        cls.client.close()

    def setUp(self):
        self.name = f"{self.id().rsplit('.', 1)[-1]}-{next(numbers)}"

    def other(self, **options):
        """A second client, as of another process. It has a session: without one an acquire whose
        time is over is an UnreachableError."""
        client = mortise.Client(self.url, **options)
        self.addCleanup(client.close)
        client.lock(f"session-{next(numbers)}").acquire().release()
        return client

    def wait_until(self, condition):
        """A condition that comes true by itself."""
        pause = threading.Event()
        for _ in range(LIMIT * 100):
            if condition():
                return
            pause.wait(0.01)
        self.fail("it did not come true")

    def queued(self, name, count):
        """So many tickets are in the queue; waiters of one client have one ticket."""
        self.wait_until(lambda: len(self.client.list(name)) == count)

    @contextlib.contextmanager
    def program(self, text, *arguments):
        """A Python program; what it prints is read line by line."""
        process = subprocess.Popen([sys.executable, "-X", "dev", "-c", text, *arguments],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env={**os.environ, "PYTHONPATH": PACKAGE + ":" + HERE})
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def in_thread(work, *arguments):
    """Starts a thread; join() on what is returned gives its result or raises its exception."""
    return Task(work, arguments)


class Task(threading.Thread):
    def __init__(self, work, arguments):
        super().__init__(daemon=True)
        self.work, self.arguments = work, arguments
        self.result = self.fault = None
        self.start()

    def run(self):
        try:
            self.result = self.work(*self.arguments)
        except Exception as fault:  # pylint: disable=broad-except
            self.fault = fault

    def end(self):
        self.join(LIMIT)
        if self.is_alive():
            raise AssertionError("the thread did not end")
        if self.fault is not None:
            raise self.fault
        return self.result
