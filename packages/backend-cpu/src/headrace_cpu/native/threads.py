"""Threads: how many, who may use them, and the pool that our kernels and oneDNN share.

Parallel kernels run on GNU OpenMP's pool, which oneDNN's wheel uses too: the dynamic linker loads a
library of the name ``libgomp.so.1`` once, so both have the same threads, and never fight.

A step that runs alone has all threads. Steps that run at the same time, each called from a Python
thread of its own, share them: OpenMP keeps a team for each calling thread, and eight teams of two
on two cores would mostly wait for one another at barriers.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from headrace.extend.devices import ABREAST
from headrace.extend.records import dataclass
from headrace_cpu.native.choice import Choice
from headrace_cpu.native.crowd import Crowd, watch
from headrace_cpu.native.report import notice
from headrace_cpu.settings import THREADS

_NAMES = ("GOMP_barrier", "GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
# How often an idle thread of the pool looks for work before it sleeps; a look took 30 ns. Left
# alone, libgomp looks 300 000 times, 10 ms in which BLAS and other Python threads lack a core. Yet
# it must look for longer than waking a thread takes, or the others have fallen asleep again when it
# comes, and every kernel waits twice: where the core belongs to a virtual machine, waking took 0.2
# to 0.3 ms at busy times, and a quarter of the kernels of 20 us took 320 with looks for 60 us, a
# tenth with looks for 300. A step after products of NumPy, whose threads wait in their own way,
# pays for it: 1 ms became 2.
_SPINS = "20000"


@dataclass(frozen=True, slots=True)
class OpenMP:
    """GNU's OpenMP library, as it is loaded.

    Attributes:
        library: Its handle.
        parallel: ``GOMP_parallel(kernel, block, threads, flags)``, runs a kernel on several
            threads.
        limit: ``omp_set_num_threads(threads)``, for the calling thread, oneDNN included.
        allowed: ``omp_get_max_threads()``, what was set so.
        symbols: Addresses of the functions that kernels call.
        crowd: What sees whether other processes want the cores, and lets threads wait accordingly.
    """

    library: ctypes.CDLL
    parallel: Callable[..., object]
    limit: Callable[[int], object]
    allowed: Callable[[], int]
    symbols: Mapping[str, int] = field(default_factory=dict)
    crowd: Crowd | None = None


@functools.cache
def open_mp() -> OpenMP | None:
    """Return the process's OpenMP, None where there is no GNU OpenMP: then kernels run serially."""
    said = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"} & os.environ.keys()
    with _defaults({"GOMP_SPINCOUNT": _SPINS}):
        try:
            library = ctypes.CDLL("libgomp.so.1")
            symbols = {n: ctypes.cast(library[n], ctypes.c_void_p).value or 0 for n in _NAMES}
            # Too short for releasing the interpreter's lock.
            short = ctypes.PyDLL("libgomp.so.1")
            parallel, limit = library["GOMP_parallel"], short["omp_set_num_threads"]
            allowed = short["omp_get_max_threads"]
        except (OSError, AttributeError):
            notice(
                "kernels run on one thread: the library libgomp.so.1 (package libgomp1 on Debian, "
                "libgomp on Fedora) was not found"
            )
            return None
    parallel.restype, limit.restype, allowed.restype = None, None, ctypes.c_int
    parallel.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    limit.argtypes, allowed.argtypes = (ctypes.c_int,), ()
    # How threads wait is the user's choice where it was made.
    crowd = None if said else watch(parallel)
    os.register_at_fork(after_in_child=lambda: _without_pool(limit, crowd))
    return OpenMP(library, parallel, limit, allowed, symbols, crowd)


def _without_pool(limit: Callable[[int], object], crowd: Crowd | None) -> None:
    """Run everything on one thread in a forked process.

    The pool's threads are not there, and GNU OpenMP would wait for them for ever.
    """
    Share.forked = True
    limit(1)
    if crowd is not None:
        crowd.forget()


class _defaults:  # noqa: N801 - a context manager
    """Sets environment variables that are unset, for the libraries that are loaded inside."""

    def __init__(self, values: Mapping[str, str]) -> None:
        said = "OMP_WAIT_POLICY" in os.environ
        self._values = {k: v for k, v in values.items() if not said and k not in os.environ}

    def __enter__(self) -> None:
        os.environ.update(self._values)

    def __exit__(self, *_: object) -> None:
        for name in self._values:
            os.environ.pop(name, None)


def thread_count() -> int:
    """Return how many threads a step that runs alone uses, unless its session says otherwise.

    That is ``HEADRACE_THREADS`` or ``OMP_NUM_THREADS`` where one is set, else the cores that the
    process may use, which the ranks of an MPI job on one machine share.
    """
    chosen = THREADS.read() or _whole(os.environ.get("OMP_NUM_THREADS"))
    return chosen or max(1, available_cores() // _sharing_ranks())


def available_cores() -> int:
    """Return how many cores the process may use: its affinity, and its control group's quota."""
    cores = len(os.sched_getaffinity(0))
    quota = _quota()
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def _sharing_ranks() -> int:
    """Return how many ranks of an MPI job share the process's cores."""
    if len(os.sched_getaffinity(0)) < (os.cpu_count() or 1):
        return 1  # The launcher gave each rank cores of its own.
    names = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE")
    return next((n for n in map(_whole, map(os.environ.get, names)) if n), 1)


def _whole(text: str | None) -> int | None:
    """Return the first number of a setting such as ``"4"`` or ``"4,2"``, None for others."""
    first = (text or "").split(",")[0].strip()
    return int(first) if first.isdigit() and int(first) > 0 else None


@functools.cache
def _quota(root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """Return the control group's limit in cores, None where there is none."""
    try:
        share, period = (root / "cpu.max").read_text().split()[:2]
    except (OSError, ValueError):
        try:
            share = (root / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (root / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if not share.isdigit() or not period.isdigit() or not int(share) or not int(period):
        return None
    return int(share) / int(period)


_Kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def bare_kernel(address: int) -> Callable[[int], object]:
    """Return what runs a kernel on the calling thread, for the address of a block."""
    return _Kernel(address)


# Keeps the interpreter's lock.
_Short = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


def short_kernel(address: int) -> Callable[[int], object]:
    """Return what runs a kernel on the calling thread, for the address of a block.

    It keeps the interpreter's lock, for work of microseconds: where other threads wait for the
    lock, giving it up and getting it back takes longer than that.
    """
    return _Short(address)


def launch(address: int, block: int, threads: int = 1) -> Callable[[], object]:
    """Return what runs a kernel on its block; calling it takes about half a microsecond.

    Args:
        address: The kernel's address, ``void kernel(int64_t *block)``.
        block: The block's address, which stays valid as long as the result is called.
        threads: 1 runs it on the calling thread; more on as many threads of the pool, or on the
            step's share of them where that is smaller.
    """
    pool = open_mp() if threads > 1 else None
    if pool is None:
        return functools.partial(_Kernel(address), block)
    parallel, allowed = pool.parallel, pool.allowed
    place, words = ctypes.c_void_p(address), ctypes.c_void_p(block)

    def run() -> None:
        parallel(place, words, min(threads, allowed()), 0)

    return run


class Share:
    """The steps that run at once, and the threads that each may use.

    ``enter`` before a step's kernels and ``leave`` after them: both take under a microsecond.

    Attributes:
        threads: How many threads a step that runs alone uses.
    """

    # One list for all programs of the process: its methods are atomic.
    _running: list[None] = []  # noqa: RUF012
    _allowed = threading.local()
    # Taken again by the same thread where a step runs another, from a Python function.
    _turn = threading.RLock()
    # Whether the process is the child of one that used the pool.
    forked = False
    # Whether steps have run beside each other in the process, with or without kernels of their own:
    # then they do not always have the same number of threads, and sums that threads add up in parts
    # not always the same bits.
    _varies = False

    def __init__(self, threads: int | None = None, *, fixed: bool = False) -> None:
        """Take part in sharing.

        Args:
            threads: How many threads a step that runs alone uses, None for the default.
            fixed: Whether a step always uses as many, so that sums, which threads add up in parts,
                come out the same. Such steps take turns: BLAS has one number of threads for the
                whole process, which kernels beside each other would change under one another.
        """
        self.threads = threads or thread_count()
        self._fixed = fixed
        pool = open_mp() if self.threads > 1 else None
        self._limit = pool.limit if pool else None
        self._crowd = pool.crowd if pool else None
        # What is computed on a fixed number of threads does not depend on others.
        self._choice = None if fixed or self._crowd is None else Choice()

    def enter(self) -> int:
        """Take a share of the threads for the calling thread; return how many."""
        if self._fixed:
            self._turn.acquire()
        running = self._running
        running.append(None)
        beside = len(running)
        threads = self.threads if self._fixed else max(1, self.threads // beside)
        if not self._varies and (beside > 1 or ABREAST.seen):
            Share._varies = True
        if self.forked:
            threads = 1
        elif self._crowd is not None:
            self._crowd.look(threads)
            if self._crowd.seen and self._varies and threads > 1 and self._choice is not None:
                threads = threads if self._choice.several() else 1
        if self._limit is not None and getattr(self._allowed, "threads", 0) != threads:
            self._limit(threads)
            self._allowed.threads = threads
        return threads

    def lent(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call during which the share is others': it runs programs that take one."""

        def run(*values: Any) -> Any:
            self.leave()
            try:
                return call(*values)
            finally:
                self.enter()

        return run

    @classmethod
    def allowed(cls) -> int:
        """Return how many threads the calling thread's last step got, 1 before the first."""
        return getattr(cls._allowed, "threads", 1)

    def leave(self) -> None:
        """Give the share back."""
        self._running.pop()
        if self._crowd is not None and self._crowd.seen and self._choice is not None:
            self._choice.done()
        if self._fixed:
            self._turn.release()
