# SPDX-License-Identifier: Apache-2.0
"""The exceptions: a class a kind of error, and under some a class a code.

Purpose: a program catches the reaction that it can take (BusyError, RetryError, ...), and reads the
library's own text. Where Python has an exception of that meaning, it is a base class too.
Invariant: the codes, their kinds and their texts are the library's; only names are made here.
"""

from __future__ import annotations

from ._library import lib


class MortiseError(Exception):
    """Any error of mortise. str() is the text and the particulars.

    code: the number, as in mortise.h; name: "ETIMEOUT"; text: one line; detail: the particulars,
    for people, or "".
    """

    def __init__(self, code: int, detail: str = "") -> None:
        self.code = code
        self.name: str = lib.error_name(code).decode()
        self.text: str = lib.error_text(code).decode()
        self.detail = detail
        super().__init__(f"{self.text} ({detail})" if detail else self.text)

    def __reduce__(self) -> tuple[type[MortiseError], tuple[int, str]]:
        return type(self), (self.code, self.detail)


class BusyError(MortiseError):
    """Another client holds, or has changed it meanwhile: try later."""


class ConflictError(BusyError):
    """A cell has another version."""


class LockTimeoutError(MortiseError, TimeoutError):
    """The time was over before the lock was granted."""


class LockCancelledError(LockTimeoutError):
    """The acquire was ended, or the campaign was: cancel(), resign()."""


class RetryError(MortiseError):
    """A passing fault: the same call may succeed later."""


class UnreachableError(RetryError, ConnectionError):
    """The store cannot be reached, or does not answer."""


class FullError(RetryError):
    """The queue is full, or the client has too many locks."""


class NoLeaderError(RetryError):
    """Nobody leads."""


class LostError(MortiseError):
    """The hold is gone, or superseded: stop the work that it guarded."""


class StaleError(LostError):
    """A larger fence has been seen."""


class DeniedError(MortiseError, PermissionError):
    """The store permits it not."""


class UsageError(MortiseError):
    """The call is wrong: a fault in the program."""


class ClosedError(UsageError):
    """The client is closed."""


class NotHeldError(UsageError):
    """It is not held: released already, or never acquired."""


class DeadlockError(UsageError):
    """The call would wait for itself."""


class ForkedError(UsageError):
    """The client is the parent's: a process opens its own."""


class InvalidError(UsageError, ValueError):
    """An argument is invalid."""


class MismatchError(UsageError):
    """The name is in use as another kind of lock, or with other permits."""


class ConfigError(MortiseError):
    """The URL, an option or the environment is wrong."""


class NotSupportedError(ConfigError):
    """The store has no such thing."""


class UnknownOutcomeError(MortiseError):
    """It may have happened or not: read it again before you go on."""


class InternalError(MortiseError):
    """No memory, or a fault in mortise."""


EBUSY, ETIMEOUT, ECLOSED, ELOST, ENOTHELD, EDEADLOCK = -1, -2, -4, -5, -6, -8
EFORKED, EINVALID, EUNREACHABLE = -9, -10, -16
_OF_KIND: list[type[MortiseError]] = [
    InternalError, BusyError, LockTimeoutError, RetryError, LostError, DeniedError, UsageError,
    ConfigError, UnknownOutcomeError, InternalError]
_OF_CODE: dict[int, type[MortiseError]] = {
    -3: LockCancelledError, ECLOSED: ClosedError, ENOTHELD: NotHeldError,
    EDEADLOCK: DeadlockError, EFORKED: ForkedError, EINVALID: InvalidError, -11: InvalidError,
    EUNREACHABLE: UnreachableError, -19: MismatchError, -20: NotSupportedError, -23: FullError,
    -24: ConflictError, -25: StaleError, -26: NoLeaderError, -27: UnreachableError}


def error_of(code: int, detail: str = "") -> MortiseError:
    """The exception for a code of the library."""
    kind = lib.error_kind_of(code)
    known = _OF_KIND[kind] if 0 <= kind < len(_OF_KIND) else InternalError
    return _OF_CODE.get(code, known)(code, detail)


def detail_now() -> str:
    """The particulars of this thread's last call that failed."""
    text: bytes = lib.error_detail()
    return text.decode("utf-8", "replace")
