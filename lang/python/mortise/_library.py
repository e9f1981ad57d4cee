# SPDX-License-Identifier: Apache-2.0
"""The C library: where it is, whether its version fits, and its functions as ctypes sees them.

Purpose: the one place that knows the shapes of include/mortise.h. The tests compare them with what
a C compiler makes of that header.
Invariant: every call leaves the interpreter's lock (CDLL, never PyDLL), so a callback of the
library, which needs that lock, cannot wait for a thread that waits for the library.
Threads: nothing here changes after the import.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char_p, c_int, c_int32, c_int64, c_size_t,
                    c_ubyte, c_uint32, c_uint64, c_void_p)
from typing import Any

VERSION = "0.2.0"
SONAME = "libmortise.so.0.2"
VALUE_MAX = 4096
TOKEN_SIZE = 64
NODE_SIZE = 2304
FOREVER = 2**63 - 1
OWNER_NOBODY = 2**64 - 1
STRICT, SHORT_LIVED, TELL_PROCESS = 2, 4, 8
WAIT_FOR_SELF = 1


class HoldValue(Structure):
    _fields_ = [("slot", c_void_p), ("generation", c_uint64)]


class CellRecord(Structure):
    _fields_ = [("version", c_uint64), ("fence", c_uint64), ("size", c_size_t),
                ("value", c_ubyte * VALUE_MAX)]


class LeaderRecord(Structure):
    _fields_ = [("fence", c_uint64), ("size", c_size_t), ("value", c_ubyte * VALUE_MAX)]


class EntryRecord(Structure):
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("kind", c_char_p), ("label", c_char_p),
                ("fence", c_uint64), ("place", c_uint32), ("since_wall_ms", c_int64),
                ("host", c_char_p), ("pid", c_int64), ("weight", c_uint64),
                ("capacity", c_uint64), ("detached", c_int), ("delay_ms", c_int64),
                ("node", c_char_p), ("id", c_uint64)]


LOG = CFUNCTYPE(None, c_void_p, c_char_p)
CONTACT = CFUNCTYPE(None, c_void_p, c_int, c_char_p)
TEXT = CFUNCTYPE(None, c_void_p, c_char_p)
QUEUED = CFUNCTYPE(None, c_void_p, c_uint64)
ACQUIRED = CFUNCTYPE(None, c_void_p, c_int, HoldValue)
STATE = CFUNCTYPE(None, c_void_p, HoldValue, c_int)
REVOKE = CFUNCTYPE(None, c_void_p, HoldValue)
TERM = CFUNCTYPE(None, c_void_p, c_uint64)
CAMPAIGN = CFUNCTYPE(None, c_void_p, c_int)
LEADER = CFUNCTYPE(None, c_void_p, POINTER(LeaderRecord))
ENTRY = CFUNCTYPE(c_int, c_void_p, POINTER(EntryRecord))
CHANGE = CFUNCTYPE(c_int, c_void_p, POINTER(CellRecord))


class ClientOptions(Structure):
    _fields_ = [("size", c_size_t), ("flags", c_uint32), ("budget_ms", c_int32),
                ("budget_count", c_int32), ("timeout_ms", c_int32), ("label", c_char_p),
                ("log", LOG), ("log_argument", c_void_p), ("give_up_ms", c_int64),
                ("contact", CONTACT), ("contact_argument", c_void_p)]


class LockOptions(Structure):
    _fields_ = [("size", c_size_t), ("owner", c_uint64), ("flags", c_uint32),
                ("permits", c_uint32), ("queued", QUEUED), ("queued_argument", c_void_p),
                ("max_hold_ms", c_int64), ("linger_ms", c_int64), ("lock_delay_ms", c_int64)]


class ElectionOptions(Structure):
    _fields_ = [("size", c_size_t), ("value", c_char_p), ("value_size", c_size_t),
                ("elected", TERM), ("deposed", TERM), ("argument", c_void_p)]


class CapabilitiesRecord(Structure):
    _fields_ = [("size", c_size_t), ("fair", c_int), ("fence", c_int), ("notify", c_int),
                ("across_hosts", c_int), ("survives_failover", c_int), ("durable_fence", c_int),
                ("lease_ms", c_int64), ("detach", c_int), ("linger", c_int),
                ("lock_delay", c_int), ("exclusive_fair", c_int), ("lease_left_ms", c_int64)]


class StatsRecord(Structure):
    _fields_ = [("size", c_size_t)] + [(name, c_uint64) for name in (
        "acquisitions", "nested", "handovers", "commands", "losses", "requests", "round_trips")]


P = c_void_p
OUT = POINTER(c_void_p)
HOLD_OUT = POINTER(HoldValue)

# Name: result, arguments.
PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "version": (c_char_p, []),
    "error_text": (c_char_p, [c_int]),
    "error_name": (c_char_p, [c_int]),
    "error_kind_of": (c_int, [c_int]),
    "error_detail": (c_char_p, []),
    "now_ns": (c_int64, []),
    "open": (c_int, [c_char_p, POINTER(ClientOptions), OUT]),
    "open_quorum": (c_int, [POINTER(c_char_p), c_size_t, c_int32, POINTER(ClientOptions), OUT]),
    "init": (c_int, [c_char_p, TEXT, P]),
    "close": (c_int, [P]),
    "url": (c_char_p, [P]),
    "server": (c_int, [P, c_char_p, c_size_t]),
    "get_capabilities": (c_int, [P, POINTER(CapabilitiesRecord)]),
    "get_stats": (c_int, [P, POINTER(StatsRecord)]),
    "mutex_new": (c_int, [P, c_char_p, POINTER(LockOptions), OUT]),
    "semaphore_mutex_new": (c_int, [P, c_char_p, POINTER(LockOptions), OUT]),
    "exclusive_new": (c_int, [P, c_char_p, POINTER(LockOptions), OUT]),
    "semaphore_new": (c_int, [P, c_char_p, c_uint32, POINTER(LockOptions), OUT]),
    "semaphore_set_permits": (c_int, [P, c_uint32, c_int64]),
    "semaphore_get_permits": (c_int, [P, POINTER(c_uint32)]),
    "read_write_new": (c_int, [P, c_char_p, POINTER(LockOptions), OUT, OUT]),
    "lock_free": (c_int, [P]),
    "acquire_async": (c_int, [P, c_int64, ACQUIRED, P, OUT]),
    "try_acquire_async": (c_int, [P, ACQUIRED, P, OUT]),
    "cancel_waiters": (c_int, [P]),
    "interrupt_fd": (c_int, [P]),
    "release": (c_int, [HoldValue]),
    "downgrade": (c_int, [HoldValue]),
    "acquire_all": (c_int, [OUT, c_size_t, c_int64, HOLD_OUT]),
    "hold_fence": (c_uint64, [HoldValue]),
    "hold_state": (c_int, [HoldValue]),
    "is_held": (c_int, [HoldValue]),
    "hold_remaining_ms": (c_int64, [HoldValue]),
    "hold_count": (c_uint32, [HoldValue]),
    "hold_node": (c_int, [HoldValue, c_char_p, c_size_t]),
    "verify": (c_int, [HoldValue, c_int64]),
    "on_lost": (c_int, [HoldValue, STATE, P]),
    "on_revoke": (c_int, [HoldValue, REVOKE, P]),
    "detach": (c_int, [HoldValue, c_char_p]),
    "adopt": (c_int, [P, c_char_p, HOLD_OUT]),
    "election_new": (c_int, [P, c_char_p, POINTER(ElectionOptions), OUT]),
    "election_free": (c_int, [P]),
    "election_campaign_async": (c_int, [P, c_int64, CAMPAIGN, P]),
    "election_proclaim": (c_int, [P, c_char_p, c_size_t]),
    "election_resign": (c_int, [P]),
    "election_is_leader": (c_int, [P]),
    "election_fence": (c_uint64, [P]),
    "election_hold": (c_int, [P, HOLD_OUT]),
    "election_leader": (c_int, [P, POINTER(LeaderRecord)]),
    "election_observe": (c_int, [P, LEADER, P]),
    "cell_get": (c_int, [P, c_char_p, POINTER(CellRecord)]),
    "cell_cas": (c_int, [P, c_char_p, c_uint64, c_char_p, c_size_t, c_uint64,
                         POINTER(c_uint64)]),
    "cell_delete": (c_int, [P, c_char_p, c_uint64, c_uint64]),
    "cell_cas_held": (c_int, [P, c_char_p, c_uint64, c_char_p, c_size_t, HoldValue,
                              POINTER(c_uint64)]),
    "cell_delete_held": (c_int, [P, c_char_p, c_uint64, HoldValue]),
    "cell_update": (c_int, [P, c_char_p, CHANGE, P, c_uint64, c_int64]),
    "cell_update_held": (c_int, [P, c_char_p, CHANGE, P, HoldValue, c_int64]),
    "list": (c_int, [P, c_char_p, ENTRY, P]),
    "revoke": (c_int, [P, c_char_p, c_uint64]),
    "break": (c_int, [P, c_char_p, c_uint64]),
}


def candidates() -> list[str]:
    """Where the library may be, the best first; a name without a slash is the loader's to find."""
    chosen = os.environ.get("MORTISE_LIBRARY")
    if chosen:
        return [chosen]
    here = os.path.dirname(os.path.abspath(__file__))
    beside = [os.path.join(here, name) for name in (SONAME, "libmortise.so")]
    return [path for path in beside if os.path.exists(path)] + [SONAME]


def open_library() -> tuple[ctypes.CDLL, str]:
    """The first candidate that can be loaded."""
    faults = []
    for path in candidates():
        try:
            return ctypes.CDLL(path), path
        except OSError as fault:
            faults.append(str(fault))
    raise ImportError(f"the C library of mortise was not found ({'; '.join(faults)}): install it, "
                      "or set MORTISE_LIBRARY to its path")


def check_version(found: str, path: str) -> None:
    """Before 1.0 a minor version may change the interface; a patch never does."""
    if found.split(".")[:2] != VERSION.split(".")[:2]:
        raise ImportError(f"{path} is mortise {found}, and this package needs "
                          f"{'.'.join(VERSION.split('.')[:2])}: install both of one version")


class Library:
    """The functions of the C library, without their prefix: lib.open, lib.close, ..."""

    def __init__(self) -> None:
        loaded, self.path = open_library()
        try:
            for name, (result, arguments) in PROTOTYPES.items():
                function = getattr(loaded, "mortise_" + name)
                function.restype, function.argtypes = result, arguments
                setattr(self, name, function)
        except AttributeError as fault:
            raise ImportError(f"{self.path} is no mortise {VERSION}: {fault}") from None
        check_version(self.version().decode(), self.path)

    def __getattr__(self, name: str) -> Any:  # for type checkers: all are set by __init__
        raise AttributeError(name)


lib = Library()


def version() -> str:
    """The version of the C library."""
    text: bytes = lib.version()
    return text.decode()
