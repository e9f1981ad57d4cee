# SPDX-License-Identifier: Apache-2.0
"""A hold: what a successful acquire returns.

Purpose: the fence, the state by the clock, the loss, the release. Hold is for threads, AsyncHold
for tasks; they differ in the calls that wait for the store.
Invariant: each Python hold is one count of the C hold and releases it once; a second release is
NotHeldError although an outer hold of the same owner lasts.
Threads: any thread that has the object may use it. Callbacks run on a thread of the library's.
"""

from __future__ import annotations

import ctypes
import enum
import math
from types import TracebackType
from typing import Any, Callable, Optional

from . import _library
from ._core import Core, from_library, keys, log, milliseconds
from ._errors import ELOST, ENOTHELD, LostError, error_of
from ._library import FOREVER, HoldValue, lib


class State(enum.IntEnum):
    """RELEASED, HELD, SUSPENDED (held, but the store does not answer), LOST."""

    RELEASED = 0
    HELD = 1
    SUSPENDED = 2
    LOST = 3


_states: dict[int, tuple[Any, Callable[[Any, State], object]]] = {}
_requests: dict[int, tuple[Any, Callable[[Any], object]]] = {}


@_library.STATE
def _state_changed(key: int, _value: HoldValue, state: int) -> None:
    found = _states.get(key)
    if found is not None:
        from_library(found[1], found[0], State(state))


@_library.REVOKE
def _revoke_requested(key: int, _value: HoldValue) -> None:
    found = _requests.get(key)
    if found is not None:
        from_library(found[1], found[0])


class BaseHold:
    """The common part of holds of threads and of tasks; nothing here waits."""

    def __init__(self, core: Core, value: HoldValue, name: str,
                 ended: Optional[Callable[[], object]] = None) -> None:
        self._core, self._value = core, value
        self._end: Optional[State] = None
        self._keys: list[int] = []
        self._ended = ended
        #: The name of the lock.
        self.name = name
        #: Grows with every grant of the lock; give it to the resource. 0: the store has none.
        self.fence: int = core.value(lib.hold_fence, value)

    def __repr__(self) -> str:
        state = self._end if self._end is not None else "open"
        return f"<{type(self).__name__} {self.name!r} fence={self.fence} {state}>"

    @property
    def state(self) -> State:
        """Computed now by the clock, without a request."""
        if self._end is not None:
            return self._end
        return State(self._core.value(lib.hold_state, self._value))

    @property
    def held(self) -> bool:
        """Whether it is held at this instant."""
        return self.state in (State.HELD, State.SUSPENDED)

    @property
    def lost(self) -> bool:
        """Whether it was lost, also after the release."""
        return self.state == State.LOST

    @property
    def remaining(self) -> float:
        """Seconds that it stays held if the store never answers again; math.inf: for ever."""
        if self._end is not None:
            return 0.0
        left = self._core.value(lib.hold_remaining_ms, self._value)
        return math.inf if left == FOREVER else left / 1000

    @property
    def count(self) -> int:
        """How often its owner has acquired it."""
        return 0 if self._end is not None else int(
            self._core.value(lib.hold_count, self._value))

    @property
    def node(self) -> str:
        """The name of the hold in its store: a path, a key or a row. Sends no request."""
        self._require()
        text = ctypes.create_string_buffer(_library.NODE_SIZE)
        self._core.call(lib.hold_node, self._value, text, len(text))
        return text.value.decode()

    def check(self) -> None:
        """Raises LostError or NotHeldError unless it is held at this instant."""
        state = self.state
        if state == State.LOST:
            raise error_of(ELOST, self.name)
        if state == State.RELEASED:
            raise error_of(ENOTHELD, self.name)

    def release(self) -> None:
        """Gives it back; does not wait for the store. LostError: it had been lost."""
        self._require()
        error = self._core.value(lib.release, self._value)
        if error not in (0, ELOST, ENOTHELD):
            raise error_of(error, self.name)
        self._finish(State.LOST if error == ELOST else State.RELEASED)
        if error:
            raise error_of(error, self.name)

    def downgrade(self) -> None:
        """Makes a hold of a write side one of the read side, with its fence."""
        self._require()
        self._core.call(lib.downgrade, self._value)

    def on_state(self, callback: Optional[Callable[[Any, State], object]]) -> None:
        """callback(hold, state) at each change: SUSPENDED, HELD again, LOST. It must not block. One
        callback a hold; None: none. LostError: it is lost already."""
        self._require()
        key = self._register(_states, callback)
        self._core.call(lib.on_lost, self._value,
                        _state_changed if callback else _library.STATE(0), key)

    def on_lost(self, callback: Callable[[Any], object]) -> None:
        """callback(hold) when it is lost; else as on_state, whose place it takes."""
        self.on_state(lambda hold, state: callback(hold) if state == State.LOST else None)

    def on_revoke(self, callback: Optional[Callable[[Any], object]]) -> None:
        """callback(hold) when an operator requests that the lock be given up."""
        self._require()
        key = self._register(_requests, callback)
        self._core.call(lib.on_revoke, self._value,
                        _revoke_requested if callback else _library.REVOKE(0), key)

    def _register(self, table: dict[int, Any], callback: Any) -> int:
        key = next(keys)
        if callback is not None:
            table[key] = (self, callback)
            self._keys.append(key)
        return key

    def _require(self) -> None:
        if self._end is not None:
            raise error_of(ELOST if self._end == State.LOST else ENOTHELD, self.name)

    def _finish(self, state: State) -> None:
        self._end = state
        for key in self._keys:
            _states.pop(key, None)
            _requests.pop(key, None)
        if self._ended is not None:
            self._ended()

    def _leave(self, fault: Optional[BaseException]) -> None:
        """The end of a with: a loss is an exception, unless one is on its way already."""
        if self._end == State.RELEASED:
            return
        try:
            self.release()
        except LostError as lost:
            if fault is None:
                raise
            log.warning("%s, while another exception ends its block", lost)


class Hold(BaseHold):
    """A hold of a thread; also a context manager that releases it."""

    def verify(self, timeout: Optional[float] = 5.0) -> None:
        """Asks the store. LostError, NotHeldError, or LockTimeoutError without an answer."""
        self._require()
        self._core.wait(lib.verify, self._value, milliseconds(timeout))

    def detach(self) -> str:
        """Ends the hold and leaves the lock taken; Lock.adopt takes it by this token. A signal
        does not end the call, which waits for the store at most the client's timeout: the token
        would be lost."""
        self._require()
        token = ctypes.create_string_buffer(_library.TOKEN_SIZE)
        self._core.call(lib.detach, self._value, token)
        self._finish(State.RELEASED)
        return token.value.decode()

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], fault: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self._leave(fault)


class AsyncHold(BaseHold):
    """A hold of a task; `async with` releases it. Its callbacks run on the task's loop."""

    def __init__(self, core: Core, value: HoldValue, name: str, aside: Any,
                 ended: Optional[Callable[[], object]] = None) -> None:
        super().__init__(core, value, name, ended)
        self._aside = aside

    def _register(self, table: dict[int, Any], callback: Any) -> int:
        return super()._register(table, self._aside.posted(callback))

    async def verify(self, timeout: Optional[float] = 5.0) -> None:
        """Asks the store. LostError, NotHeldError, or LockTimeoutError without an answer."""
        self._require()
        await self._aside(self._core.call, lib.verify, self._value, milliseconds(timeout))

    async def detach(self) -> str:
        """Ends the hold and leaves the lock taken; Lock.adopt takes it by this token."""
        self._require()
        token = ctypes.create_string_buffer(_library.TOKEN_SIZE)
        await self._aside(self._core.call, lib.detach, self._value, token)
        self._finish(State.RELEASED)
        return token.value.decode()

    async def __aenter__(self) -> AsyncHold:
        return self

    async def __aexit__(self, kind: Optional[type[BaseException]],
                        fault: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self._leave(fault)
