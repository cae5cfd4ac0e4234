"""Profiles: where the time of steps went, by kernel and by type of operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from headrace.records import dataclass
from headrace.runtime.devices.limits import MachineLimits
from headrace.runtime.profiling.profile_hints import hints
from headrace.runtime.profiling.profile_row import ProfileRow
from headrace.runtime.profiling.report import Work, amount, duration

# Operations that hold others: their time is that of what is inside, which is listed by itself.
_HOLDERS = ("Call", "If", "While")
# Returns what the device of a name can do, None where that is not known.
LimitsOf = Callable[[str], MachineLimits | None]


@dataclass(frozen=True, slots=True)
class Profile:
    """Where the time of a session's steps went; printing it shows a table.

    Attributes:
        steps: How many steps ran.
        step_seconds: How long they took together.
        kernels: A row for each kernel, and each operation that ran by itself, the longest first.
        types: A row for each type of operation, the longest first. The time of a kernel that
            computes several operations counts for the combination of their types.
    """

    steps: int
    step_seconds: float
    kernels: tuple[ProfileRow, ...]
    types: tuple[ProfileRow, ...]

    @property
    def seconds(self) -> float:
        """The time of all kernels and operations together."""
        return sum(row.seconds for row in self.kernels)

    @property
    def hints(self) -> tuple[str, ...]:
        """Where most of the time goes, and what makes it less."""
        return hints(self.steps, self.step_seconds, self.kernels)

    def table(self, *, by: str = "types", limit: int = 30) -> str:
        """Return a table as text.

        Args:
            by: "types" or "kernels".
            limit: How many rows to show.
        """
        rows = self.kernels if by == "kernels" else self.types
        lines = [_cells("calls", "total", "mean", "share", "of limit", "bytes/s", "flops/s", by)]
        lines += [_line(row) for row in rows[:limit]]
        if len(rows) > limit:
            lines.append(f"and {len(rows) - limit} more rows")
        return "\n".join(lines)

    def __str__(self) -> str:
        whole, busy = duration(self.step_seconds), duration(self.seconds)
        count = f"{self.steps} step{'s' if self.steps != 1 else ''}"
        lines = [f"{count} in {whole}, of which kernels and operations took {busy}", self.table()]
        return "\n".join([*lines, *self.hints])


def _line(row: ProfileRow) -> str:
    speed = "-" if row.flops_per_second is None else amount(row.flops_per_second, "flop/s")
    name = row.name if row.computes in ("", row.name) else f"{row.name}: {row.computes}"
    return _cells(
        str(row.calls),
        duration(row.seconds),
        duration(row.mean),
        f"{row.share:.1%}",
        "-" if row.of_limit is None else f"{row.of_limit:.0%}",
        amount(row.bytes_per_second, "B/s"),
        speed,
        name + (f"  ({row.line})" if row.line else ""),
    )


def _cells(calls: str, *cells: str) -> str:
    *numbers, name = cells
    return f"{calls:>8} " + " ".join(f"{cell:>12}" for cell in numbers) + f"  {name}"


class Totals:
    """Sums of what was recorded, by piece of work."""

    def __init__(self) -> None:
        self.steps = 0
        self.step_time = 0
        self._sums: dict[Work, list[int]] = {}

    def add(self, work: Work, time: int, moved: int, *, waited: bool = False) -> None:
        """Add one run that took ``time`` nanoseconds and moved ``moved`` bytes."""
        if not work.ops:
            self.steps += 1
            self.step_time += time
        elif work.name not in _HOLDERS:
            sums = self._sums.setdefault(work, [0, 0, 0, 0])
            sums[0] += 1
            sums[1] += time
            sums[2] += moved
            sums[3] += waited

    def profile(self, limits: LimitsOf) -> Profile:
        """Return the tables, beside what the devices can do."""
        whole = sum(sums[1] for sums in self._sums.values()) or 1
        kernels = [_row([work], self._sums, whole, limits, work.line) for work in self._sums]
        groups: dict[str, list[Work]] = {}
        for work in self._sums:
            groups.setdefault(work.types, []).append(work)
        types = [_row(works, self._sums, whole, limits) for works in groups.values()]
        return Profile(self.steps, self.step_time / 1e9, _sorted(kernels), _sorted(types))


def _row(
    works: list[Work], sums: dict[Work, list[int]], whole: int, limits: LimitsOf, line: str = ""
) -> ProfileRow:
    first = works[0]
    calls = sum(sums[work][0] for work in works)
    time = sum(sums[work][1] for work in works)
    counted = [work for work in works if work.flops is not None]
    flops = sum((work.flops or 0) * sums[work][0] for work in counted) if counted else None
    moved = sum(sums[work][2] for work in works)
    name = first.name if line else first.types
    able = limits(first.device)
    known = able is not None and bool(moved or flops)
    return ProfileRow(
        name,
        first.types,
        calls,
        time / 1e9,
        time / whole,
        moved,
        flops,
        line,
        able.seconds(moved, flops or 0) if able is not None and known else None,
        able is not None and able.seconds(moved, 0) >= able.seconds(0, flops or 0),
        first.fused,
        any(sums[work][3] for work in works),
    )


def _sorted(rows: Iterable[ProfileRow]) -> tuple[ProfileRow, ...]:
    return tuple(sorted(rows, key=lambda row: -row.seconds))
