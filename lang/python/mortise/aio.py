# SPDX-License-Identifier: Apache-2.0
"""The same for asyncio: `async with Client(url) as client`, `async with client.lock(name) as hold`.

Purpose: an acquire is the library's asynchronous one, whose callback posts to the task's loop, so
a wait costs no thread. Calls that can only block run on a thread each.
Invariant: a cancelled task leaves nothing held: its acquire ends, or what it was granted meanwhile
is released.
Invariant: a C handle has one acquire at a time (handles are pooled), so ending that ends no other
task's. A task never nests: a second acquire by the same task is DeadlockError.
Threads: the objects belong to the loop of the task that opened the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import threading
from types import TracebackType
from typing import Any, AsyncIterator, Callable, Optional, Sequence

from ._cell import BaseCell, CellValue
from ._client import BaseClient, Entry, Queued, options_of
from ._core import Core, guarded, keys, milliseconds, nothing
from ._election import BaseElection, Leader, Term, Terms
from ._errors import EBUSY, EDEADLOCK, EINVALID, ENOTHELD, MortiseError, error_of
from ._hold import AsyncHold
from ._library import OWNER_NOBODY, HoldValue, lib
from ._lock import Handle, Spec, encoded, holds_of, release_all, take_all

__all__ = ["AsyncHold", "Cell", "Client", "Election", "Lock", "ReadWriteLock", "Semaphore",
           "acquire_all"]
End = tuple[int, str, HoldValue]
Holders = dict["asyncio.Task[Any]", list[AsyncHold]]


def settle(future: asyncio.Future[Any], result: Any, fault: Optional[BaseException]) -> None:
    if future.done():
        return
    if fault is not None:
        future.set_exception(fault)
    else:
        future.set_result(result)


class Aside:
    """Runs what blocks on a thread of its own, and posts to the loop what comes from others. The
    loop's executor has few threads, and a wait there could keep all work of the program waiting."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()

    def __call__(self, call: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        future: asyncio.Future[Any] = self.loop.create_future()

        def run() -> None:
            result, fault = None, None
            try:
                result = call(*arguments)
            except Exception as raised:  # pylint: disable=broad-except
                fault = raised
            self.post(nothing, settle, future, result, fault)

        threading.Thread(target=run, daemon=True, name="mortise-call").start()
        return future

    def post(self, otherwise: Callable[[], object], call: Callable[..., object],
             *arguments: Any) -> None:
        """Calls on the loop; `otherwise` here if the loop is closed."""
        try:
            self.loop.call_soon_threadsafe(call, *arguments)
        except RuntimeError:
            otherwise()


    def posted(self, callback: Optional[Callable[..., object]]) -> Any:
        """The same callback, on the loop."""
        if callback is None:
            return None
        return functools.partial(self.post, nothing, guarded, callback)


class Lock:
    """A lock by name, for tasks. Client.lock and its like make it."""

    _nests = False  # whether a task that holds it may acquire it again

    def __init__(self, spec: Spec, timeout: Optional[float], aside: Aside, side: int = 0,
                 holders: Optional[Holders] = None) -> None:
        self._core, self._spec, self._aside, self._side = spec.core, spec, aside, side
        self._spare = [self._handle()]
        self._holders: Holders = {} if holders is None else holders
        self._blocks: Holders = {}  # of the `async with`s that each task is in
        #: Seconds that an acquire waits if it says nothing else; None: for ever.
        self.timeout = timeout
        self.name = spec.name

    def __repr__(self) -> str:
        return f"<aio.{type(self).__name__} {self.name!r}>"

    def _handle(self) -> Handle:
        return self._spec.handles(OWNER_NOBODY)[self._side]

    def _keep(self, value: HoldValue) -> AsyncHold:
        task = asyncio.current_task()
        hold = AsyncHold(self._core, value, self.name, self._aside)
        if task is not None:
            self._holders.setdefault(task, []).append(hold)
            hold._ended = functools.partial(self._drop, task, hold)
        return hold

    def _drop(self, task: asyncio.Task[Any], hold: AsyncHold) -> None:
        holds = self._holders.get(task, [])
        if hold in holds:
            holds.remove(hold)
        if not holds:
            self._holders.pop(task, None)

    def _mine(self) -> list[AsyncHold]:
        task = asyncio.current_task()
        return [] if task is None else self._holders.get(task, [])

    async def acquire(self, timeout: Any = ...) -> AsyncHold:
        """Waits at most `timeout` seconds: 0 does not wait, None waits for ever, and without it the
        lock's own counts."""
        if not self._nests and any(hold.held for hold in self._mine()):
            raise error_of(EDEADLOCK, f"this task holds {self.name} already")
        seconds = self.timeout if timeout is ... else timeout
        handle = self._spare.pop() if self._spare else self._handle()
        try:
            error, detail, value = await self._end_of(handle, seconds)
        finally:
            self._spare.append(handle)
        if error:
            raise self._core.fault(error, detail)
        return self._keep(value)

    async def _end_of(self, handle: Handle, seconds: Optional[float]) -> End:
        future: asyncio.Future[End] = self._aside.loop.create_future()
        key = next(keys)

        def give(end: End) -> None:
            if not future.done():
                future.set_result(end)
            elif not end[0]:
                self._core.quietly(lib.release, end[2])

        def sink(error: int, detail: str, value: HoldValue) -> None:
            self._aside.post(lambda: error or lib.release(value), give, (error, detail, value))

        self._core.begin(key, handle, seconds, sink)
        try:
            return await future
        except BaseException:
            self._core.abandon(key, handle)
            if future.done() and not future.cancelled():
                give(future.result())
            raise

    async def try_acquire(self) -> Optional[AsyncHold]:
        """A hold if the lock is free now, or None."""
        try:
            return await self.acquire(0)
        except MortiseError as fault:
            if fault.code == EBUSY:
                return None
            raise

    def release(self) -> None:
        """Releases what this task acquired by this lock."""
        holds = self._mine()
        if not holds:
            raise error_of(ENOTHELD, f"{self.name}, in this task")
        holds[-1].release()

    async def adopt(self, token: str) -> AsyncHold:
        """Acquires by a ticket that AsyncHold.detach left; waits for the store only."""
        def call() -> HoldValue:
            value = HoldValue()
            self._core.call(lib.adopt, handle, encoded(token), ctypes.byref(value))
            return value

        handle = self._handle()
        return self._keep(await unless_cancelled(
            self._aside(call), lambda value: self._core.quietly(lib.release, value)))

    async def __aenter__(self) -> AsyncHold:
        hold = await self.acquire()
        task = asyncio.current_task()
        if task is not None:
            self._blocks.setdefault(task, []).append(hold)
        return hold

    async def __aexit__(self, kind: Optional[type[BaseException]],
                        fault: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        task = asyncio.current_task()
        if task is not None:
            hold = self._blocks[task].pop()
            if not self._blocks[task]:
                del self._blocks[task]
            hold._leave(fault)


async def unless_cancelled(future: asyncio.Future[Any], undo: Callable[[Any], object],
                           hurry: Optional[Callable[[], object]] = None) -> Any:
    """Waits for work on a thread, which goes on if this task is cancelled: then undo() takes
    its result, and hurry() makes it end early."""
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        while hurry is not None and not future.done():
            hurry()
            await asyncio.wait([future], timeout=0.01)
        future.add_done_callback(
            lambda done: None if done.cancelled() or done.exception() else undo(done.result()))
        raise


class Semaphore(Lock):
    """Permits; a task may acquire again, and waits like any other."""

    _nests = True

    async def get_permits(self) -> int:
        """How many permits are in use."""
        def call() -> int:
            number = ctypes.c_uint32()
            self._core.call(lib.semaphore_get_permits, handle, ctypes.byref(number))
            return number.value

        handle = self._spare[0] if self._spare else self._handle()
        return int(await self._aside(call))

    async def set_permits(self, number: int, timeout: Optional[float] = None) -> None:
        """Changes how many are in use, for all clients."""
        if number < 0:
            raise error_of(EINVALID, f"{number} permits")
        handle = self._handle()
        await self._aside(self._core.call, lib.semaphore_set_permits, handle, number,
                          milliseconds(timeout))


class ReadWriteLock:
    """Readers together, or one writer; `read` and `write` are its sides."""

    def __init__(self, spec: Spec, timeout: Optional[float], aside: Aside) -> None:
        self.name = spec.name
        holders: Holders = {}  # of both: a reader that wants to write would wait for itself
        self.read = Lock(spec, timeout, aside, 0, holders)
        self.write = Lock(spec, timeout, aside, 1, holders)


@contextlib.asynccontextmanager
async def acquire_all(*locks: Lock,
                      timeout: Optional[float] = None) -> AsyncIterator[list[AsyncHold]]:
    """`async with acquire_all(a, b) as holds:` has all of these locks, or none."""
    if not locks:
        raise error_of(EINVALID, "acquire_all needs locks")
    core, handles = locks[0]._core, [lock._handle() for lock in locks]

    def hurry() -> None:
        for handle in handles:
            handle.core.quietly(lib.cancel_waiters, handle)

    values = await unless_cancelled(locks[0]._aside(take_all, core, handles, timeout),
                                    functools.partial(release_all, handles), hurry)
    holds = holds_of(lambda lock, value: AsyncHold(lock._core, value, lock.name, lock._aside),
                     locks, handles, values)
    async with contextlib.AsyncExitStack() as stack:
        for hold in holds:
            await stack.enter_async_context(hold)
        yield holds


class Cell(BaseCell):
    """A value with a version; see mortise.Cell."""

    def __init__(self, core: Core, name: str, aside: Aside) -> None:
        super().__init__(core, name)
        self._aside = aside

    async def get(self) -> CellValue:
        result: CellValue = await self._aside(self._get)
        return result

    async def compare_and_set(self, version: int, value: bytes, *, fence: int = 0,
                              hold: Optional[AsyncHold] = None) -> int:
        return int(await self._aside(self._cas, version, value, fence, hold))

    async def delete(self, version: int, *, fence: int = 0,
                     hold: Optional[AsyncHold] = None) -> None:
        await self._aside(self._delete, version, fence, hold)

    async def update(self, function: Callable[[bytes], bytes], *,
                     timeout: Optional[float] = None, fence: int = 0,
                     hold: Optional[AsyncHold] = None) -> None:
        """The function runs on another thread, perhaps several times."""
        await self._aside(self._update, function, timeout, fence, hold)


class Election(BaseElection):
    """A candidate; its callbacks run on the loop. `async with await election.campaign():` leads."""

    def __init__(self, core: Core, name: str, value: bytes, elected: Optional[Terms],
                 deposed: Optional[Terms], aside: Aside) -> None:
        self._aside = aside
        super().__init__(core, name, value, aside.posted(elected), aside.posted(deposed))

    def observe(self, callback: Optional[Callable[[Optional[Leader]], object]]) -> None:
        super().observe(self._aside.posted(callback))

    async def campaign(self, timeout: Optional[float] = None) -> Term:
        """Waits until this candidate leads, at most `timeout` seconds."""
        future: asyncio.Future[tuple[int, str]] = self._aside.loop.create_future()
        key = next(keys)

        def give(error: int, detail: str) -> None:
            if not future.done():
                future.set_result((error, detail))

        def alone(error: int) -> None:  # the loop is closed
            if not error:
                self._core.quietly(lib.election_resign, self._pointer)

        self._begin(key, timeout, lambda error, detail: self._aside.post(
            functools.partial(alone, error), give, error, detail))
        try:
            end = await future
        except BaseException:
            self._abandon(key)
            raise
        return self._term(*end)

    async def leader(self) -> Optional[Leader]:
        """Reads from the store who leads; None: nobody."""
        result: Optional[Leader] = await self._aside(self._leader)
        return result


class Client(BaseClient):
    """A client of tasks: `async with Client(url) as client:`, or await open() and close()."""

    async def open(self) -> Client:
        aside = Aside()
        await unless_cancelled(aside(self._open), lambda _: aside(self._core.close))
        self._aside = aside
        return self

    async def close(self) -> None:
        """Releases what is held, ends all waits with ClosedError, and frees the client."""
        await self._aside(self._core.close)

    async def __aenter__(self) -> Client:
        return await self.open()

    async def __aexit__(self, kind: Optional[type[BaseException]],
                        fault: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        await asyncio.shield(self.close())

    def lock(self, name: str, *, timeout: Optional[float] = None, max_hold: Optional[float] = None,
             linger: Optional[float] = None, lock_delay: Optional[float] = None,
             on_queued: Optional[Queued] = None) -> Lock:
        """A mutex."""
        options = options_of(max_hold, linger, lock_delay,
                             self._ready().posted(on_queued))
        return Lock(self._mutex(name, True, options), timeout, self._ready())

    def exclusive(self, name: str, *, timeout: Optional[float] = None,
                  max_hold: Optional[float] = None, linger: Optional[float] = None,
                  lock_delay: Optional[float] = None, on_queued: Optional[Queued] = None) -> Lock:
        """A mutex without an order: on Redis the key that redis-py's lock uses."""
        options = options_of(max_hold, linger, lock_delay,
                             self._ready().posted(on_queued))
        return Lock(self._exclusive(name, options), timeout, self._ready())

    def semaphore(self, name: str, permits: int, *, take: int = 1, timeout: Optional[float] = None,
                  max_hold: Optional[float] = None, linger: Optional[float] = None,
                  lock_delay: Optional[float] = None,
                  on_queued: Optional[Queued] = None) -> Semaphore:
        """A semaphore of so many permits; each acquire takes `take` of them together."""
        options = options_of(max_hold, linger, lock_delay,
                             self._ready().posted(on_queued))
        return Semaphore(self._semaphore(name, permits, take, options), timeout, self._ready())

    def read_write(self, name: str, *, timeout: Optional[float] = None,
                   max_hold: Optional[float] = None, linger: Optional[float] = None,
                   lock_delay: Optional[float] = None,
                   on_queued: Optional[Queued] = None) -> ReadWriteLock:
        """A read/write lock: its sides are .read and .write."""
        options = options_of(max_hold, linger, lock_delay,
                             self._ready().posted(on_queued))
        return ReadWriteLock(self._read_write(name, options), timeout, self._ready())

    def election(self, name: str, value: bytes = b"", *, elected: Optional[Terms] = None,
                 deposed: Optional[Terms] = None) -> Election:
        """A candidate; elected(fence) and deposed(fence) are called in turns, on the loop."""
        return Election(self._core, name, value, elected, deposed, self._ready())

    def cell(self, name: str) -> Cell:
        """A value with a version."""
        return Cell(self._core, name, self._ready())

    def _ready(self) -> Aside:
        self._core.enter()  # open, and of this process
        self._core.leave()
        return self._aside

    async def server(self) -> str:
        """The product and version of the store's server, for people."""
        return str(await self._ready()(self._server))

    async def list(self, name: Optional[str] = None) -> Sequence[Entry]:
        """Holders and waiters of a lock, or of all, each queue in order."""
        found: Sequence[Entry] = await self._ready()(self._list, name)
        return found

    async def revoke(self, name: str, fence: int = 0) -> None:
        """Requests that a holder gives the lock up; fence 0: all holders."""
        await self._ready()(self._core.call, lib.revoke, self._core.pointer, encoded(name), fence)

    async def break_(self, name: str, fence: int) -> None:
        """Removes a ticket of any client from the queue."""
        await self._ready()(self._core.call, getattr(lib, "break"), self._core.pointer,
                            encoded(name), fence)
