"""Faults that tests inject: named points at which a process fails as the environment says.

``HEADRACE_FAULTS`` lists faults, separated by semicolons: a process, a point, an action, and how
often the point is passed until then (1 if left out), as in ``"worker:1 transfer kill 10; ps:0 save
delay=2"``. A process is named by its rank (``rank:2``) or its task. Points are those that packages
pass: ``start``, ``register``, ``run``, ``transfer``, ``admission``, ``save`` and ``exit``.

Where it is not set, a point costs a look at a variable.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import ConfigError, HeadraceError, shown
from headrace.settings import FAULTS

_FORM = re.compile(
    r"(?P<process>\w+:\d+) (?P<point>\w+) "
    r"(?P<action>raise|kill|stop|mute|memory|exit=(?P<code>\d+)|delay=(?P<seconds>\d+(\.\d+)?))"
    r"( (?P<count>[1-9]\d*))?"
)


class InjectedFaultError(HeadraceError):
    """What ``raise`` raises at a point."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of the setting.

    Attributes:
        process: Whose it is.
        point: Where it happens.
        action: What happens.
        count: How often the point is passed until then.
        code: The exit code of ``exit``.
        seconds: How long ``delay`` takes.
    """

    process: str
    point: str
    action: str
    count: int = 1
    code: int = 0
    seconds: float = 0.0


_faults: list[Fault] = []
_passed: Counter[str] = Counter()
_lock = threading.Lock()
_muted = threading.Event()


def parse_faults(said: str) -> list[Fault]:
    """Read the setting.

    Raises:
        ConfigError: if it says something else.
    """
    found = []
    for part in filter(None, (part.strip() for part in said.split(";"))):
        match = _FORM.fullmatch(part)
        if match is None:
            raise ConfigError(
                "HEADRACE_FAULTS must list faults as PROCESS POINT ACTION [COUNT], with an action "
                "of raise, kill, stop, mute, memory, exit=CODE and delay=SECONDS, as in "
                f"'worker:1 transfer kill 10; ps:0 save exit=3', got {shown(part)}"
            )
        action = match["action"].partition("=")[0]
        count, code = int(match["count"] or 1), int(match["code"] or 0)
        seconds = float(match["seconds"] or 0)
        found.append(Fault(match["process"], match["point"], action, count, code, seconds))
    return found


def name_process(name: str) -> None:
    """Say how faults name this process, in addition to how they do so far.

    Args:
        name: As in ``"rank:2"`` or ``"worker:1"``.

    Raises:
        ConfigError: if the setting says something else than faults.
    """
    said = FAULTS.read()
    if said:
        _faults.extend(fault for fault in parse_faults(said) if fault.process == name)


def has_faults() -> bool:
    """Whether this process has faults."""
    return bool(_faults)


def is_muted() -> bool:
    """Whether this process is to give no signs of life, as if its network were down."""
    return _muted.is_set()


def fault_point(point: str) -> None:
    """Pass a point at which a fault may happen.

    Raises:
        InjectedFaultError: where the setting says ``raise``.
        MemoryError: where it says ``memory``.
    """
    if _faults:
        _pass(point)


def _pass(point: str) -> None:
    with _lock:
        _passed[point] += 1
        count = _passed[point]
    for fault in _faults:
        if (fault.point, fault.count) == (point, count):
            os.write(2, f"headrace: fault: {fault.process} {point} {fault.action}\n".encode())
            _happen(fault)


def _happen(fault: Fault) -> None:
    if fault.action == "raise":
        raise InjectedFaultError(f"a fault was injected into {fault.process} at {fault.point}")
    if fault.action == "delay":
        time.sleep(fault.seconds)
    elif fault.action == "mute":
        _muted.set()
    elif fault.action == "memory":
        _exhaust_memory()
    elif fault.action == "exit":
        os._exit(fault.code)
    else:
        os.kill(os.getpid(), signal.SIGKILL if fault.action == "kill" else signal.SIGSTOP)


def _exhaust_memory() -> None:
    """Ask for memory while the process may have no more than it has."""
    if sys.platform.startswith("linux"):
        # lazy: not there on every platform
        import resource

        pages = int(Path("/proc/self/statm").read_text().split()[0])
        before = resource.getrlimit(resource.RLIMIT_AS)
        least = (pages * resource.getpagesize(), before[1])
        resource.setrlimit(resource.RLIMIT_AS, least)
        try:
            bytearray(1 << 32)
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)
    raise MemoryError("a fault was injected: no memory is left")
