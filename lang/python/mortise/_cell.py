# SPDX-License-Identifier: Apache-2.0
"""Cells: values with a version, written if nobody else wrote since, never by a superseded holder.

Threads: any; the calls wait for the store.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Callable, Optional

from . import _library
from ._core import Core, keys, milliseconds
from ._errors import EINVALID, error_of
from ._hold import BaseHold
from ._library import CellRecord, lib
from ._lock import encoded


@dataclass(frozen=True)
class CellValue:
    """The content of a cell at one moment. version 0: there is no such cell."""

    value: bytes
    version: int
    fence: int


class _Change:
    """A change under way: the program's function, and what it raised."""

    def __init__(self, function: Callable[[bytes], bytes]) -> None:
        self.function, self.fault = function, None  # type: Any, Optional[BaseException]


_changes: dict[int, _Change] = {}


@_library.CHANGE
def _changed(key: int, record: Any) -> int:
    change, cell = _changes[key], record.contents
    try:
        value = change.function(ctypes.string_at(cell.value, cell.size))
        require_value(value)
        ctypes.memmove(cell.value, value, len(value))
        cell.size = len(value)
        return 0
    except BaseException as fault:  # pylint: disable=broad-except
        change.fault = fault
        return 1


def require_value(value: bytes) -> None:
    if not isinstance(value, bytes) or len(value) > _library.VALUE_MAX:
        raise error_of(EINVALID, f"a value is bytes, at most {_library.VALUE_MAX}")


class BaseCell:
    """The calls themselves; Cell and aio.Cell say how they wait."""

    def __init__(self, core: Core, name: str) -> None:
        self._core, self._name = core, encoded(name)
        self.name = name

    def _get(self) -> CellValue:
        record = CellRecord()
        self._core.call(lib.cell_get, self._core.pointer, self._name, ctypes.byref(record))
        return CellValue(bytes(record.value[:record.size]), record.version, record.fence)

    def _under(self, hold: Optional[BaseHold], plain: Any, held: Any, fence: int) -> Any:
        """The function for a write with a hold or with a fence, and what it is given."""
        if hold is None:
            return plain, fence
        if fence:
            raise error_of(EINVALID, "give a hold or a fence, not both")
        hold._require()
        return held, hold._value

    def _cas(self, version: int, value: bytes, fence: int, hold: Optional[BaseHold]) -> int:
        require_value(value)
        function, by = self._under(hold, lib.cell_cas, lib.cell_cas_held, fence)
        written = ctypes.c_uint64()
        self._core.call(function, self._core.pointer, self._name, version, value, len(value), by,
                        ctypes.byref(written))
        return written.value

    def _delete(self, version: int, fence: int, hold: Optional[BaseHold]) -> None:
        function, by = self._under(hold, lib.cell_delete, lib.cell_delete_held, fence)
        self._core.call(function, self._core.pointer, self._name, version, by)

    def _update(self, function: Callable[[bytes], bytes], timeout: Optional[float], fence: int,
                hold: Optional[BaseHold]) -> None:
        call, by = self._under(hold, lib.cell_update, lib.cell_update_held, fence)
        key, change = next(keys), _Change(function)
        _changes[key] = change
        try:
            self._core.call(call, self._core.pointer, self._name, _changed, key, by,
                            milliseconds(timeout))
        finally:
            del _changes[key]
        if change.fault is not None:
            raise change.fault


class Cell(BaseCell):
    """A value with a version; Client.cell makes it."""

    def get(self) -> CellValue:
        """Its content now; version 0 and b"" if there is no such cell."""
        return self._core.aside(self._get)

    def compare_and_set(self, version: int, value: bytes, *, fence: int = 0,
                        hold: Optional[BaseHold] = None) -> int:
        """Writes if this is its version yet (0: makes it), and gives the new version.
        ConflictError: it has another; StaleError: a larger fence has been seen."""
        return self._core.aside(self._cas, version, value, fence, hold)

    def delete(self, version: int, *, fence: int = 0, hold: Optional[BaseHold] = None) -> None:
        """The same, and there is no cell afterwards."""
        self._core.aside(self._delete, version, fence, hold)

    def update(self, function: Callable[[bytes], bytes], *, timeout: Optional[float] = None,
               fence: int = 0, hold: Optional[BaseHold] = None) -> None:
        """Reads, changes and writes, again and again while others write. The function may run
        several times, and on another thread; what it raises ends the update."""
        self._core.aside(self._update, function, timeout, fence, hold)
