# SPDX-License-Identifier: Apache-2.0
"""asyncio on one store: a wait keeps no loop waiting, and a cancelled one leaves nothing."""

import asyncio
import os
import random
import unittest
from unittest import mock

import mortise
from mortise import aio
from mortise._lock import take_all
from place import LIMIT, Place


class Tasks(unittest.IsolatedAsyncioTestCase, Place):
    async def asyncSetUp(self):
        self.tasks = await aio.Client(self.url).open()
        self.addAsyncCleanup(self.tasks.close)
        (await self.tasks.lock(self.name + "-session").acquire()).release()

    async def seen(self, condition):
        for _ in range(LIMIT * 100):
            if condition():
                return
            await asyncio.sleep(0.01)
        self.fail("it did not come true")

    async def waits(self, coroutine, count=2):
        """Starts a task, and goes on when so many tickets are queued."""
        task = asyncio.ensure_future(coroutine)
        while len(await self.tasks.list(self.name)) != count:
            if task.done():
                await task
                self.fail("it did not wait")
            await asyncio.sleep(0.005)
        return task

    async def test_with_gives_a_hold(self):
        async with self.tasks.lock(self.name, timeout=LIMIT) as hold:
            self.assertTrue(hold.held and hold.fence > 0)
            await hold.verify(LIMIT)
            self.assertIsNone(self.client.lock(self.name).try_acquire())
        with self.assertRaises(mortise.NotHeldError):
            hold.release()
        self.queued(self.name, 0)

    async def test_loop_goes_on_while_a_task_waits(self):
        lock = self.tasks.lock(self.name)
        with self.client.lock(self.name):
            waiter = await self.waits(lock.acquire())
            for _ in range(100):
                await asyncio.sleep(0)
            self.assertFalse(waiter.done())
        (await waiter).release()

    async def test_blocked_calls_keep_no_other_waiting(self):
        """More of them than the loop's executor has threads."""
        count = (os.cpu_count() or 1) + 8
        with self.client.lock(self.name):
            waits = [asyncio.ensure_future(
                aio.acquire_all(self.tasks.lock(self.name)).__aenter__()) for _ in range(count)]
            await asyncio.sleep(0.05)
            await asyncio.wait_for(self.tasks.cell(self.name).get(), LIMIT)
            for task in waits:
                task.cancel()
            await asyncio.wait(waits)
        await self.seen(lambda: len(self.client.list(self.name)) == 0)

    async def test_time_is_over(self):
        lock = self.tasks.lock(self.name, timeout=0.05)
        with self.client.lock(self.name):
            with self.assertRaises(mortise.LockTimeoutError):
                async with lock:
                    self.fail("it is held")
            with self.assertRaises(mortise.BusyError):
                await lock.acquire(timeout=0)
            self.assertIsNone(await lock.try_acquire())

    async def test_cancelled_wait_leaves_nothing(self):
        with self.client.lock(self.name):
            waiter = await self.waits(self.tasks.lock(self.name).acquire())
            waiter.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiter
            await self.seen(lambda: len(self.client.list(self.name)) == 1)
            with self.assertRaises(asyncio.TimeoutError):
                await asyncio.wait_for(self.tasks.lock(self.name).acquire(), 0.05)
        with self.client.lock(self.name, timeout=LIMIT):
            pass

    async def test_cancelling_at_any_moment_leaves_nothing(self):
        lock, granted = self.tasks.lock(self.name), 0
        for _ in range(100):
            task = asyncio.ensure_future(lock.acquire())
            await asyncio.sleep(random.random() * 0.002)
            task.cancel()
            try:
                (await task).release()
                granted += 1
            except asyncio.CancelledError:
                pass
        with self.client.lock(self.name, timeout=LIMIT):
            pass

    async def test_one_cancelled_task_does_not_end_the_others(self):
        lock = self.tasks.lock(self.name)
        with self.client.lock(self.name):
            first = await self.waits(lock.acquire())
            second = asyncio.ensure_future(lock.acquire())
            await asyncio.sleep(0.01)
            first.cancel()
            await asyncio.wait([first])
        (await asyncio.wait_for(second, LIMIT)).release()

    async def test_tasks_exclude_each_other(self):
        lock, inside, most, count = self.tasks.lock(self.name), 0, 0, 0

        async def work():
            nonlocal inside, most, count
            for _ in range(5):
                async with lock:
                    inside += 1
                    most = max(most, inside)
                    await asyncio.sleep(0)
                    inside -= 1
                    count += 1

        await asyncio.gather(*(work() for _ in range(20)))
        self.assertEqual((most, count), (1, 100))

    async def test_task_does_not_wait_for_itself(self):
        lock = self.tasks.lock(self.name)
        async with lock:
            with self.assertRaisesRegex(mortise.DeadlockError, "this task holds"):
                await lock.acquire()
        both = self.tasks.read_write(self.name + "rw")
        async with both.read:
            with self.assertRaises(mortise.DeadlockError):
                await both.write.acquire()
        with self.assertRaises(mortise.NotHeldError):
            lock.release()
        await lock.acquire()
        lock.release()

    async def test_semaphore_and_its_permits(self):
        sem = self.tasks.semaphore(self.name, 2)
        async with sem, sem:
            self.assertIsNone(await sem.try_acquire())
        await sem.set_permits(1, LIMIT)
        self.assertEqual(await sem.get_permits(), 1)
        async with sem:
            self.assertIsNone(await sem.try_acquire())

    async def test_read_write(self):
        both, there = self.tasks.read_write(self.name), self.client.read_write(self.name)
        async with both.read:
            with there.read:
                pass
        async with both.write as hold:
            self.assertIsNone(there.read.try_acquire())
            hold.downgrade()
            with there.read:
                pass

    async def test_several(self):
        first, second = self.tasks.lock(self.name), self.tasks.lock(self.name + "b")
        async with aio.acquire_all(first, second, timeout=LIMIT) as holds:
            self.assertTrue(all(hold.held for hold in holds))
            self.assertIsNone(self.client.lock(second.name).try_acquire())
        self.queued(second.name, 0)

    async def test_several_of_two_clients_are_released(self):
        """A cancelled task releases what it was granted, also beside a client that is closed."""
        other = await aio.Client(self.url).open()
        locks = other.lock(self.name), self.tasks.lock(self.name + "b")
        loop, granted = asyncio.get_running_loop(), asyncio.Event()

        def take(*arguments):
            values = take_all(*arguments)
            other._core.close()
            loop.call_soon_threadsafe(task.cancel)
            loop.call_soon_threadsafe(granted.set)
            return values

        with mock.patch.object(aio, "take_all", take):
            task = asyncio.ensure_future(aio.acquire_all(*locks, timeout=LIMIT).__aenter__())
            await asyncio.wait_for(granted.wait(), LIMIT)
            with self.assertRaises(asyncio.CancelledError):
                await task
        await self.seen(lambda: len(self.client.list(self.name + "b")) == 0)

    async def test_hold_that_cannot_be_made_leaves_nothing(self):
        locks = self.tasks.lock(self.name), self.tasks.lock(self.name + "b")
        with mock.patch.object(aio, "AsyncHold", side_effect=KeyError):
            with self.assertRaises(KeyError):
                await aio.acquire_all(*locks, timeout=LIMIT).__aenter__()
        for lock in locks:
            await self.seen(lambda: len(self.client.list(lock.name)) == 0)

    async def test_election(self):
        calls = []
        candidate = self.tasks.election(self.name, b"me", elected=calls.append,
                                        deposed=calls.append)
        async with await candidate.campaign(LIMIT) as term:
            self.assertEqual(await candidate.leader(), mortise.Leader(b"me", term.fence))
            other = await aio.Client(self.url).open()
            self.addAsyncCleanup(other.close)
            waiter = await self.waits(other.election(self.name).campaign())
            waiter.cancel()
            await asyncio.wait([waiter])
            await self.seen(lambda: len(self.client.list(self.name)) == 1)
        await self.seen(lambda: calls == [term.fence] * 2)
        self.assertIsNone(await candidate.leader())

    async def test_observer_runs_on_the_loop(self):
        seen, loop = [], asyncio.get_running_loop()
        watcher = self.tasks.election(self.name)
        watcher.observe(lambda leader: seen.append((leader, asyncio.get_running_loop())))
        await self.seen(lambda: seen == [(None, loop)])

    async def test_cell(self):
        cell = self.tasks.cell(self.name)
        version = await cell.compare_and_set(0, b"1")
        await cell.update(lambda value: value + b"2")
        self.assertEqual((await cell.get()).value, b"12")
        with self.assertRaises(mortise.ConflictError):
            await cell.delete(version)

    async def test_loss_is_told_on_the_loop(self):
        lost = asyncio.get_running_loop().create_future()
        with self.assertRaises(mortise.LostError):
            async with self.tasks.lock(self.name) as hold:
                hold.on_lost(lost.set_result)
                self.client.break_(self.name, hold.fence)
                self.assertIs(await asyncio.wait_for(lost, LIMIT), hold)
        self.assertTrue(hold.lost)

    async def test_queued_callback_runs_on_the_loop(self):
        queued = asyncio.get_running_loop().create_future()
        lock = self.tasks.lock(self.name, on_queued=lambda ahead: queued.done() or
                               queued.set_result((ahead, asyncio.get_running_loop())))
        with self.client.lock(self.name):
            waiter = asyncio.ensure_future(lock.acquire())
            self.assertEqual(await asyncio.wait_for(queued, LIMIT), (1, queued.get_loop()))
        (await waiter).release()

    async def test_block_ends_with_its_own_hold(self):
        sem = self.tasks.semaphore(self.name, 3)
        async with sem as outer:
            async with sem as inner:
                sem.release()
                self.assertFalse(inner.held)
            self.assertTrue(outer.held)
        self.assertFalse(outer.held)

    async def test_detach_and_adopt(self):
        token = await (await self.tasks.lock(self.name).acquire()).detach()
        async with await self.tasks.lock(self.name).adopt(token) as hold:
            self.assertTrue(hold.held)
        self.queued(self.name, 0)

    async def test_close_ends_waits(self):
        other = await aio.Client(self.url).open()
        with self.client.lock(self.name):
            lock = other.lock(self.name)
            waiter = await self.waits(lock.acquire())
            await other.close()
            with self.assertRaises(mortise.ClosedError):
                await waiter
        with self.assertRaises(mortise.ClosedError):
            await lock.acquire()
        with self.assertRaises(mortise.ClosedError):
            other.lock("x")

    async def test_client_that_is_not_open(self):
        with self.assertRaisesRegex(mortise.InvalidError, "not open yet"):
            aio.Client(self.url).lock(self.name)
        with self.assertRaises(mortise.ConfigError):
            async with aio.Client("nonsense:"):
                self.fail("there is no such store")


class Loops(Place):
    def test_campaign_whose_loop_is_closed_leads_nobody(self):
        loop = asyncio.new_event_loop()
        client = loop.run_until_complete(aio.Client(self.url).open())
        self.addCleanup(client._core.close)
        with self.client.election(self.name).campaign(LIMIT):
            task = loop.create_task(client.election(self.name).campaign())
            while len(loop.run_until_complete(client.list(self.name))) != 2:
                self.assertFalse(task.done())
            loop.close()
        with self.client.election(self.name).campaign(LIMIT) as term:
            self.assertTrue(term.held)
        task._log_destroy_pending = False
