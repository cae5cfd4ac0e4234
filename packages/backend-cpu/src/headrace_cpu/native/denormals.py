"""Denormals flushed to zero, by the processor's own bits, while a step runs.

Each thread has bits of its own, in the register MXCSR: one flushes results (FTZ), one takes
operands for zero (DAZ). The C library saves and loads them with the rest of a thread's
floating-point environment, which is what is used here: nothing has to be compiled for it, and
OpenMP's pool calls the same function on its threads. BLAS has threads that nobody reaches, so its
calls stay on the thread that makes them meanwhile.

Whatever is changed is put back: a program's own NumPy computes after a step as before it.

References:
    Intel, "Intel 64 and IA-32 Architectures Software Developer's Manual", volume 1, section 10.2.3
    (MXCSR, bits 6 and 15)
    System V Application Binary Interface, AMD64 Architecture Processor Supplement, section 3.2
"""

from __future__ import annotations

import ctypes
import functools
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from headrace.errors import ConfigError
from headrace.extend.records import dataclass
from headrace_cpu.matmul.blas import Blas, all_blas
from headrace_cpu.native.threads import OpenMP, Share, open_mp

# ``fenv_t`` of C libraries for x86-64: 28 bytes of the x87 unit, and MXCSR.
_MACHINES = ("x86_64", "AMD64")
_SIZE, _MXCSR = 32, 28
_FTZ, _DAZ = 1 << 15, 1 << 6

_Environment = Any  # a buffer of ctypes


@dataclass(frozen=True, slots=True)
class _Register:
    """The functions of the C library that save and load a thread's environment.

    Attributes:
        save: ``fegetenv(place)``.
        load: ``fesetenv(place)``.
        place: The address of ``fesetenv``.
    """

    save: Callable[[Any], int]
    load: Callable[[Any], int]
    place: int

    def now(self) -> _Environment:
        """Return the calling thread's environment."""
        found = ctypes.create_string_buffer(_SIZE)
        self.save(found)
        return found


def _flushed(environment: _Environment) -> _Environment:
    """Return an environment with both bits set."""
    raw = environment.raw
    bits = int.from_bytes(raw[_MXCSR:], "little") | _FTZ | _DAZ
    return ctypes.create_string_buffer(raw[:_MXCSR] + bits.to_bytes(4, "little"), _SIZE)


@functools.cache
def _register() -> _Register | None:
    """Return how the bits are set, None where that does not do what it should."""
    if platform.machine() not in _MACHINES:
        return None
    try:
        # Too short for releasing the interpreter's lock.
        library = ctypes.PyDLL(None)
        save, load = library["fegetenv"], library["fesetenv"]
    except (OSError, AttributeError):
        return None
    save.argtypes = load.argtypes = (ctypes.c_void_p,)
    save.restype = load.restype = ctypes.c_int
    place = ctypes.cast(load, ctypes.c_void_p).value or 0
    # NumPy finds these when they are first wanted, and keeps what it found.
    for dtype in (np.float16, np.float32, np.float64, np.longdouble):
        assert np.finfo(dtype).smallest_subnormal
    register = _Register(save, load, place)
    return register if _works(register) else None


def _works(register: _Register) -> bool:
    """Whether both bits can be set and put back, tried with a number of each kind."""
    denormal, small = np.full(64, 1e-40, np.float32), np.full(64, 1e-20, np.float32)
    before = register.now()
    register.load(_flushed(before))
    taken, made = (denormal * np.float32(2.0**30)).any(), (small * small).any()
    register.load(before)
    kept = (denormal * np.float32(1)).all()
    return bool(kept and not taken and not made)


def _refusal() -> str:
    """Return why denormals cannot be flushed here; empty where they can."""
    if _register() is None:
        return (
            "needs a processor of the x86-64 family and a C library that sets its bits FTZ and "
            f"DAZ, and this is {platform.machine()} with {platform.system()}"
        )
    stuck = [blas.path for blas in all_blas() if blas.set_threads is None]
    if stuck:
        return (
            f"needs a BLAS that can be kept on one thread, such as OpenBLAS, and NumPy uses "
            f"{stuck[0]}"
        )
    return ""


def flush_or_refuse() -> type[Flushed]:
    """Return the context in which denormals are flushed.

    Raises:
        ConfigError: where the platform cannot.
    """
    reason = _refusal()
    if reason:
        raise ConfigError(
            f'denormals="flush" {reason}; leave it at "keep", which computes with denormals as '
            "IEEE 754 says"
        )
    return Flushed


class _Here(threading.local):
    """What a thread has set: how often, and its environments before and since."""

    depth = 0
    before: _Environment = None
    since: _Environment = None


_HERE = _Here()


@final
class Flushed:
    """A context in which the calling thread flushes denormals, and BLAS stays on it.

    It may be entered within itself.
    """

    __slots__ = ()

    def __enter__(self) -> None:
        """Set the bits."""
        _HERE.depth += 1
        if _HERE.depth > 1:
            return
        register = _known()
        _HERE.before = register.now()
        _HERE.since = _flushed(_HERE.before)
        for blas in _held():
            blas.hold()
        register.load(_HERE.since)

    def __exit__(self, *_: object) -> None:
        """Put the environment back."""
        _HERE.depth -= 1
        if _HERE.depth:
            return
        _known().load(_HERE.before)
        for blas in _held():
            blas.let_go()


def _known() -> _Register:
    register = _register()
    assert register is not None  # the setting is refused elsewhere
    return register


@functools.cache
def _held() -> tuple[Blas, ...]:
    return all_blas()


@contextmanager
def kept() -> Iterator[None]:
    """Let the calling thread compute with denormals meanwhile: for the program's own functions."""
    depth = _HERE.depth
    if not depth:
        yield
        return
    before, since = _HERE.before, _HERE.since
    _HERE.depth = 0
    _known().load(before)
    try:
        yield
    finally:
        _known().load(since)
        _HERE.depth, _HERE.before, _HERE.since = depth, before, since


@final
class FlushingShare(Share):
    """A share of the threads that flush denormals between ``enter`` and ``leave``."""

    def enter(self) -> int:
        """Take a share of the threads for the calling thread; return how many."""
        threads = super().enter()
        Flushed().__enter__()
        self._everywhere(open_mp(), _HERE.since)
        return threads

    def leave(self) -> None:
        """Give the share back."""
        # The calling thread is one of the pool's.
        self._everywhere(open_mp(), _HERE.before)
        _known().load(_HERE.since)
        Flushed().__exit__()
        super().leave()

    @staticmethod
    def _everywhere(pool: OpenMP | None, environment: _Environment) -> None:
        """Load an environment on all threads that kernels called by this one run on."""
        if pool is not None and pool.allowed() > 1:
            pool.parallel(_known().place, environment, pool.allowed(), 0)
