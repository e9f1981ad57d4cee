# SPDX-License-Identifier: Apache-2.0
"""Elections: candidates campaign, one leads, anybody may read or observe who.

Purpose: a won campaign is a Term, a hold whose release resigns.
Invariant: an abandoned campaign resigns, so nobody leads without knowing.
Threads: any. elected, deposed and observers run on a thread of the library's and must not block.
"""

from __future__ import annotations

import _thread
import ctypes
import math
import threading
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Optional

from . import _library
from ._cell import require_value
from ._core import Core, from_library, keys, require_may_wait
from ._errors import EDEADLOCK, ELOST, ENOTHELD, MortiseError, NoLeaderError, detail_now, error_of
from ._hold import BaseHold, State
from ._library import FOREVER, HoldValue, LeaderRecord, lib
from ._lock import encoded

Terms = Callable[[int], object]


@dataclass(frozen=True)
class Leader:
    """The leader: the value that it proclaims, and the fence of its term."""

    value: bytes
    fence: int


_terms: dict[int, tuple[Optional[Terms], Optional[Terms]]] = {}
_observers: dict[int, Callable[[Optional[Leader]], object]] = {}
_campaigns: dict[int, Callable[[int, str], None]] = {}


@_library.TERM
def _elected(key: int, fence: int) -> None:
    callback = _terms.get(key, (None, None))[0]
    if callback is not None:
        from_library(callback, fence)


@_library.TERM
def _deposed(key: int, fence: int) -> None:
    callback = _terms.get(key, (None, None))[1]
    if callback is not None:
        from_library(callback, fence)


@_library.CAMPAIGN
def _ended(key: int, error: int) -> None:
    detail = detail_now() if error else ""
    sink = _campaigns.pop(key, None)
    if sink is not None:
        sink(error, detail)


@_library.LEADER
def _leads(key: int, record: Any) -> None:
    callback = _observers.get(key)
    if callback is not None:
        from_library(callback, leader_of(record.contents))


def leader_of(record: LeaderRecord) -> Optional[Leader]:
    return Leader(bytes(record.value[:record.size]), record.fence) if record.fence else None


class Term(BaseHold):
    """The hold by which a candidate leads; its release, or the end of its `with`, resigns."""

    def __init__(self, election: BaseElection, value: HoldValue) -> None:
        super().__init__(election._core, value, election.name)
        self._election = election

    def release(self) -> None:
        """Resigns. LostError: the term had ended by itself."""
        self._require()
        error = self._election._resign(self._value)
        if error not in (0, ELOST, ENOTHELD):
            raise error_of(error, self.name)
        self._finish(State.RELEASED if error == 0 else State.LOST)
        if error:
            raise error_of(ELOST, self.name)

    def __enter__(self) -> Term:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], fault: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self._leave(fault)

    async def __aenter__(self) -> Term:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]],
                        fault: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self._leave(fault)


def free(core: Core, pointer: Any, key: int) -> None:
    """Frees a candidate. A callback, in which it was collected, cannot wait: a thread can."""
    def work() -> int:
        try:
            return int(core.value(lib.election_free, pointer))
        except MortiseError:  # close() has freed it
            return 0
        finally:
            _observers.pop(key, None)

    def late() -> None:
        work()
        _terms.pop(key, None)

    if work() != EDEADLOCK:
        _terms.pop(key, None)
        return
    try:
        threading.Thread(target=late, daemon=True, name="mortise-free").start()
    except RuntimeError:  # the interpreter ends, and closes the client
        pass


class BaseElection:
    """The common part of candidates of threads and of tasks; nothing here waits."""

    _pointer: Any = None  # until C has made it
    _key = 0

    def __init__(self, core: Core, name: str, value: bytes, elected: Optional[Terms],
                 deposed: Optional[Terms]) -> None:
        require_value(value)
        self._core, self._key = core, next(keys)
        self._turn = threading.RLock()  # no campaign begins while a term is compared and resigned
        self.name = name
        _terms[self._key] = (elected, deposed)
        options = _library.ElectionOptions(
            size=ctypes.sizeof(_library.ElectionOptions), value=value, value_size=len(value),
            elected=_elected, deposed=_deposed, argument=self._key)
        pointer = ctypes.c_void_p()
        core.call(lib.election_new, core.pointer, encoded(name), ctypes.byref(options),
                  ctypes.byref(pointer))
        self._pointer = pointer

    def __del__(self) -> None:
        if lib is not None and self._pointer is not None:
            free(self._core, self._pointer, self._key)
        else:
            _terms.pop(self._key, None)

    @property
    def is_leader(self) -> bool:
        """Whether it leads at this instant, by the clock."""
        return bool(self._core.value(lib.election_is_leader, self._pointer))

    @property
    def fence(self) -> int:
        """The fence of its term; 0: it does not lead."""
        return int(self._core.value(lib.election_fence, self._pointer))

    def proclaim(self, value: bytes) -> None:
        """Changes the value, for this term and those to come; does not wait for the store."""
        require_value(value)
        self._core.call(lib.election_proclaim, self._pointer, value, len(value))

    def resign(self) -> None:
        """Ends the leadership, or the campaign. LostError, NotHeldError."""
        self._core.call(lib.election_resign, self._pointer)

    def observe(self, callback: Optional[Callable[[Optional[Leader]], object]]) -> None:
        """callback(leader) now and at every change; None: nobody leads. One callback."""
        if callback is None:
            self._core.call(lib.election_observe, self._pointer, _library.LEADER(0), None)
            _observers.pop(self._key, None)
            return
        _observers[self._key] = callback
        self._core.call(lib.election_observe, self._pointer, _leads, self._key)

    def _leader(self) -> Optional[Leader]:
        record = LeaderRecord()
        try:
            self._core.call(lib.election_leader, self._pointer, ctypes.byref(record))
        except NoLeaderError:
            return None
        return leader_of(record)

    def _begin(self, key: int, timeout: Optional[float],
               sink: Callable[[int, str], None]) -> None:
        deadline = FOREVER
        if timeout is not None and timeout < 1e9:
            deadline = lib.now_ns() + max(0, math.ceil(timeout * 1e9))
        _campaigns[key] = sink
        try:
            with self._turn:
                self._core.call(lib.election_campaign_async, self._pointer, deadline, _ended, key)
        except BaseException:
            _campaigns.pop(key, None)
            raise

    def _resign(self, value: HoldValue) -> int:
        """Resigns the term of this hold, and no later one."""
        with self._turn:
            if State(self._core.value(lib.hold_state, value)) in (State.HELD, State.SUSPENDED):
                return int(self._core.value(lib.election_resign, self._pointer))
        return ELOST

    def _abandon(self, key: int) -> None:
        _campaigns.pop(key, None)
        self._core.quietly(lib.election_resign, self._pointer)

    def _term(self, error: int, detail: str) -> Term:
        if error:
            raise self._core.fault(error, detail)
        value = HoldValue()
        error = self._core.value(lib.election_hold, self._pointer, ctypes.byref(value))
        if error:
            raise error_of(ELOST if error == ENOTHELD else error, self.name)
        return Term(self, value)


class Election(BaseElection):
    """A candidate; Client.election makes it. `with election.campaign() as term:` leads."""

    def campaign(self, timeout: Optional[float] = None) -> Term:
        """Waits until this candidate leads, at most `timeout` seconds."""
        require_may_wait()
        key, done = next(keys), _thread.allocate_lock()
        ends: list[tuple[int, str]] = []
        done.acquire()

        def sink(error: int, detail: str) -> None:
            ends.append((error, detail))
            done.release()

        self._begin(key, timeout, sink)
        try:
            while not done.acquire(True, 1.0):
                pass
        except BaseException:
            self._abandon(key)
            raise
        return self._term(*ends[0])

    def leader(self) -> Optional[Leader]:
        """Reads from the store who leads; None: nobody."""
        return self._core.aside(self._leader)
