# SPDX-License-Identifier: Apache-2.0
"""Distributed locks between threads, processes and machines.

>>> import mortise
>>> with mortise.Client("memory:doctest") as client:
...     with client.lock("accounts/17", timeout=5) as hold:
...         print(hold.name, hold.fence > 0, hold.held)
accounts/17 True True

A lock is a lease: hold.held, hold.check() and hold.on_lost(callback) say whether it lasts, and
hold.fence is for the resource, which refuses a smaller one. mortise.aio has the same for asyncio.
Errors are subclasses of MortiseError, by the reaction that they allow:

>>> with mortise.Client("memory:doctest") as client:
...     with client.lock("once", reentrant=False):
...         client.lock("once", reentrant=False).acquire()  # doctest: +ELLIPSIS
Traceback (most recent call last):
mortise.DeadlockError: would wait for itself (once is held by the same owner...)
"""

from ._cell import Cell, CellValue
from ._client import Capabilities, Client, Entry, Stats, init
from ._election import Election, Leader, Term
from ._errors import (BusyError, ClosedError, ConfigError, ConflictError, DeadlockError,
                      DeniedError, ForkedError, FullError, InternalError, InvalidError,
                      LockCancelledError, LockTimeoutError, LostError, MismatchError, MortiseError,
                      NoLeaderError, NotHeldError, NotSupportedError, RetryError, StaleError,
                      UnknownOutcomeError, UnreachableError, UsageError)
from ._hold import AsyncHold, Hold, State
from ._library import VERSION as __version__
from ._library import version
from ._lock import Lock, ReadWriteLock, Semaphore, acquire_all

__all__ = [
    "AsyncHold", "BusyError", "Capabilities", "Cell", "CellValue", "Client", "ClosedError",
    "ConfigError", "ConflictError", "DeadlockError", "DeniedError", "Election", "Entry",
    "ForkedError", "FullError", "Hold", "InternalError", "InvalidError", "Leader", "Lock",
    "LockCancelledError", "LockTimeoutError", "LostError", "MismatchError", "MortiseError",
    "NoLeaderError", "NotHeldError", "NotSupportedError", "ReadWriteLock", "RetryError",
    "Semaphore", "StaleError", "State", "Stats", "Term", "UnknownOutcomeError",
    "UnreachableError", "UsageError", "__version__", "acquire_all", "init", "version"]

for _name in __all__:  # as a user names them, in tracebacks too
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__
del _name
