# SPDX-License-Identifier: Apache-2.0
"""Elections, cells, losses, the operator's calls and the end of a client, on one store."""

import gc
import logging
import os
import pickle
import subprocess
import sys
import threading
from unittest import mock

import mortise
from place import LIMIT, Place, in_thread


class Loss(Place):
    def lose(self, hold):
        self.other().break_(hold.name, hold.fence)

    def test_loss_is_told(self):
        told, seen = [], threading.Event()

        def lost(hold):
            told.append((hold, hold.lost))
            seen.set()

        with self.assertRaises(mortise.LostError):
            with self.client.lock(self.name) as hold:
                hold.on_lost(lost)
                self.lose(hold)
                self.assertTrue(seen.wait(LIMIT))
                self.assertFalse(hold.held)
                with self.assertRaisesRegex(mortise.LostError, "the hold was lost"):
                    hold.check()
        self.assertEqual(told, [(hold, True)])
        self.assertTrue(hold.lost)
        with self.assertRaises(mortise.LostError):
            hold.release()
        with self.client.lock(self.name):
            pass

    def test_loss_does_not_hide_the_blocks_own_exception(self):
        with self.assertLogs("mortise", logging.WARNING) as logged:
            with self.assertRaises(KeyError):
                with self.client.lock(self.name) as hold:
                    self.lose(hold)
                    self.wait_until(lambda: hold.lost)
                    raise KeyError("the block's")
        self.assertIn("the hold was lost", "".join(logged.output))

    def test_callback_that_raises_is_logged(self):
        with self.assertLogs("mortise", logging.ERROR) as logged:
            hold = self.client.lock(self.name).acquire()
            hold.on_lost(lambda _: 1 / 0)
            self.lose(hold)
            self.wait_until(lambda: len(logged.output) > 0)
        self.assertIn("ZeroDivisionError", logged.output[0])

    def hold_for(self, seconds):
        """Whether it was asked for before its end, which has come."""
        asked, over = threading.Event(), threading.Event()
        try:
            hold = self.client.lock(f"{self.name}-{seconds}", max_hold=seconds).acquire()
            hold.on_revoke(lambda _: asked.set())
            hold.on_lost(lambda _: over.set())
            self.assertTrue(over.wait(LIMIT))
        except mortise.LostError:
            return False  # it is over already
        self.wait_until(lambda: hold.lost)
        self.assertEqual(hold.remaining, 0)
        return asked.is_set()

    def test_longest_hold(self):
        """It is asked for a tenth of the time before its end; a busy machine may sleep through one."""
        self.assertTrue(any(self.hold_for(seconds) for seconds in (0.3, 1, 3, 10, 30)))

    def test_revoke(self):
        asked = threading.Event()
        with self.client.lock(self.name) as hold:
            hold.on_revoke(lambda _: asked.set())
            self.other().revoke(self.name)
            self.assertTrue(asked.wait(LIMIT))
            hold.on_revoke(None)
            hold.on_state(None)
        with self.assertRaises(mortise.NotHeldError):
            self.client.revoke(self.name)


class Elections(Place):
    def test_one_leads(self):
        calls, seen = [], threading.Event()
        first = self.client.election(self.name, b"first", elected=lambda f: calls.append(f),
                                     deposed=lambda f: (calls.append(f), seen.set()))
        self.assertIsNone(first.leader())
        with first.campaign(LIMIT) as term:
            self.assertTrue(term.held and first.is_leader)
            self.assertEqual(term.fence, first.fence)
            self.assertEqual(first.leader(), mortise.Leader(b"first", term.fence))
            second = self.other().election(self.name, b"second")
            with self.assertRaises(mortise.LockTimeoutError):
                second.campaign(0.05)
            with self.assertRaises(mortise.DeadlockError):
                first.campaign()
            thread = in_thread(second.campaign, LIMIT)
        with thread.end() as later:
            self.assertGreater(later.fence, term.fence)
            self.assertEqual(first.leader(), mortise.Leader(b"second", later.fence))
        self.assertTrue(seen.wait(LIMIT))
        self.assertEqual(calls, [term.fence] * 2)
        with self.assertRaises(mortise.NotHeldError):
            first.resign()

    def test_observers_see_changes(self):
        seen = []
        watcher = self.other().election(self.name)
        watcher.observe(seen.append)
        self.wait_until(lambda: seen == [None])
        leader = self.client.election(self.name, b"one")
        with leader.campaign(LIMIT) as term:
            self.wait_until(lambda: mortise.Leader(b"one", term.fence) in seen)
            leader.proclaim(b"two")
            self.wait_until(lambda: mortise.Leader(b"two", term.fence) in seen)
        self.wait_until(lambda: seen[-1] is None)
        watcher.observe(None)

    def test_resigning_ends_a_campaign(self):
        with self.client.election(self.name).campaign(LIMIT):
            second = self.other().election(self.name)
            thread = in_thread(second.campaign)
            self.queued(self.name, 2)
            second.resign()
            with self.assertRaises(mortise.LockCancelledError):
                thread.end()


    def test_lost_term_does_not_resign_the_next(self):
        election = self.client.election(self.name)
        lost = election.campaign(LIMIT)
        self.other().break_(self.name, lost.fence)
        self.wait_until(lambda: not election.is_leader)
        with self.campaign_again(election) as term:
            with self.assertRaises(mortise.LostError):
                lost.release()
            self.assertTrue(lost.lost and term.held and election.is_leader)

    def campaign_again(self, election):
        """Until the library has settled that the term before is lost."""
        terms = []

        def leads():
            try:
                terms.append(election.campaign(LIMIT))
            except mortise.DeadlockError:
                return False
            return True

        self.wait_until(leads)
        return terms[0]

    def test_lost_term_is_released_and_followed(self):
        election = self.client.election(self.name)
        with self.assertRaises(mortise.LostError):
            with election.campaign(LIMIT) as lost:
                self.other().break_(self.name, lost.fence)
                self.wait_until(lambda: not election.is_leader)
        with self.campaign_again(election) as term:
            self.assertGreater(term.fence, lost.fence)

    def test_candidate_that_is_collected_in_a_callback_resigns(self):
        deposed, seen = [], threading.Event()
        other, watcher = self.other(), self.client.election(self.name)
        terms = [other.election(self.name, deposed=deposed.append).campaign(LIMIT)]
        fence = terms[0].fence

        def lost(_):
            terms.clear()
            seen.set()

        hold = other.lock(self.name + "lock").acquire()
        hold.on_lost(lost)
        self.client.break_(hold.name, hold.fence)
        self.assertTrue(seen.wait(LIMIT))
        self.wait_until(lambda: watcher.leader() is None)
        self.wait_until(lambda: deposed == [fence])

    def test_candidate_that_cannot_be_made(self):
        with mock.patch("sys.unraisablehook") as unraisable:
            with self.assertRaises(mortise.InvalidError):
                self.client.election(self.name, "text")
            gc.collect()
        unraisable.assert_not_called()


class Cells(Place):
    def test_compare_and_set(self):
        cell = self.client.cell(self.name)
        self.assertEqual(cell.get(), mortise.CellValue(b"", 0, 0))
        version = cell.compare_and_set(0, b"a\0b")
        self.assertEqual(cell.get(), mortise.CellValue(b"a\0b", version, 0))
        with self.assertRaises(mortise.ConflictError):
            cell.compare_and_set(0, b"c")
        cell.delete(version)
        self.assertEqual(cell.get().version, 0)
        for value in ("text", b"x" * 4097):
            with self.assertRaises(mortise.InvalidError):
                cell.compare_and_set(0, value)

    def test_superseded_holder_cannot_write(self):
        cell = self.client.cell(self.name)
        with self.client.lock(self.name) as first:
            version = cell.compare_and_set(0, b"first", hold=first)
        with self.assertRaises(mortise.NotHeldError):
            cell.compare_and_set(version, b"late", hold=first)
        with self.client.lock(self.name) as second:
            version = cell.compare_and_set(version, b"second", hold=second)
            with self.assertRaises(mortise.StaleError):
                cell.compare_and_set(version, b"late", fence=first.fence)
            with self.assertRaises(mortise.InvalidError):
                cell.compare_and_set(version, b"both", hold=second, fence=1)
            cell.update(lambda value: value + b"!", hold=second)
            self.assertEqual(cell.get().value, b"second!")
            cell.delete(cell.get().version, hold=second)

    def test_update(self):
        def add(client):
            for _ in range(10):
                client.cell(self.name).update(lambda v: b"%d" % (int(v or b"0") + 1))

        threads = [in_thread(add, client) for client in (self.client, self.other())]
        for thread in threads:
            thread.end()
        self.assertEqual(self.client.cell(self.name).get().value, b"20")
        with self.assertRaises(ZeroDivisionError):
            self.client.cell(self.name).update(lambda value: 1 / 0)
        with self.assertRaises(mortise.InvalidError):
            self.client.cell(self.name).update(lambda value: "text")


class Operator(Place):
    def test_list_shows_holder_and_waiter(self):
        other = self.other(label="the other", tell_process=True)
        with self.client.lock(self.name) as hold:
            thread = in_thread(lambda: other.lock(self.name).acquire().release())
            self.queued(self.name, 2)
            holder, waiter = self.client.list(self.name)
            self.assertEqual((holder.fence, holder.place, holder.kind, holder.label),
                             (hold.fence, 0, "mutex", "tests"))
            self.assertEqual((waiter.place, waiter.label, waiter.pid, waiter.detached),
                             (1, "the other", os.getpid(), False))
            self.assertTrue(0 < holder.id != waiter.id > 0)
            self.assertIn(holder, self.client.list())
            self.assertIn(self.name, hold.node)
        thread.end()

    def test_detached_lock_is_adopted(self):
        token = self.client.lock(self.name).acquire().detach()
        other = self.other().lock(self.name)
        self.assertIsNone(other.try_acquire())
        with self.assertRaises(mortise.InvalidError):
            other.adopt("no token")
        with other.adopt(token) as hold:
            self.assertTrue(hold.held)
        with self.assertRaises(mortise.NotHeldError):
            other.adopt(token)
        self.queued(self.name, 0)

    def test_store_is_described(self):
        self.assertTrue(self.client.capabilities.fence)
        self.assertTrue(self.client.capabilities.fair)
        before = self.client.stats.acquisitions
        with self.client.lock(self.name):
            self.assertEqual(self.client.stats.acquisitions, before + 1)
        self.assertRegex(self.client.server(), r"\w+ \d+")
        scheme = self.url.split(":")[0]  # an agent gives the address of its store
        self.assertEqual(self.client.url.split(":")[0], {"agent": "sqlite"}.get(scheme, scheme))


class End(Place):
    def test_close_ends_waits_and_later_calls_are_refused(self):
        client = mortise.Client(self.url)
        election, cell = client.election(self.name + "e"), client.cell(self.name)
        with self.client.lock(self.name), self.client.election(self.name + "e").campaign():
            mine = client.lock(self.name + "2").acquire()
            lock = client.lock(self.name)
            waits = [in_thread(lock.acquire), in_thread(election.campaign),
                     in_thread(lambda: mortise.acquire_all(lock).__enter__())]
            self.queued(self.name, 2)
            self.queued(self.name + "e", 2)
            client.close()
            for thread in waits:
                with self.assertRaises(mortise.ClosedError):
                    thread.end()
        for call in (lock.acquire, mine.release, mine.check, lambda: mine.held, client.list,
                     cell.get,
                     client.server, election.campaign, lambda: election.is_leader,
                     lambda: client.lock("x"), lambda: client.url):
            with self.assertRaises(mortise.ClosedError):
                call()
        client.close()
        self.assertIsNotNone(self.client.lock(self.name + "2").try_acquire())

    def take_all(self, *locks):
        with mortise.acquire_all(*locks, timeout=LIMIT):
            pass

    def test_close_in_a_callback_is_refused(self):
        client, faults, seen = self.other(), [], threading.Event()

        def lost(_):
            try:
                client.close()
            except mortise.MortiseError as fault:
                faults.append(fault)
            seen.set()

        hold = client.lock(self.name).acquire()
        hold.on_lost(lost)
        with self.client.lock(self.name + "3"):
            waits = in_thread(lambda: client.lock(self.name + "3").acquire().release())
            inside = in_thread(lambda: self.take_all(client.lock(self.name + "3")))
            self.wait_until(lambda: client._core._inside > 0)
            self.client.break_(self.name, hold.fence)
            self.assertTrue(seen.wait(LIMIT))
            self.assertIsInstance(faults[0], mortise.DeadlockError)
        waits.end()  # no wait of the client's has ended
        inside.end()
        with client.lock(self.name + "2"):
            pass

    def test_wait_in_a_callback_is_refused(self):
        """It would wait for the thread that it runs on."""
        other, faults, seen = self.other(), [], threading.Event()
        election = other.election(self.name + "e")

        def lost(_):
            for call in (other.lock(self.name).acquire, other.lock(self.name).try_acquire,
                         election.campaign, other.list):
                try:
                    call()
                except mortise.MortiseError as fault:
                    faults.append(type(fault))
            seen.set()

        hold = other.lock(self.name).acquire()
        hold.on_lost(lost)
        self.client.break_(self.name, hold.fence)
        self.assertTrue(seen.wait(LIMIT))
        self.assertEqual(faults, [mortise.DeadlockError] * 4)

    def test_client_is_not_pickled_and_errors_are(self):
        with self.assertRaises(mortise.ForkedError):
            pickle.dumps(self.client)
        with self.assertRaises(mortise.BusyError) as caught:
            with self.client.lock(self.name):
                self.other().lock(self.name).acquire(timeout=0)
        copy = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((type(copy), str(copy), copy.code),
                         (mortise.BusyError, str(caught.exception), -1))

    def test_program_that_forgets_to_close_ends_and_frees_its_locks(self):
        self.ends_silently("""import sys, threading, mortise
client = mortise.Client(sys.argv[1])
lock = client.lock(sys.argv[2])
lock.acquire()
threading.Thread(target=lock.acquire, daemon=True).start()
client.lock(sys.argv[2] + "2").acquire()
""")

    def test_daemon_thread_that_comes_after_the_end_is_silent(self):
        """A function that is registered before the package runs after its end."""
        self.ends_silently("""import atexit, sys, threading
def late():
    after.set()
    thread.join(0.5)
atexit.register(late)
import mortise
def wait():
    after.wait()
    lock.acquire()
after = threading.Event()
lock = mortise.Client(sys.argv[1]).lock(sys.argv[2])
lock.acquire()
thread = threading.Thread(target=wait, daemon=True)
thread.start()
""")

    def ends_silently(self, program):
        done = subprocess.run([sys.executable, "-X", "dev", "-c", program, self.url, self.name],
                              env={**os.environ, "PYTHONPATH": ":".join(sys.path)}, timeout=LIMIT,
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIsNotNone(self.client.lock(self.name).try_acquire())
