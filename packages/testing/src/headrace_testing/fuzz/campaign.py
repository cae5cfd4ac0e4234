"""Many calls in worker processes, which may crash or hang without harm to the others."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from headrace_testing.fuzz.execute import FORBIDDEN
from headrace_testing.fuzz.generate import make_call
from headrace_testing.fuzz.targets import Target
from headrace_testing.fuzz.worker import Job, warm_up, work

TIME_LIMIT = 10.0
# How many times the limit a call may take where the process gets little of the processor.
_PATIENCE = 6
# A worker makes so many calls at most: what it keeps stays little.
BATCH = 2000


@dataclass(frozen=True, slots=True)
class Failure:
    """A call with a forbidden outcome.

    Attributes:
        target: What was called.
        kind: One of ``FORBIDDEN``.
        text: What happened.
        call: The call in one line.
    """

    target: str
    kind: str
    text: str
    call: str


@dataclass(slots=True)
class Report:
    """What came of a run.

    Attributes:
        outcomes: How many calls had which outcome.
        calls: How many calls each target got.
        failures: The calls with forbidden outcomes, at most ``kept`` of each target and kind.
        seconds: How long it took.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def forbidden(self) -> int:
        """How many calls had a forbidden outcome."""
        return sum(self.outcomes[kind] for kind in FORBIDDEN)


@dataclass(slots=True)
class _Worker:
    process: Any
    pipe: Connection
    jobs: Sequence[Job]
    log: Path
    doing: int = -1
    since: float = 0.0
    used: float = 0.0


def fuzz(
    targets: Mapping[str, Target],
    calls: int,
    *,
    seed: int = 1,
    workers: int = 2,
    start: int = 0,
    time_limit: float = TIME_LIMIT,
    progress: Callable[[Report], None] | None = None,
) -> Report:
    """Make random calls and judge them.

    Args:
        targets: What to call, by name.
        calls: How many calls to make in all; each target gets as many as the others.
        seed: The seed: with the same seed the same calls are made.
        workers: How many processes make them.
        start: The number of the first call of each target.
        time_limit: Seconds after which a call counts as hanging.
        progress: Called now and then.
    """
    names = sorted(targets)
    jobs = [(names[i % len(names)], start + i // len(names)) for i in range(calls)]
    warm_up()
    batches = deque(jobs[i : i + BATCH] for i in range(0, len(jobs), BATCH))
    with tempfile.TemporaryDirectory() as folder:
        run = _Campaign(dict(targets), seed, batches, Path(folder), time_limit)
        began = time.monotonic()
        try:
            run.loop(workers, progress)
        finally:
            run.stop()
        run.report.seconds = time.monotonic() - began
    return run.report


class _Campaign:
    def __init__(
        self,
        targets: dict[str, Target],
        seed: int,
        batches: deque[list[Job]],
        folder: Path,
        time_limit: float,
    ) -> None:
        self.targets = targets
        self.seed = seed
        self.batches = batches
        self.folder = folder
        self.time_limit = time_limit
        self.report = Report()
        self.workers: list[_Worker] = []
        # A fork shares the targets, which need not be such that they can be sent.
        self.context = multiprocessing.get_context("fork")
        self.started = 0

    def loop(self, workers: int, progress: Callable[[Report], None] | None) -> None:
        """Keep workers busy until all calls are made."""
        told = time.monotonic()
        while self.batches or self.workers:
            while self.batches and len(self.workers) < workers:
                self._start(self.batches.popleft())
            for pipe in wait([worker.pipe for worker in self.workers], timeout=0.5):
                self._hear(next(w for w in self.workers if w.pipe is pipe))
            now = time.monotonic()
            for worker in list(self.workers):
                if worker.doing >= 0 and self._hangs(worker, now):
                    worker.process.kill()
                    self._lost(worker, "hang", f"it ran for more than {self.time_limit:g} s")
            if progress is not None and now - told > 10:
                told = now
                progress(self.report)

    def _hangs(self, worker: _Worker, now: float) -> bool:
        """Whether a call takes too long, of its own: other processes may hold up this one."""
        waited = now - worker.since
        if waited <= self.time_limit:
            return False
        used = _processor_seconds(worker.process.pid) - worker.used
        return used > self.time_limit or waited > _PATIENCE * self.time_limit

    def stop(self) -> None:
        """End workers that are still there."""
        for worker in self.workers:
            worker.process.kill()
            worker.process.join()

    def _start(self, jobs: Sequence[Job]) -> None:
        here, there = self.context.Pipe(duplex=False)
        self.started += 1
        log = self.folder / f"{self.started}.log"
        process = self.context.Process(
            target=work, args=(there, self.targets, self.seed, jobs, str(log)), daemon=True
        )
        process.start()
        there.close()
        self.workers.append(_Worker(process, here, jobs, log, since=time.monotonic()))

    def _hear(self, worker: _Worker) -> None:
        try:
            while worker.pipe.poll():
                message = worker.pipe.recv()
                if message is None:
                    worker.process.join()
                    self.workers.remove(worker)
                    return
                if isinstance(message, int):
                    worker.doing, worker.since = message, time.monotonic()
                    worker.used = _processor_seconds(worker.process.pid)
                    continue
                i, kind, text, shown = message
                self._count(worker.jobs[i], kind, text, shown)
                worker.doing = -1 - i
        except (EOFError, OSError):
            worker.process.join()
            said = worker.log.read_text().splitlines() if worker.log.exists() else []
            text = f"exit code {worker.process.exitcode}; {' | '.join(said[:8])}"
            self._lost(worker, "crash", text)

    def _lost(self, worker: _Worker, kind: str, text: str) -> None:
        worker.process.join()
        self.workers.remove(worker)
        done = worker.doing if worker.doing >= 0 else -1 - worker.doing
        name, at = worker.jobs[done]
        self._count((name, at), kind, text, str(make_call(self.targets[name], self.seed, at)))
        if worker.jobs[done + 1 :]:
            self.batches.appendleft(list(worker.jobs[done + 1 :]))

    def _count(self, job: Job, kind: str, text: str, shown: str) -> None:
        self.report.outcomes[kind] += 1
        self.report.calls[job[0]] += 1
        self.report.right[job[0]] += kind == "right"
        if kind in FORBIDDEN:
            self.report.failures.append(Failure(job[0], kind, text, shown))


def _processor_seconds(process: int) -> float:
    """Return the processor time that a process has used; 0 where it has ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def processors() -> int:
    """Return how many processes can run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
