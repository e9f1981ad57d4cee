# SPDX-License-Identifier: Apache-2.0
"""The client: a store, opened, and what can be made there.

Purpose: BaseClient has the options and the calls that threads and tasks share; Client is for
threads, aio.Client for tasks.
Threads: a client may be shared by all threads of a process. A child of fork opens its own.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, Callable, List, NoReturn, Optional, Sequence, Type, TypeVar, Union

from . import _library
from ._cell import Cell
from ._core import Core, keys, milliseconds
from ._election import Election, Terms
from ._errors import EFORKED, EINVALID, MortiseError, detail_now, error_of
from ._library import lib
from ._lock import Lock, ReadWriteLock, Semaphore, Spec, encoded

Queued = Callable[[int], object]
R = TypeVar("R")


@dataclass(frozen=True)
class Capabilities:
    """The promises of the store; see mortise_capabilities in mortise.h."""

    fair: bool
    fence: bool
    notify: bool
    across_hosts: bool
    survives_failover: bool
    durable_fence: bool
    lease_ms: int
    detach: bool
    linger: bool
    lock_delay: bool
    exclusive_fair: bool
    lease_left_ms: int


@dataclass(frozen=True)
class Stats:
    """Counters since open; see mortise_stats in mortise.h."""

    acquisitions: int
    nested: int
    handovers: int
    commands: int
    losses: int
    requests: int
    round_trips: int


@dataclass(frozen=True)
class Entry:
    """One ticket in a queue. place 0: it holds; 1: next; see mortise_entry in mortise.h."""

    name: str
    kind: str
    label: str
    fence: int
    place: int
    since_wall_ms: int
    host: str
    pid: int
    weight: int
    capacity: int
    detached: bool
    delay_ms: int
    node: str
    id: int


def record_of(made: Type[R], record: Any) -> R:
    """A dataclass filled from a C structure with fields of the same names."""
    values = {}
    for item in fields(made):
        value = getattr(record, item.name)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        values[item.name] = bool(value) if str(item.type) == "bool" else value
    return made(**values)


_listings: dict[int, list[Entry]] = {}


@_library.ENTRY
def _listed(key: int, record: Any) -> int:
    _listings[key].append(record_of(Entry, record.contents))
    return 0


def options_of(max_hold: Optional[float], linger: Optional[float], lock_delay: Optional[float],
               on_queued: Optional[Queued]) -> dict[str, Any]:
    return {"max_hold": max_hold, "linger": linger, "lock_delay": lock_delay,
            "on_queued": on_queued}


class BaseClient:
    """The common part of clients of threads and of tasks."""

    _at_once = False  # whether it is open when made

    def __init__(self, url: Union[None, str, Sequence[str]] = None, *, timeout: float = 5.0,
                 label: Optional[str] = None, strict: bool = False, short_lived: bool = False,
                 tell_process: bool = False, give_up: Optional[float] = None,
                 budget_ms: int = 0, budget_count: int = 0, answer: float = 0.0,
                 on_contact: Optional[Callable[[Optional[MortiseError]], object]] = None) -> None:
        """Options as mortise_client_options has them; times are seconds. A list of URLs is a
        quorum of these stores, each of which is waited for `answer` in a round."""
        self._url, self._answer, self._on_contact = url, answer, on_contact
        self._options = _library.ClientOptions(
            flags=(_library.STRICT * strict + _library.SHORT_LIVED * short_lived
                   + _library.TELL_PROCESS * tell_process),
            budget_ms=budget_ms, budget_count=budget_count, timeout_ms=milliseconds(timeout),
            label=None if label is None else encoded(label),
            give_up_ms=milliseconds(give_up or 0))
        self._opened: Optional[Core] = None
        if self._at_once:
            self._open()

    def _open(self) -> None:
        if self._url is None or isinstance(self._url, str):
            url = None if self._url is None else encoded(self._url)
            self._opened = Core(lib.open, url, self._options, contact=self._on_contact)
            return
        urls = (ctypes.c_char_p * len(self._url))(*map(encoded, self._url))
        self._opened = Core(lib.open_quorum, urls, len(urls), milliseconds(self._answer),
                            self._options, contact=self._on_contact)

    @property
    def _core(self) -> Core:
        if self._opened is None:
            raise error_of(EINVALID, "this client is not open yet: use async with, or open()")
        return self._opened

    def __reduce__(self) -> NoReturn:
        raise error_of(EFORKED, "a client cannot be sent to another process: open one there")

    def __repr__(self) -> str:
        if self._opened is None or self._opened.closed:
            return f"<{type(self).__name__} closed>"
        return f"<{type(self).__name__} {self.url}>"

    @property
    def closed(self) -> bool:
        return self._core.closed

    @property
    def url(self) -> str:
        """The store's address without secrets."""
        return str(self._core.value(lib.url, self._core.pointer).decode())

    @property
    def capabilities(self) -> Capabilities:
        record = _library.CapabilitiesRecord(size=ctypes.sizeof(_library.CapabilitiesRecord))
        self._core.call(lib.get_capabilities, self._core.pointer, ctypes.byref(record))
        return record_of(Capabilities, record)

    @property
    def stats(self) -> Stats:
        record = _library.StatsRecord(size=ctypes.sizeof(_library.StatsRecord))
        self._core.call(lib.get_stats, self._core.pointer, ctypes.byref(record))
        return record_of(Stats, record)

    def _mutex(self, name: str, reentrant: bool, options: dict[str, Any]) -> Spec:
        maker = lib.mutex_new if reentrant else lib.semaphore_mutex_new
        return Spec(self._core, maker, name, **options)

    def _exclusive(self, name: str, options: dict[str, Any]) -> Spec:
        return Spec(self._core, lib.exclusive_new, name, **options)

    def _semaphore(self, name: str, permits: int, take: int, options: dict[str, Any]) -> Spec:
        if permits < 0 or take < 1:
            raise error_of(EINVALID, f"{take} of {permits} permits")
        return Spec(self._core, lib.semaphore_new, name, permits, take=take, **options)

    def _read_write(self, name: str, options: dict[str, Any]) -> Spec:
        return Spec(self._core, lib.read_write_new, name, sides=2, **options)

    def _server(self) -> str:
        text = ctypes.create_string_buffer(256)
        self._core.call(lib.server, self._core.pointer, text, len(text))
        return text.value.decode("utf-8", "replace")

    def _list(self, name: Optional[str]) -> list[Entry]:
        key, found = next(keys), []  # type: int, list[Entry]
        _listings[key] = found
        try:
            self._core.call(lib.list, self._core.pointer,
                            None if name is None else encoded(name), _listed, key)
        finally:
            del _listings[key]
        return found


class Client(BaseClient):
    """A client of threads, open when made. Use it as `with Client(url) as client:`.

    url None: $MORTISE_URL, else a file of this user. Options of the locks: timeout is that of
    `with` and of acquire(); max_hold, linger and lock_delay (seconds) and on_queued(ahead) are
    those of mortise_lock_options.
    """

    _at_once = True

    def close(self) -> None:
        """Releases what is held, ends all waits with ClosedError, and frees the client."""
        self._core.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], fault: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    def lock(self, name: str, *, timeout: Optional[float] = None, reentrant: bool = True,
             max_hold: Optional[float] = None, linger: Optional[float] = None,
             lock_delay: Optional[float] = None, on_queued: Optional[Queued] = None) -> Lock:
        """A mutex. reentrant=False: a second acquire of its thread is DeadlockError."""
        options = options_of(max_hold, linger, lock_delay, on_queued)
        return Lock(self._mutex(name, reentrant, options), timeout)

    def exclusive(self, name: str, *, timeout: Optional[float] = None,
                  max_hold: Optional[float] = None, linger: Optional[float] = None,
                  lock_delay: Optional[float] = None, on_queued: Optional[Queued] = None) -> Lock:
        """A mutex without an order: on Redis the key that redis-py's lock uses."""
        options = options_of(max_hold, linger, lock_delay, on_queued)
        return Lock(self._exclusive(name, options), timeout)

    def semaphore(self, name: str, permits: int, *, take: int = 1, timeout: Optional[float] = None,
                  max_hold: Optional[float] = None, linger: Optional[float] = None,
                  lock_delay: Optional[float] = None,
                  on_queued: Optional[Queued] = None) -> Semaphore:
        """A semaphore of so many permits; each acquire takes `take` of them together."""
        options = options_of(max_hold, linger, lock_delay, on_queued)
        return Semaphore(self._semaphore(name, permits, take, options), timeout)

    def read_write(self, name: str, *, timeout: Optional[float] = None,
                   max_hold: Optional[float] = None, linger: Optional[float] = None,
                   lock_delay: Optional[float] = None,
                   on_queued: Optional[Queued] = None) -> ReadWriteLock:
        """A read/write lock: its sides are .read and .write."""
        options = options_of(max_hold, linger, lock_delay, on_queued)
        return ReadWriteLock(self._read_write(name, options), timeout)

    def election(self, name: str, value: bytes = b"", *, elected: Optional[Terms] = None,
                 deposed: Optional[Terms] = None) -> Election:
        """A candidate; elected(fence) and deposed(fence) are called in turns."""
        return Election(self._core, name, value, elected, deposed)

    def cell(self, name: str) -> Cell:
        """A value with a version."""
        return Cell(self._core, name)

    def server(self) -> str:
        """The product and version of the store's server, for people."""
        return self._core.aside(self._server)

    def list(self, name: Optional[str] = None) -> List[Entry]:
        """Holders and waiters of a lock, or of all, each queue in order."""
        return self._core.aside(self._list, name)

    def revoke(self, name: str, fence: int = 0) -> None:
        """Requests that a holder gives the lock up; fence 0: all holders."""
        self._core.wait(lib.revoke, self._core.pointer, encoded(name), fence)

    def break_(self, name: str, fence: int) -> None:
        """Removes a ticket of any client from the queue."""
        self._core.wait(getattr(lib, "break"), self._core.pointer, encoded(name), fence)


_printed: dict[int, Callable[[str], object]] = {}


@_library.TEXT
def _print(key: int, text: bytes) -> None:
    _printed[key](text.decode("utf-8", "replace"))


def init(url: Optional[str] = None, print: Optional[Callable[[str], object]] = None) -> None:
    """Creates in a store what it needs before its first use. With print nothing is executed, and
    print(text) receives the statements."""
    key = next(keys)
    if print is not None:
        _printed[key] = print
    try:
        error = lib.init(None if url is None else encoded(url),
                         _library.TEXT(0) if print is None else _print, key)
        if error:
            raise error_of(error, detail_now())
    finally:
        _printed.pop(key, None)
