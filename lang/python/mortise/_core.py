# SPDX-License-Identifier: Apache-2.0
"""One C client seen from Python: calls in flight, waits that signals can end, and callbacks.

Purpose: all other modules call the library through a Core. An acquire is always the library's
asynchronous one: the library calls back on its own thread, and the thread that waits for it sleeps
in Python, where a signal's handler runs at once. A call that can only block runs on a helper thread
if the main thread makes it, for the same reason.
Invariant: no call of the library is under way, and none begins, when mortise_close frees the
client: enter() counts calls, and refuses them from close() on. So no object of Python can reach
memory that was freed.
Invariant: a grant that nobody waits for any longer is released by the callback that brings it.
Threads: any. The guard is reentrant, because a finalizer may run inside it.
"""

from __future__ import annotations

import _thread
import atexit
import ctypes
import itertools
import logging
import math
import os
import threading
import time
from typing import Any, Callable, Optional, TypeVar

from . import _library
from ._errors import (EBUSY, ECLOSED, EDEADLOCK, EFORKED, MortiseError, detail_now, error_of)
from ._library import FOREVER, HoldValue, lib

log = logging.getLogger("mortise")
T = TypeVar("T")
Sink = Callable[[int, str, HoldValue], None]

keys = itertools.count(1)  # of callbacks: what the library hands back as their argument
pending: dict[int, Sink] = {}  # acquires under way; the one that pops an entry decides its end
_open: set[Core] = set()
_ending = False  # the interpreter ends


class _Owner(threading.local):
    def __init__(self) -> None:
        self.number = next(keys)
        self.in_callback = False


_owner = _Owner()


def owner_now() -> int:
    """The number by which this thread owns what it acquires; no later thread has it."""
    return _owner.number


def milliseconds(seconds: Optional[float]) -> int:
    """As the library takes durations; None: for ever."""
    if seconds is None or seconds == math.inf:
        return -1
    return max(0, math.ceil(seconds * 1000))


def guarded(callback: Callable[..., object], *arguments: object) -> None:
    """Calls what the program gave; what it raises goes to the log, and never into C."""
    try:
        callback(*arguments)
    except Exception:  # pylint: disable=broad-except
        log.exception("a callback of the program failed")


def from_library(callback: Callable[..., object], *arguments: object) -> None:
    """The same on a thread of the library's, where no call may wait."""
    _owner.in_callback = True
    try:
        guarded(callback, *arguments)
    finally:
        _owner.in_callback = False


def require_may_wait() -> None:
    """A wait for a callback cannot be in one: the library makes them one by one."""
    if _owner.in_callback:
        raise error_of(EDEADLOCK, "inside a callback")


def end_silently(fault: MortiseError) -> None:
    """A daemon thread that comes too late sleeps on too; a callback, which close waits for, does not."""
    if (_ending and fault.code == ECLOSED and threading.current_thread().daemon
            and not _owner.in_callback):
        while True:
            time.sleep(3600)


@_library.ACQUIRED
def _acquired(key: int, error: int, value: HoldValue) -> None:
    detail = detail_now() if error else ""
    sink = pending.pop(key, None)
    if sink is not None:
        if not (_ending and error == ECLOSED):  # a daemon thread sleeps on, and ends silently
            sink(error, detail, value)
    elif not error:
        lib.release(value)


@_library.LOG
def _logged(_key: Optional[int], message: bytes) -> None:
    log.warning("%s", message.decode("utf-8", "replace"))


contacts: dict[int, Callable[[Optional[MortiseError]], object]] = {}


@_library.CONTACT
def _contact(key: int, error: int, why: bytes) -> None:
    text = why.decode("utf-8", "replace")
    if error:
        log.warning("the store does not answer: %s", text)
    else:
        log.info("the store answers again: %s", text)
    callback = contacts.get(key)
    if callback is not None:
        from_library(callback, error_of(error, text) if error else None)


def run_aside(work: Callable[[], T], undo: Callable[[T], object],
              hurry: Optional[Callable[[], object]] = None) -> T:
    """Runs what blocks in C. In the main thread it runs on a helper, and a signal's exception ends
    the wait at once: undo() takes the result when there is one. With hurry(), which makes the work
    end early, that is waited for."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    done, turn = _thread.allocate_lock(), {0: True}
    done.acquire()
    results: list[T] = []
    faults: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as fault:  # pylint: disable=broad-except
            faults.append(fault)
        if turn.pop(0, None) is None and results:
            undo(results[0])
        done.release()

    try:
        threading.Thread(target=run, daemon=True, name="mortise-call").start()
    except RuntimeError:  # the interpreter ends
        return work()
    try:
        while not done.acquire(True, 1.0):
            pass
    except BaseException:
        late = turn.pop(0, None) is None
        while hurry is not None and not done.acquire(True, 0.01):
            hurry()
        if late and results:
            undo(results[0])
        raise
    if faults:
        raise faults[0]
    return results[0]


def nothing(*_: object) -> None:
    pass


class Core:
    """A client's pointer, and who is inside the library with it."""

    def __init__(self, opener: Callable[..., int], *arguments: Any,
                 contact: Optional[Callable[[Optional[MortiseError]], object]] = None) -> None:
        options: _library.ClientOptions = arguments[-1]
        self.key = next(keys)
        options.size = ctypes.sizeof(options)
        options.log, options.contact = _logged, _contact
        options.log_argument = options.contact_argument = self.key
        if contact is not None:
            contacts[self.key] = contact
        self.pid = os.getpid()
        self._guard = threading.Condition(threading.RLock())
        self._inside, self._closing = 0, False
        self.pointer = run_aside(lambda: self._opened(opener, arguments), lib.close)
        _open.add(self)

    @staticmethod
    def _opened(opener: Callable[..., int], arguments: tuple[Any, ...]) -> Any:
        pointer = ctypes.c_void_p()
        error = opener(*arguments[:-1], ctypes.byref(arguments[-1]), ctypes.byref(pointer))
        if error:
            raise error_of(error, detail_now())
        return pointer

    @property
    def closed(self) -> bool:
        return self._closing

    def enter(self) -> None:
        if self.pid != os.getpid():
            raise error_of(EFORKED, "open a client in each process, after the fork")
        with self._guard:
            if self._closing:
                raise error_of(ECLOSED)
            self._inside += 1

    def leave(self) -> None:
        with self._guard:
            self._inside -= 1
            if self._closing:
                self._guard.notify_all()

    def call(self, function: Callable[..., int], *arguments: Any) -> int:
        """A call that answers an error, or a number that is not negative."""
        self.enter()
        try:
            result = function(*arguments)
            if result < 0:
                raise self.fault(result, detail_now())
            return result
        finally:
            self.leave()

    def value(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A call that cannot fail."""
        self.enter()
        try:
            return function(*arguments)
        finally:
            self.leave()

    def fault(self, error: int, detail: str) -> MortiseError:
        """A call that close() ended says so, whatever way it was ended."""
        return error_of(ECLOSED) if self._closing else error_of(error, detail)

    def wait(self, function: Callable[..., int], *arguments: Any) -> int:
        """As call(), of a function that blocks."""
        return self.aside(self.call, function, *arguments)

    def aside(self, function: Callable[..., T], *arguments: Any) -> T:
        """The same of a function that makes its own calls, and undoes nothing."""
        return run_aside(lambda: function(*arguments), nothing)

    def _interrupt(self) -> None:
        """Ends the calls of the library in which threads wait."""
        fd = lib.interrupt_fd(self.pointer)
        if fd >= 0:
            os.write(fd, b"x")

    def quietly(self, function: Callable[..., Any], *arguments: Any) -> None:
        """For finalizers and clean-up: nothing to do if the client is closed."""
        try:
            self.value(function, *arguments)
        except MortiseError:
            pass

    def close(self) -> None:
        """See Client.close."""
        if self.pid != os.getpid():
            self._forget()
            return
        require_may_wait()
        with self._guard:
            if self._closing:
                return
            self._closing = True
            try:
                while self._inside > 0:
                    self._interrupt()
                    self._guard.wait(0.01)
            except BaseException:  # a signal's: it may be closed again
                self._closing = False
                raise
        error, detail = run_aside(self._closed, nothing)
        if error == EDEADLOCK:  # in a callback: it stays open
            self._closing = False
        else:
            _open.discard(self)
            contacts.pop(self.key, None)
        if error:
            raise error_of(error, detail)

    def _closed(self) -> tuple[int, str]:
        error = lib.close(self.pointer)
        return error, detail_now() if error else ""

    def _forget(self) -> None:
        """In a child of fork: the locks stay the parent's."""
        if not self._closing:
            self._closing = True
            _open.discard(self)
            lib.close(self.pointer)

    # ------------------------------------------------------------ acquire

    def begin(self, key: int, handle: Any, timeout: Optional[float], sink: Sink) -> None:
        """Starts an acquire; sink is called once with its end, on a thread of the library's."""
        pending[key] = sink
        try:
            if timeout is not None and timeout <= 0:
                self.call(lib.try_acquire_async, handle, _acquired, key, None)
                return
            deadline = FOREVER
            if timeout is not None and timeout < 1e9:
                deadline = lib.now_ns() + math.ceil(timeout * 1e9)
            self.call(lib.acquire_async, handle, deadline, _acquired, key, None)
        except BaseException:
            self.abandon(key, handle)
            raise

    def abandon(self, key: int, handle: Any) -> bool:
        """Ends an acquire without its sink. False: the sink has been called, or is."""
        if pending.pop(key, None) is None:
            return False
        self.quietly(lib.cancel_waiters, handle)
        return True

    def acquire(self, handle: Any, timeout: Optional[float]) -> HoldValue:
        """Waits for the lock; a signal's handler runs meanwhile, and may raise."""
        require_may_wait()
        key, done, ends = next(keys), _thread.allocate_lock(), []
        done.acquire()

        def sink(error: int, detail: str, value: HoldValue) -> None:
            ends.append((error, detail, value))
            done.release()

        self.begin(key, handle, timeout, sink)
        try:
            while not done.acquire(True, 1.0):
                pass
        except BaseException:
            if not self.abandon(key, handle):
                while not ends:  # the sink is being called
                    done.acquire(True, 1.0)
                if not ends[0][0]:
                    self.quietly(lib.release, ends[0][2])
            raise
        error, detail, value = ends[0]
        if error:
            raise self.fault(error, detail)
        return value

    def try_acquire(self, handle: Any) -> Optional[HoldValue]:
        try:
            return self.acquire(handle, 0)
        except MortiseError as fault:
            if fault.code == EBUSY:
                return None
            raise


def _close_all() -> None:
    """At the end of the program: afterwards no callback could run."""
    global _ending
    _ending = True
    for core in list(_open):
        try:
            if core.pid == os.getpid():
                core.close()
        except MortiseError as fault:
            log.warning("at exit: %s", fault)


atexit.register(_close_all)
