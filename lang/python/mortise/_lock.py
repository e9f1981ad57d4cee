# SPDX-License-Identifier: Apache-2.0
"""Locks of threads: mutex, exclusive lock, semaphore, the sides of a read/write lock, several.

Purpose: a Lock is a name, a kind and options; each thread that uses it gets a C handle of its own,
with an owner number of its own, so that a thread nests and its waits can be ended alone.
Invariant: a handle is freed when its thread ends or the Lock is collected, never under a call.
Threads: a Lock may be shared. lock.release() releases what this thread acquired last by it.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Iterable, Iterator, Optional, Sequence, TypeVar

from . import _library
from ._core import Core, end_silently, from_library, keys, milliseconds, owner_now, run_aside
from ._errors import EINVALID, ENOTHELD, MortiseError, error_of
from ._hold import BaseHold, Hold
from ._library import HoldValue, lib

H = TypeVar("H", bound=BaseHold)
_queued: dict[int, Callable[[int], object]] = {}


@_library.QUEUED
def _was_queued(key: int, ahead: int) -> None:
    callback = _queued.get(key)
    if callback is not None:
        from_library(callback, ahead)


class Handle:
    """A C lock handle, freed with the object."""

    def __init__(self, core: Core, pointer: ctypes.c_void_p) -> None:
        self.core, self._as_parameter_ = core, pointer

    def __del__(self) -> None:
        if lib is not None:  # the interpreter ends
            self.core.quietly(lib.lock_free, self)


@dataclass
class Spec:
    """A lock by its properties: makes a handle of it for an owner; two for a read/write lock."""

    core: Core
    maker: Callable[..., int]
    name: str
    permits: Optional[int] = None
    sides: int = 1
    take: int = 0
    flags: int = 0
    max_hold: Optional[float] = None
    linger: Optional[float] = None
    lock_delay: Optional[float] = None
    on_queued: Optional[Callable[[int], object]] = None
    key: int = 0

    def __post_init__(self) -> None:
        if self.on_queued is not None:
            self.key = next(keys)
            _queued[self.key] = self.on_queued

    def __del__(self) -> None:
        if self.key:
            _queued.pop(self.key, None)

    def options(self, owner: int) -> _library.LockOptions:
        options = _library.LockOptions(size=ctypes.sizeof(_library.LockOptions), owner=owner,
                                       flags=self.flags, permits=self.take)
        if self.on_queued is not None:
            options.queued, options.queued_argument = _was_queued, self.key
        options.max_hold_ms = milliseconds(self.max_hold or 0)
        options.linger_ms = milliseconds(self.linger or 0)
        options.lock_delay_ms = milliseconds(self.lock_delay or 0)
        return options

    def handles(self, owner: int) -> list[Handle]:
        pointers = [ctypes.c_void_p() for _ in range(self.sides)]
        numbers = [] if self.permits is None else [self.permits]
        self.core.call(self.maker, self.core.pointer, encoded(self.name), *numbers,
                       ctypes.byref(self.options(owner)), *map(ctypes.byref, pointers))
        return [Handle(self.core, pointer) for pointer in pointers]


def encoded(name: str) -> bytes:
    """A name as C takes it, which would end it at a null character."""
    if not isinstance(name, str) or "\0" in name:
        raise error_of(EINVALID, f"a name is a str without null characters, not {name!r}")
    return name.encode("utf-8", "surrogateescape")


class _Mine(threading.local):
    """A thread's handles of a lock, and what it acquired by them."""

    def __init__(self, spec: Spec) -> None:
        self.handles = spec.handles(owner_now())
        self.holds: list[list[Hold]] = [[] for _ in self.handles]
        self.blocks: list[Hold] = []  # of the `with`s that this thread is in


class Lock:
    """A lock by name. `with lock as hold:` acquires and releases it; a thread may nest it, unless
    it was made otherwise. Client.lock and its like make it."""

    def __init__(self, spec: Spec, timeout: Optional[float], mine: Optional[_Mine] = None,
                 side: int = 0) -> None:
        self._core, self._spec, self._side = spec.core, spec, side
        self._mine = mine if mine is not None else _Mine(spec)
        #: Seconds that an acquire waits if it says nothing else; None: for ever.
        self.timeout = timeout
        self.name = spec.name

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"

    @property
    def _handle(self) -> Handle:
        return self._mine.handles[self._side]

    def _keep(self, value: HoldValue) -> Hold:
        hold = Hold(self._core, value, self.name)
        mine = self._mine.holds[self._side]
        while mine and mine[-1]._end is not None:
            mine.pop()
        mine.append(hold)
        return hold

    def acquire(self, timeout: Any = ...) -> Hold:
        """Waits at most `timeout` seconds: 0 does not wait, None waits for ever, and without it the
        lock's own counts. LockTimeoutError, BusyError (0), and what the store finds."""
        seconds = self.timeout if timeout is ... else timeout
        try:
            return self._keep(self._core.acquire(self._handle, seconds))
        except MortiseError as fault:
            end_silently(fault)
            raise

    def try_acquire(self) -> Optional[Hold]:
        """A hold if the lock is free now, or None."""
        value = self._core.try_acquire(self._handle)
        return None if value is None else self._keep(value)

    def release(self) -> None:
        """Releases what this thread acquired last by this lock and has not released."""
        mine = self._mine.holds[self._side]
        while mine and mine[-1]._end is not None:
            mine.pop()
        if not mine:
            raise error_of(ENOTHELD, f"{self.name}, in this thread")
        mine.pop().release()

    def adopt(self, token: str) -> Hold:
        """Acquires by a ticket that Hold.detach left; waits for the store only."""
        value, handle = HoldValue(), self._handle
        run_aside(lambda: self._core.call(lib.adopt, handle, encoded(token),
                                          ctypes.byref(value)),
                  lambda _: self._core.quietly(lib.release, value))
        return self._keep(value)

    def __enter__(self) -> Hold:
        hold = self.acquire()
        self._mine.blocks.append(hold)
        return hold

    def __exit__(self, kind: Optional[type[BaseException]], fault: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self._mine.blocks.pop()._leave(fault)


class Semaphore(Lock):
    """Permits: an acquire takes as many as its Semaphore says. A permit has no owner, so an acquire
    never nests, and any thread may release the hold."""

    @property
    def permits(self) -> int:
        """How many permits are in use; setting it waits until they are free."""
        number = ctypes.c_uint32()
        self._core.wait(lib.semaphore_get_permits, self._handle, ctypes.byref(number))
        return number.value

    @permits.setter
    def permits(self, number: int) -> None:
        self.set_permits(number)

    def set_permits(self, number: int, timeout: Optional[float] = None) -> None:
        """Changes how many are in use, for all clients; LockTimeoutError: nothing has changed."""
        if number < 0:
            raise error_of(EINVALID, f"{number} permits")
        self._core.wait(lib.semaphore_set_permits, self._handle, number, milliseconds(timeout))


class ReadWriteLock:
    """Readers together, or one writer; neither starves. `read` and `write` are its sides."""

    def __init__(self, spec: Spec, timeout: Optional[float]) -> None:
        mine = _Mine(spec)
        self.name = spec.name
        self.read = Lock(spec, timeout, mine, 0)
        self.write = Lock(spec, timeout, mine, 1)


def release_all(handles: Sequence[Handle], values: Iterable[HoldValue]) -> None:
    """Of any clients, of which some may be closed."""
    for handle, value in zip(handles, values):
        handle.core.quietly(lib.release, value)


def holds_of(make: Callable[[Any, HoldValue], H], locks: Sequence[Any], handles: Sequence[Handle],
             values: list[HoldValue]) -> list[H]:
    """The holds of what take_all acquired; if one cannot be made, all is released."""
    holds: list[H] = []
    try:
        for lock, value in zip(locks, values):
            holds.append(make(lock, value))
    except BaseException:
        for hold in holds:
            with contextlib.suppress(MortiseError):
                hold.release()
        release_all(handles[len(holds):], values[len(holds):])
        raise
    return holds


def take_all(core: Core, handles: Sequence[Handle], timeout: Optional[float]) -> list[HoldValue]:
    """All of these locks or none."""
    values = (HoldValue * len(handles))()
    pointers = (ctypes.c_void_p * len(handles))(*(h._as_parameter_.value for h in handles))

    def hurry() -> None:
        for handle in handles:
            handle.core.quietly(lib.cancel_waiters, handle)

    def undo(_: int) -> None:
        release_all(handles, values)

    cores = {handle.core for handle in handles} - {core}
    with contextlib.ExitStack() as inside:
        for other in cores:
            other.enter()
            inside.callback(other.leave)
        run_aside(lambda: core.call(lib.acquire_all, pointers, len(handles),
                                    milliseconds(timeout), values), undo, hurry)
    return list(values)


@contextlib.contextmanager
def hold_all(locks: Sequence[Lock], timeout: Optional[float]) -> Iterator[list[Hold]]:
    """The context of acquire_all: releases in the opposite order."""
    if not locks:
        raise error_of(EINVALID, "acquire_all needs locks")
    handles = [lock._handle for lock in locks]
    values = take_all(locks[0]._core, handles, timeout)
    holds = holds_of(lambda lock, value: lock._keep(value), locks, handles, values)
    with contextlib.ExitStack() as stack:
        for hold in holds:
            stack.enter_context(hold)
        yield holds


def acquire_all(*locks: Lock, timeout: Optional[float] = None) -> Any:
    """`with acquire_all(a, b) as holds:` has all of these locks, of any kinds and clients; it waits
    for none while it holds another, so two that want the same cannot wait for each other."""
    return hold_all(locks, timeout)
