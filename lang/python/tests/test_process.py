# SPDX-License-Identifier: Apache-2.0
"""Signals, fork and spawn, on one store.

A signal must end a wait whose lock nobody releases before: where it does not, the test takes LIMIT.
"""

import multiprocessing
import os
import signal

import mortise
from place import LIMIT, Place

WAITS = {
    "acquire": "client.lock(name).acquire()",
    "with": "block()",
    "all": "mortise.acquire_all(client.lock(name + '0'), client.lock(name)).__enter__()",
    "campaign": "client.election(name).campaign()",
    "asyncio": "asyncio.run(task())",
}
PROGRAM = """import asyncio, signal, sys, mortise
from mortise import aio
url, name = sys.argv[1:3]
signal.signal(signal.SIGUSR1, lambda *_: print("handled", flush=True))
def block():
    with client.lock(name, timeout=1000):
        pass
async def task():
    async with aio.Client(url) as other:
        async with other.lock(name):
            pass
client = mortise.Client(url)
print("waits", flush=True)
try:
    WAIT
except KeyboardInterrupt:
    mine = client.lock(name + "after").try_acquire()
    print("interrupted", mine is not None, flush=True)
else:
    print("acquired", flush=True)
client.close()
"""


class Signals(Place):
    def test_interrupt_ends_every_wait_and_leaves_nothing_queued(self):
        for case, wait in WAITS.items():
            with self.subTest(case):
                self.interrupt(f"{self.name}-{case}", PROGRAM.replace("WAIT", wait))

    def interrupt(self, name, text):
        leading = "election" in text.split("try:")[1]
        hold = (self.client.election(name).campaign() if leading
                else self.client.lock(name).acquire())
        with hold, self.program(text, self.url, name) as process:
            self.assertEqual(process.stdout.readline(), "waits\n")
            self.wait_until(lambda: self.waiters(name) == 1)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=LIMIT)
            self.assertEqual(out, "interrupted True\n", err)
            self.assertEqual(process.returncode, 0, err)
            self.wait_until(lambda: self.waiters(name) == 0)

    def waiters(self, name):
        """Of acquire_all a free lock is held for a moment only, while the other is waited for."""
        return len(self.client.list(name)) - 1

    def test_handler_that_raises_nothing_keeps_the_place(self):
        text = PROGRAM.replace("WAIT", WAITS["acquire"])
        with self.client.lock(self.name), self.program(text, self.url, self.name) as process:
            self.assertEqual(process.stdout.readline(), "waits\n")
            self.queued(self.name, 2)
            before = self.client.list(self.name)[1].fence
            process.send_signal(signal.SIGUSR1)
            self.assertEqual(process.stdout.readline(), "handled\n")
            self.assertEqual(self.client.list(self.name)[1].fence, before)
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.stdout.readline(), "interrupted True\n")

    def test_interrupt_ends_a_wait_for_a_store_that_is_away(self):
        url = {"zk": "zk://127.0.0.1:1", "redis": "redis://127.0.0.1:1"}.get(
            self.url.split(":")[0])
        if url is None:
            self.skipTest("a store without a server")
        text = PROGRAM.replace("client = mortise.Client(url)",
                               "client = mortise.Client(url, on_contact=lambda fault: print("
                               "type(fault).__name__, flush=True))").replace(
            "WAIT", WAITS["acquire"]).replace("client.lock(name + \"after\").try_acquire()", "1")
        with self.program(text, url, self.name) as process:
            self.assertEqual(process.stdout.readline(), "waits\n")
            self.assertEqual(process.stdout.readline(), "UnreachableError\n")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.communicate(timeout=LIMIT)[0], "interrupted True\n")


def child(url, name, answers):
    """In a process that was spawned."""
    with mortise.Client(url) as client:
        answers.put(client.lock(name).try_acquire() is None)
        with client.lock(name + "2", timeout=LIMIT) as hold:
            answers.put(hold.fence > 0)


class Processes(Place):
    def in_child(self, work):
        """Forks, and gives what the child's work returns, a str."""
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.write(writer, work().encode())
            except BaseException as fault:  # pylint: disable=broad-except
                os.write(writer, repr(fault).encode())
            finally:
                os._exit(0)
        os.close(writer)
        with open(reader, encoding="utf-8") as answers:
            text = answers.read()
        os.waitpid(pid, 0)
        return text

    def test_child_of_fork_is_told_to_open_its_own_client(self):
        with self.client.lock(self.name) as hold:
            def work():
                answers = []
                for call in (hold.check, hold.release, lambda: hold.held, self.client.list,
                             lambda: self.client.lock("x"), lock.acquire):
                    try:
                        call()
                        answers.append("no error")
                    except mortise.ForkedError as fault:
                        answers.append(str(fault))
                return "\n".join(answers)

            lock = self.client.lock(self.name)
            text = self.in_child(work).splitlines()
            self.assertEqual(len(text), 6)
            for line in text:
                self.assertIn("belongs to the parent process (open a client in each process", line)
            hold.check()

    def test_child_of_fork_opens_a_client(self):
        with self.client.lock(self.name) as hold:
            def work():
                self.client.close()  # frees memory, and releases nothing
                with mortise.Client(self.url) as own:
                    return str(own.lock(self.name).try_acquire())

            text = self.in_child(work)
            if self.url.startswith("sqlite:"):  # as its contract says
                self.assertIn("ForkedError", text)
            else:
                self.assertEqual(text, "None")
            hold.verify(LIMIT)

    def test_spawned_process_opens_a_client(self):
        context = multiprocessing.get_context("spawn")
        answers = context.Queue()
        with self.client.lock(self.name):
            process = context.Process(target=child, args=(self.url, self.name, answers))
            process.start()
            self.assertTrue(answers.get(timeout=LIMIT))
            self.assertTrue(answers.get(timeout=LIMIT))
            process.join(LIMIT)
        self.assertEqual(process.exitcode, 0)

    def test_killed_process_loses_its_lock(self):
        text = "import sys, time, mortise\nlock = mortise.Client(sys.argv[1]).lock(sys.argv[2])\n" \
               "lock.acquire()\nprint('held', flush=True)\ntime.sleep(1000)\n"
        url = self.url.replace("session=10s", "session=2s")
        with self.program(text, url, self.name) as process:
            self.assertEqual(process.stdout.readline(), "held\n")
            self.assertIsNone(self.client.lock(self.name).try_acquire())
            process.kill()
            with self.client.lock(self.name, timeout=LIMIT) as hold:
                self.assertTrue(hold.held)
