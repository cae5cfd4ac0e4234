"""How long idle threads of the pool look for work, where other processes want their cores.

A thread of the pool that waits for others looks at memory for a while before it sleeps, because
waking it takes longer than most kernels. Where each thread has a core to itself, that costs
nothing. Where another process has one of the cores, two threads of the pool share what is left, and
the one that looks keeps the one it waits for from running: until it has given up, or until the
scheduler takes its core, milliseconds in which nothing is done, at the start and the end of every
kernel. On two cores beside one busy process, steps of kernels of 20 microseconds took 20 to 40
times as long as on one core.

GNU OpenMP has a short form of looking, a hundred times at most, which it takes where it manages
more threads than there are cores. It asks whenever a thread begins to wait. So a second team, whose
threads sleep, switches to the short form, and its end switches back: nothing else in the process
can, because the number of looks is read once, when the library is loaded.

Before that, the pool's threads are kept off the core of the thread that they work for: it may be
the process's own threads that stand in each other's way.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

# Between two measurements; and how many times as long as one takes, so that a process of many
# threads pays less than half a percent.
_INTERVAL_S, _TIMES_COST = 0.02, 250
# Seconds that the process's threads waited for a core, by seconds that passed. By themselves two
# threads wait 0.00 to 0.04; beside a busy process 0.7 to 1.2, in both forms.
_CROWDED, _FREE = 0.15, 0.05
# Of the time of all cores, what the process's own threads have or nobody wants, where others want
# none: who waits then waits for threads of his own, or was put where they are, and it would not
# help to let threads sleep soon.
_OWN = 0.8
# So often in so many seconds threads are moved apart: that did not help, or the thread that they
# work for was put on their core.
_MOST_PARTS, _PARTS_S = 2, 0.5
# The short form makes steps of small kernels up to 2.5 times as long where cores are free, so it is
# left only when they have been so for a while: what comes and goes would pay for each change. Where
# others are there again within as long a time after that, which is so too where programs run on one
# thread in a crowd and therefore see nothing of it, the time is doubled, up to the second number.
_FREE_S, _MOST_FREE_S = 0.2, 5.0
# What happened before a pause says nothing of now.
_PAUSE_S = 0.5
# How long a step waits for the team to be there.
_START_S = 1.0
# A machine of more cores has one to spare for a process that comes along, and a team of so many
# threads would be a burden of its own.
_MOST_CORES = 16

# Thread by number -> for how many seconds it ran, and for how many it was ready and had no core.
Waits = dict[int, tuple[float, float]]


def waited(folder: Path = Path("/proc/self/task")) -> Waits | None:
    """Return for how many seconds each thread of the process ran, and was ready without a core.

    They are the first numbers of ``schedstat`` (Linux, Documentation/scheduler/sched-stats.rst).
    Returns None where the system does not tell.
    """
    found: Waits = {}
    try:
        for name in os.listdir(folder):  # noqa: PTH208 - half the time of a look
            try:
                with open(f"{folder}/{name}/schedstat", "rb") as file:  # noqa: PTH123 - as above
                    ran, late, *_ = file.read().split()
                found[int(name)] = int(ran) * 1e-9, int(late) * 1e-9
            except (FileNotFoundError, ProcessLookupError):
                if not (folder / name).exists():
                    continue  # The thread has ended.
                raise
    except (OSError, ValueError, IndexError):
        return None
    return found


def idle(cores: Collection[int], file: Path = Path("/proc/stat")) -> float:
    """Return for how many seconds some cores had nothing to do, 0 where the system does not tell.

    The fourth number of each core, in hundredths of seconds mostly (Linux, proc_stat(5)).
    """
    total = 0
    try:
        for line in file.read_text().splitlines():
            name, *numbers = line.split()
            if name[:3] == "cpu" and name[3:].isdigit() and int(name[3:]) in cores:
                total += int(numbers[3])
    except (OSError, ValueError, IndexError):
        return 0.0
    return total / os.sysconf("SC_CLK_TCK")


class Cores:
    """Keeps threads of the pool off the core of the thread that they work for.

    Linux puts a thread that wakes on an idle core, unless the core's virtual machine takes the core
    for one that the host has taken away, as KVM's idle ones look. Then it stays on the core of who
    woke it, and two threads that sleep between kernels take turns on one core for good.
    """

    def __init__(self, parallel: Callable[..., object]) -> None:
        """Move nobody yet.

        Args:
            parallel: ``GOMP_parallel(kernel, block, threads, flags)``.
        """
        self._parallel = parallel
        self._allowed = os.sched_getaffinity(0)
        # The threads that are kept off a core, and the core.
        self._kept: set[int] = set()
        self._core = -1
        self._met = threading.local()
        try:
            library = ctypes.CDLL(None)
            self._here: Callable[[], int] = library["sched_getcpu"]
            self._nothing = ctypes.cast(library["free"], ctypes.c_void_p)
        except AttributeError:
            self._allowed = set()

    def part(self, threads: int, late: Iterable[int] = ()) -> bool:
        """Keep the pool's threads off this thread's core; return whether that changed anything.

        Args:
            threads: How many threads this one is about to work with, itself included.
            late: Threads that wait for a core, besides. Those of Python are left alone: they start
                threads and processes, which would be kept off the core as well.
        """
        if len(self._allowed) < 2:
            return False
        keep = self._kept | self._started(threads) | set(late)
        core = self._here()
        if core == self._core and keep == self._kept:
            return False
        # A number may be another thread's by now.
        keep -= {thread.native_id for thread in threading.enumerate()}
        others = self._allowed - {core}
        kept = {thread for thread in keep if _bind(thread, others)}
        changed = bool(kept) and (core != self._core or kept != self._kept)
        self._core, self._kept = core, kept
        return changed

    def join(self) -> None:
        """Let them run on all cores."""
        for thread in self._kept:
            _bind(thread, self._allowed)
        self._core = -1

    def _started(self, threads: int) -> set[int]:
        """Return what OpenMP starts for this thread, the first time that it has so many."""
        if threads <= getattr(self._met, "threads", 1):
            return set()
        self._met.threads = threads
        before = _threads()
        self._parallel(self._nothing, None, threads, 0)
        return _threads() - before


def _threads() -> set[int]:
    try:
        return set(map(int, os.listdir("/proc/self/task")))  # noqa: PTH208 - no paths are needed
    except OSError:
        return set()


def _bind(thread: int, cores: set[int]) -> bool:
    try:
        os.sched_setaffinity(thread, cores)
    except OSError:
        # It has ended, or its cores are not ours to choose.
        return False
    return True


class Team:
    """Threads of GNU OpenMP that sleep, and are counted, from ``start`` to ``end``."""

    def __init__(self, parallel: Callable[..., object], size: int) -> None:
        """Start nothing yet.

        Args:
            parallel: ``GOMP_parallel(kernel, block, threads, flags)``.
            size: how many threads the team has, with the one that calls it.
        """
        self._parallel, self._size = parallel, size
        self._nothing = ctypes.cast(ctypes.CDLL(None)["free"], ctypes.c_void_p)
        self._leave: _thread.LockType | None = None

    def start(self) -> None:
        """Start a thread that has a team and sleeps; return when the team is counted.

        Where no thread can be started, since there are too many or Python ends, nothing changes.
        """
        started, leave = _thread.allocate_lock(), _thread.allocate_lock()
        started.acquire()
        leave.acquire()
        try:
            # None of `threading`: it has no part in the program, whose threads are counted there.
            _thread.start_new_thread(self._stay, (started, leave))
        except RuntimeError:
            return
        self._leave = leave
        # It does not run any more where Python has come to its end meanwhile.
        started.acquire(timeout=_START_S)

    def _stay(self, started: _thread.LockType, leave: _thread.LockType) -> None:
        self._parallel(self._nothing, None, self._size, 0)
        started.release()
        leave.acquire()

    def end(self) -> None:
        """Let the thread end; GNU OpenMP ends its team with it."""
        if self._leave is not None:
            self._leave.release()
            self._leave = None


class Crowd:
    """Says whether others want the process's cores, and lets the pool wait accordingly.

    Attributes:
        seen: Whether others want them, as of the last look.
    """

    def __init__(
        self,
        team: Team,
        cores: Cores,
        allowed: Collection[int],
        waited: Callable[[], Waits | None] = waited,
        idle: Callable[[Collection[int]], float] = idle,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with cores that are free.

        Args:
            team: What makes waiting threads sleep soon, while it is there.
            cores: Keeps threads off each other's cores.
            allowed: The cores that the process may use.
            waited: Returns for how long threads ran and had no core, in seconds; None for unknown,
                after which nothing is asked or changed any more.
            idle: Returns for how many seconds cores had nothing to do.
            clock: Returns the time in seconds.
        """
        self.seen = False
        self._team, self._cores, self._allowed = team, cores, allowed
        self._waited, self._idle, self._clock = waited, idle, clock
        self._turn = threading.Lock()
        self._at, self._next, self._free_since = 0.0, 0.0, 0.0
        # When threads were moved apart; for how long cores are free before the short form is left,
        # and when it was left.
        self._parts: deque[float] = deque(maxlen=_MOST_PARTS)
        self._patience, self._left = _FREE_S, float("-inf")
        self._before: Waits | None = None
        self._idle_before = 0.0

    def look(self, threads: int) -> None:
        """Look again, if it is time; it takes 0.1 microseconds where it is not.

        Args:
            threads: How many threads the step that begins now works with.
        """
        now = self._clock()
        if now < self._next or not self._turn.acquire(blocking=False):
            return
        try:
            self._measure(now, threads)
        finally:
            self._turn.release()

    def forget(self) -> None:
        """Never look again: in a forked process there is no team."""
        self._next = float("inf")

    def _measure(self, now: float, threads: int) -> None:
        waits = self._waited()
        if waits is None:
            self._next = float("inf")
            return
        since, before = self._at, self._before
        nothing_to_do = self._idle(self._allowed)
        spare, self._idle_before = nothing_to_do - self._idle_before, nothing_to_do
        self._at, self._before = now, waits
        self._next = now + max(_INTERVAL_S, _TIMES_COST * (self._clock() - now))
        if before is None or now - since > _PAUSE_S:
            self._free_since = now
            if not self.seen:
                self._cores.part(threads)
            return
        seconds = now - since
        none = (0.0, 0.0)
        more = {thread: late - before.get(thread, none)[1] for thread, (_, late) in waits.items()}
        share = sum(more.values()) / seconds
        if share >= _FREE:
            self._free_since = now
        if not self.seen:
            late = [thread for thread, spent in more.items() if spent >= _FREE * seconds]
            parted = self._cores.part(threads, late if share >= _CROWDED else ())
            if share >= _CROWDED:
                tried = len(self._parts) == _MOST_PARTS and now - self._parts[0] <= _PARTS_S
                if parted and not tried:
                    self._parts.append(now)
                elif self._others(waits, before, seconds, spare):
                    self._begin(now)
        elif now - self._free_since >= self._patience:
            self.seen, self._left = False, now
            self._team.end()

    def _others(self, waits: Waits, before: Waits, seconds: float, spare: float) -> bool:
        """Whether others had cores, which neither were idle nor had threads of the process."""
        none = (0.0, 0.0)
        ran = sum(ran - before.get(thread, none)[0] for thread, (ran, _) in waits.items())
        return ran + spare < _OWN * len(self._allowed) * seconds

    def _begin(self, now: float) -> None:
        """Take the short form: others want the cores."""
        soon = now - self._left < self._patience
        self._patience = min(2 * self._patience, _MOST_FREE_S) if soon else _FREE_S
        self.seen = True
        self._cores.join()
        self._team.start()


def watch(parallel: Callable[..., object]) -> Crowd | None:
    """Return what watches the process's cores; None where there is one, or there are many.

    Args:
        parallel: ``GOMP_parallel``.
    """
    cores = os.sched_getaffinity(0)
    if not 1 < len(cores) <= _MOST_CORES:
        return None
    return Crowd(Team(parallel, len(cores)), Cores(parallel), cores)
