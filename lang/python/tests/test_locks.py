# SPDX-License-Identifier: Apache-2.0
"""Locks of threads on one store: every kind, its misuse, and what is left behind."""

import threading
import unittest
from unittest import mock

import mortise
from mortise._library import lib
from place import LIMIT, Place, in_thread


class Mutex(Place):
    def test_with_gives_a_hold_with_a_fence(self):
        with self.client.lock(self.name, timeout=LIMIT) as hold:
            self.assertTrue(hold.held)
            self.assertEqual(hold.name, self.name)
            self.assertGreater(hold.fence, 0)
            self.assertGreater(hold.remaining, 0)
            self.assertIs(hold.state, mortise.State.HELD)
            hold.check()
            hold.verify(LIMIT)
        self.assertFalse(hold.held)
        self.assertFalse(hold.lost)
        with self.client.lock(self.name) as later:
            self.assertGreater(later.fence, hold.fence)

    def test_thread_nests_also_through_another_object(self):
        with self.client.lock(self.name) as outer:
            with self.client.lock(self.name) as inner:
                self.assertEqual(outer.count, 2)
                self.assertEqual(outer.fence, inner.fence)
            self.assertTrue(outer.held)
            self.assertFalse(inner.held)
            self.assertEqual(outer.count, 1)
            self.assertIsNone(self.other().lock(self.name).try_acquire())

    def test_other_thread_waits(self):
        lock, order = self.client.lock(self.name), []

        def wait():
            with lock:
                order.append("second")

        with lock:
            thread = in_thread(wait)
            self.assertIsNone(in_thread(lock.try_acquire).end())
            order.append("first")
        thread.end()
        self.assertEqual(order, ["first", "second"])

    def test_time_is_over(self):
        other = self.other()
        with self.client.lock(self.name):
            lock = other.lock(self.name, timeout=0.05)
            with self.assertRaises(TimeoutError) as caught:
                lock.acquire()
            self.assertIsInstance(caught.exception, mortise.LockTimeoutError)
            self.assertEqual(caught.exception.name, "ETIMEOUT")
            self.assertIn(self.name, str(caught.exception))
            with self.assertRaises(mortise.BusyError):
                lock.acquire(timeout=0)
            self.assertIsNone(lock.try_acquire())
            with self.assertRaises(mortise.LockTimeoutError):
                with lock:
                    self.fail("it is held")
            self.queued(self.name, 1)

    def test_release_without_hold_is_an_error_with_the_librarys_text(self):
        lock = self.client.lock(self.name)
        with self.assertRaisesRegex(mortise.NotHeldError, "already released, or never acquired"):
            lock.release()
        hold = lock.acquire()
        hold.release()
        with self.assertRaises(mortise.NotHeldError):
            hold.release()
        with self.assertRaises(mortise.NotHeldError):
            hold.check()
        with lock:
            with self.assertRaises(mortise.NotHeldError):
                in_thread(lock.release).end()

    def test_acquire_and_release_by_the_lock(self):
        lock = self.client.lock(self.name)
        outer, inner = lock.acquire(), lock.acquire()
        lock.release()
        self.assertFalse(inner.held)
        self.assertTrue(outer.held)
        lock.release()
        self.assertFalse(outer.held)
        with lock.acquire() as hold:
            hold.release()  # earlier than its block ends
        self.queued(self.name, 0)

    def test_block_ends_with_its_own_hold(self):
        lock = self.client.lock(self.name)
        with lock as outer:
            with lock as inner:
                lock.release()
                self.assertFalse(inner.held)
            self.assertTrue(outer.held)
            lock.acquire()  # and is not released by the block
        self.assertFalse(outer.held)
        self.queued(self.name, 1)
        lock.release()
        self.queued(self.name, 0)

    def test_another_thread_may_release_a_hold(self):
        hold = self.client.lock(self.name).acquire()
        in_thread(hold.release).end()
        self.queued(self.name, 0)

    def test_not_reentrant(self):
        with self.client.lock(self.name, reentrant=False):
            with self.assertRaisesRegex(mortise.DeadlockError, "wait for itself"):
                self.client.lock(self.name, reentrant=False).acquire()

    def test_threads_of_two_clients_exclude_each_other(self):
        clients, counts = [self.client, self.other()], [0]

        def count(client):
            lock = client.lock(self.name, timeout=LIMIT)
            for _ in range(25):
                with lock:
                    before = counts[0]
                    threading.Event().wait(0.0001)
                    counts[0] = before + 1

        threads = [in_thread(count, client) for client in clients * 2]
        for thread in threads:
            thread.end()
        self.assertEqual(counts[0], 100)

    def test_handles_of_threads_that_ended_are_freed(self):
        lock, freed = self.client.lock(self.name), []
        made = in_thread(lambda: lock._handle._as_parameter_.value).end()
        free = lib.lock_free
        with mock.patch.object(lib, "lock_free", lambda handle: (
                freed.append(handle._as_parameter_.value), free(handle))):
            later = in_thread(lambda: lock._handle._as_parameter_.value).end()
            self.wait_until(lambda: later in freed)
            mine = lock._handle._as_parameter_.value
            del lock
            self.wait_until(lambda: mine in freed)
        self.assertNotEqual(made, mine)

    def test_exclusive(self):
        with self.client.exclusive(self.name):
            self.assertIsNone(self.other().exclusive(self.name).try_acquire())

    def test_names_and_values_are_checked(self):
        for name in ("", "x" * 256, "a\nb", "a\0b", 7):
            with self.subTest(name=name), self.assertRaises(mortise.InvalidError) as caught:
                self.client.lock(name)
            self.assertIsInstance(caught.exception, ValueError)
        with self.assertRaises(mortise.InvalidError):
            self.client.semaphore(self.name, 2, take=3)
        with self.assertRaises(mortise.InvalidError):
            self.client.semaphore(self.name, 0)
        with self.assertRaises(TypeError):
            self.client.lock(self.name, no_such_option=1)

    def test_queued_callback(self):
        places, seen = [], threading.Event()

        def queued(ahead):
            places.append(ahead)
            seen.set()

        lock = self.other().lock(self.name, on_queued=queued)
        with self.client.lock(self.name):
            thread = in_thread(lambda: lock.acquire().release())
            if not self.url.startswith("redlock"):
                self.assertTrue(seen.wait(LIMIT))
        thread.end()
        self.assertEqual(places[0], 1)


class Shared(Place):
    def test_semaphore(self):
        two = self.client.semaphore(self.name, 2)
        with two as first, two as second:
            self.assertNotEqual(first.fence, second.fence)
            self.assertIsNone(self.other().semaphore(self.name, 2).try_acquire())
        with self.client.semaphore(self.name, 2, take=2):
            self.assertIsNone(two.try_acquire())
        in_thread(two.acquire().release).end()

    def test_semaphore_of_another_size(self):
        with self.client.semaphore(self.name, 2):
            with self.assertRaises(mortise.MismatchError):
                self.other().semaphore(self.name, 3).acquire(timeout=LIMIT)

    def test_permits_are_changed(self):
        sem = self.client.semaphore(self.name, 4)
        self.assertEqual(sem.permits, 4)
        sem.permits = 1
        self.assertEqual(sem.permits, 1)
        with sem:
            self.assertIsNone(sem.try_acquire())
            with self.assertRaises(mortise.LockTimeoutError):
                sem.set_permits(0, timeout=0)
        with self.assertRaises(mortise.InvalidError):
            sem.permits = 5
        with self.assertRaises(mortise.InvalidError):
            sem.permits = -1
        sem.permits = 4

    def test_read_write(self):
        here, there = self.client.read_write(self.name), self.other().read_write(self.name)
        with here.read, there.read:
            self.assertIsNone(self.other().read_write(self.name).write.try_acquire())
        with here.write as hold:
            self.assertIsNone(there.read.try_acquire())
            with here.read:
                pass
            hold.downgrade()
            with there.read:
                pass
        with here.read, self.assertRaises(mortise.DeadlockError):
            here.write.acquire()

    def test_downgrade_of_a_mutex_is_refused(self):
        with self.client.lock(self.name) as hold:
            with self.assertRaises(mortise.InvalidError):
                hold.downgrade()


class Several(Place):
    def locks(self, client):
        return client.lock(self.name + "a"), client.semaphore(self.name + "b", 1)

    def test_all_or_none(self):
        first, second = self.locks(self.client)
        other = self.locks(self.other())
        with mortise.acquire_all(first, second, timeout=LIMIT) as holds:
            self.assertTrue(all(hold.held for hold in holds))
            self.assertEqual([hold.name for hold in holds], [first.name, second.name])
            self.assertIsNone(other[0].try_acquire())
        with other[1]:
            with self.assertRaises(mortise.LockTimeoutError):
                with mortise.acquire_all(first, second, timeout=0.05):
                    self.fail("one is held")
        self.queued(first.name, 0)
        self.queued(second.name, 0)

    def test_hold_that_cannot_be_made_leaves_nothing(self):
        locks = self.client.lock(self.name + "a"), self.other().lock(self.name + "b")
        for failing in locks:
            with mock.patch.object(failing, "_keep", side_effect=KeyError):
                with self.assertRaises(KeyError):
                    mortise.acquire_all(*locks, timeout=LIMIT).__enter__()
            for lock in locks:
                self.queued(lock.name, 0)

    def test_opposite_orders_do_not_wait_for_each_other(self):
        def take(locks):
            for _ in range(10):
                with mortise.acquire_all(*locks, timeout=LIMIT):
                    pass

        threads = [in_thread(take, self.locks(self.client)),
                   in_thread(take, self.locks(self.other())[::-1])]
        for thread in threads:
            thread.end()

    def test_misuse(self):
        with self.assertRaises(mortise.InvalidError):
            with mortise.acquire_all():
                self.fail("there are none")
        lock = self.client.lock(self.name, reentrant=False)
        with self.assertRaises(mortise.DeadlockError):
            with mortise.acquire_all(lock, lock):
                self.fail("it does not nest")


if __name__ == "__main__":
    unittest.main()
