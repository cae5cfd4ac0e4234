"""Retention of checkpoints: the latest, one every so many hours, and the best.

As in TensorFlow the limits count what one saver wrote. What an earlier process wrote is taken over
at the first save to its folder, so that the limits hold over restarts.
"""

from __future__ import annotations

import logging
import math
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias, final

from headrace.errors import AttributeValueError, CheckpointError, shown
from headrace.extend.arguments import real, whole
from headrace_train.checkpoint.paths import join
from headrace_train.checkpoint.record import BEST, HOURS, LATEST, Entry, Record

Order: TypeAlias = Literal["lowest", "highest"]

_STEP = re.compile(r"[-_.]?\d+(?=(\.h5)?$)")
_log = logging.getLogger("headrace.train")


def series_of(name: str) -> str:
    """Return what the names of checkpoints have in common that differ only in their step."""
    return _STEP.sub("", name, count=1)


@final
@dataclass(frozen=True, slots=True)
class Policy:
    """Which checkpoints stay.

    Attributes:
        latest: How many of the latest; None for all.
        hours: One more stays for each time that so many hours have passed.
        best: How many of the best.
        order: Whether the best have the lowest or the highest metric.
    """

    latest: int | None
    hours: float
    best: int = 0
    order: Order = "lowest"

    def check(self) -> None:
        """Refuse what makes no sense.

        Raises:
            ArgumentTypeError: if it is no whole number.
            CheckpointError: if fewer than none should stay.
            AttributeValueError: if the hours or the order are none.
        """
        if self.latest is not None and whole(self.latest, "max_to_keep, None for all,") < 1:
            raise CheckpointError(
                f"max_to_keep must be at least 1, or None to keep all, got {self.latest}"
            )
        if math.isnan(real(self.hours, "keep_checkpoint_every_n_hours")):
            raise AttributeValueError("keep_checkpoint_every_n_hours must be a number, got nan")
        if whole(self.best, "keep_best") < 0:
            raise CheckpointError(f"keep_best must be at least 0, got {self.best}")
        if self.order not in ("lowest", "highest"):
            raise AttributeValueError(
                f"best_is must be 'lowest' or 'highest', got {shown(self.order)}"
            )

    def __str__(self) -> str:
        if self.latest is None:
            return "all are kept"
        text = f"the latest {self.latest} are kept"
        if self.hours < 10_000:
            text += f", one every {self.hours:g} hours"
        if self.best:
            text += f", the {self.best} with the {self.order} metric"
        return f"{text}; older ones are deleted"


@final
class Retention:
    """What a saver remembers of the checkpoints that it wrote.

    Attributes:
        latest: The latest ones, each with the time when it was written, the latest last.
        best: The best ones, each with its metric, the best first.
        keep_after: The time from which on the next one stays for its time, in seconds since 1970.
        timed: Those that stay for their time.
    """

    def __init__(self, policy: Policy) -> None:
        """Start with no checkpoints."""
        policy.check()
        self.policy = policy
        self.latest: list[tuple[str, float]] = []
        self.best: list[tuple[str, float]] = []
        self.keep_after = time.time() + policy.hours * 3600
        self.timed: set[str] = set()
        self._surplus: list[str] = []
        self._adopted: set[tuple[str, str]] = set()

    def is_new_to(self, folder: str, series: str) -> bool:
        """Whether nothing has been taken over yet of a folder and series."""
        return (folder, series) not in self._adopted

    def adopt(self, folder: str, series: str, record: Record, run: str) -> None:
        """Take over what earlier processes wrote, once for each folder and series.

        All beyond one more than the limit is surplus. A process that ends between a commit and its
        deletions leaves one more than the limit; each that ends so after it would leave another.

        Args:
            folder: The folder, as it stands before the names.
            series: The series.
            record: What is remembered of the folder.
            run: This process, which keeps account of its own.
        """
        if not self.is_new_to(folder, series):
            return
        self._adopted.add((folder, series))
        if series in record.keep_after:
            self.keep_after = min(self.keep_after, record.keep_after[series])
        known = {path for path, _ in self.latest}
        earlier = [e for e in record.entries if e.series == series and e.run != run]
        found = []
        for entry in earlier:
            path = join(folder, entry.name)
            if entry.kept == LATEST and path not in known and self.policy.latest is not None:
                found.append((path, entry.time))
            if entry.metric is not None and self.policy.best and entry.kept in (LATEST, BEST):
                self._rank(path, entry.metric)
        self.latest[:0] = found
        self._trim(above=1)
        if found:
            _log.info("took over %d checkpoints of an earlier run in %s", len(found), folder or ".")

    def add(self, path: str, now: float, metric: float | None = None) -> None:
        """Enter a checkpoint that was written."""
        dropped = None
        if self.policy.best and metric is not None:
            if math.isnan(metric):
                _log.warning("the checkpoint %s has the metric nan, and is none of the best", path)
            else:
                dropped = self._rank(path, metric)
        if self.policy.latest is None:
            return
        self.latest = [(p, t) for p, t in self.latest if p != path]
        self._surplus = [p for p in self._surplus if p != path]
        self.latest.append((path, now))
        self._trim(above=0)
        if dropped is not None and dropped not in {p for p, _ in self.latest}:
            self._surplus.append(dropped)

    def _trim(self, *, above: int) -> None:
        while self.policy.latest is not None and len(self.latest) > self.policy.latest + above:
            self._surplus.append(self._evict(*self.latest.pop(0)))

    def take_surplus(self) -> list[str]:
        """Return what is to be deleted now."""
        found = [path for path in self._surplus if path]
        self._surplus = []
        return list(dict.fromkeys(found))

    def put_back(self, path: str) -> None:
        """Remember to delete what could not be deleted now."""
        self._surplus.append(path)

    def update(self, record: Record, entry: Entry, folder: str) -> None:
        """Let the record of a folder say what stays there and why."""
        record.put(entry)
        record.keep_after[entry.series] = self.keep_after
        latest = {path for path, _ in self.latest}
        best = {path for path, _ in self.best}
        for other in list(record.entries):
            path = join(folder, other.name)
            if path in self.timed:
                record.mark(other.name, HOURS)
            elif path in best and path not in latest and other.kept == LATEST:
                record.mark(other.name, BEST)

    def set_latest(self, latest: Iterable[tuple[str, float]]) -> None:
        """Say what the latest ones are; nothing else is taken over then."""
        self.latest = list(latest)

    def _evict(self, path: str, written: float) -> str:
        """Return a checkpoint if it is to be deleted, "" if there is another reason to keep it."""
        if written > self.keep_after:
            self.keep_after += self.policy.hours * 3600
            if not math.isinf(written):
                _log.info(
                    "kept the checkpoint %s: one stays every %g hours", path, self.policy.hours
                )
            self.timed.add(path)
            return ""
        return "" if any(path == other for other, _ in self.best) else path

    def _rank(self, path: str, metric: float) -> str | None:
        """Enter a metric; return what is none of the best any more."""
        self.best = [(p, m) for p, m in self.best if p != path]
        sign = 1 if self.policy.order == "lowest" else -1
        self.best.append((path, metric))
        self.best.sort(key=lambda item: sign * item[1])
        if len(self.best) <= self.policy.best:
            return None
        return self.best.pop()[0]
