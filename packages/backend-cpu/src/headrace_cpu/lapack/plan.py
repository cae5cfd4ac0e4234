"""Plans: how an operation on matrices of known sizes is computed, and how one sees that it failed.

What LAPACK does with NaN differs from function to function, and some never come back. So a plan has
up to two tables: the first one looks whether the matrices are finite, by a product with them, and
the second computes. Where something is not finite or a function reports a failure, the plan's user
lets NumPy's kernel do all of it again, which raises what is to be raised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import prod
from typing import Any, TypeAlias

import numpy as np

from headrace.extend.records import dataclass
from headrace_cpu.lapack.library import LETTERS, Lapack
from headrace_cpu.lapack.table import Place, Table
from headrace_cpu.native.memory import Array, view

_ALIGNED = 64

# Computes results from what the tables left in scratch memory: ``f(reports, outputs)``.
Finish: TypeAlias = Callable[["Reports", Sequence[Array]], None]


@dataclass(frozen=True, slots=True)
class Report:
    """What a table leaves in scratch memory for Python to look at.

    Attributes:
        offset: Where it begins, in bytes.
        shape: Of the array.
        dtype: Of the array.
    """

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def of(self, scratch: int) -> Array:
        """Return the array, of memory that somebody else keeps."""
        return view(scratch + self.offset, self.shape, self.dtype, None)


@dataclass(slots=True)
class Reports:
    """The arrays of a plan's reports, over the scratch memory of one run.

    Attributes:
        failures: Whole numbers that are 0 where all is well.
        probes: Numbers that are finite where matrices are, before they are decomposed.
        nonzero: Numbers of which none may be 0.
        finite: Numbers that are finite where results are.
        more: Others, for ``Plan.finish``.
    """

    failures: Array | None = None
    probes: Array | None = None
    nonzero: Array | None = None
    finite: Array | None = None
    more: list[Array] = field(default_factory=list)

    def sound(self) -> bool:
        """Whether the matrices are finite."""
        return self.probes is None or _finite(self.probes)

    def done(self) -> bool:
        """Whether nothing failed."""
        if self.failures is not None and self.failures.any():
            return False
        if self.nonzero is not None and not self.nonzero.all():
            return False
        return self.finite is None or _finite(self.finite)


def _finite(values: Array) -> bool:
    return bool(np.isfinite(values).all())


@dataclass(slots=True)
class Plan:
    """How an operation is computed.

    Attributes:
        outputs: The shapes of its results, all of one dtype.
        dtype: It.
        before: Looks whether the matrices are finite; None where that shows in the results.
        table: Computes.
        shared: Bytes of scratch memory.
        own: Further bytes for each thread.
        flops: Floating-point operations, about.
        finish: Computes results of what is in the reports.
        reports: Where the reports are, by the names of the attributes of ``Reports``.
    """

    outputs: tuple[tuple[int, ...], ...]
    dtype: np.dtype[Any]
    table: Table
    shared: int
    own: int
    flops: int
    before: Table | None = None
    finish: Finish | None = None
    reports: dict[str, Report | list[Report]] = field(default_factory=dict)

    def scratch(self, threads: int) -> int:
        """Return the bytes of scratch memory for so many threads."""
        return self.shared + self.own * threads

    def views(self, scratch: int) -> Reports:
        """Return the reports of scratch memory at an address."""
        found: dict[str, Any] = {
            name: [r.of(scratch) for r in place] if isinstance(place, list) else place.of(scratch)
            for name, place in self.reports.items()
        }
        return Reports(**found)


class Draft:
    """A plan that is being written.

    Attributes:
        table: The table that computes.
        before: The table that looks at the matrices, once something was added to it.
        kind: The dtype.
        size: Bytes of an element.
    """

    def __init__(self, lapack: Lapack, dtype: np.dtype[Any], inputs: int, outputs: int) -> None:
        self.lapack = lapack
        self.kind = dtype
        self.size = dtype.itemsize
        self.table = Table(lapack, dtype)
        self.before: Table | None = None
        self._inputs, self._outputs = inputs, outputs
        self._shared = self._own = 0
        self._reports: dict[str, Report | list[Report]] = {}

    # -- places

    def input(self, index: int, step: int = 0) -> Place:
        """Return where an input begins; ``step`` bytes from matrix to matrix."""
        return Place(1 + index, 0, step)

    def output(self, index: int, step: int = 0) -> Place:
        """Return where a result begins."""
        return Place(1 + self._inputs + index, 0, step)

    @property
    def _base(self) -> int:
        return 1 + self._inputs + self._outputs

    def _room(self, size: int) -> int:
        offset = self._shared
        self._shared += -(-size // _ALIGNED) * _ALIGNED
        return offset

    def scratch(self, size: int, step: int = 0) -> Place:
        """Return scratch memory of so many bytes."""
        return Place(self._base, self._room(size), step)

    def own(self, size: int) -> Place:
        """Return scratch memory of so many bytes that each thread has for itself."""
        offset = self._own
        self._own += -(-size // _ALIGNED) * _ALIGNED
        return Place(self._base, offset, 0, 1)

    def report(self, name: str, shape: tuple[int, ...], kind: Any = None) -> Place:
        """Return memory for a report, with a step from element to element of the first axis."""
        dtype = self.kind if kind is None else np.dtype(kind)
        size = prod(shape) * dtype.itemsize
        report = Report(self._room(size), shape, dtype)
        if name == "more":
            listed = self._reports.setdefault(name, [])
            assert isinstance(listed, list)
            listed.append(report)
        else:
            self._reports[name] = report
        step = prod(shape[1:]) * dtype.itemsize
        return Place(self._base, report.offset, step)

    def failures(self, count: int) -> Place:
        """Return where so many calls report failures.

        They are words of which functions may write half, set to 0 before.
        """
        place = self.report("failures", (count,), np.int64)
        return place.stepping(8)

    def look(self, rows: int, columns: int, count: int, *, lower: bool = False) -> None:
        """Look before whether matrices are finite: a product with ones shows what is not.

        Args:
            rows: Of each of the first input's matrices.
            columns: Of each.
            count: How many there are.
            lower: Whether only their lower triangles count.
        """
        given = self.input(0, rows * columns * self.size)
        ones = self.scratch(rows * self.size)
        # Matrices in C's order are the transposes of what Fortran sees.
        found = self.report("probes", (count, columns))
        before = self.before = Table(self.lapack, self.kind)
        before.call("laset", "A", rows, 1, 1.0, 1.0, ones, rows)
        before.border()
        over = (1.0, given, columns, ones, 1, 0.0, found, 1)
        if lower:
            before.call("symv", "U", columns, *over, times=count)
        else:
            before.call("gemv", "N", columns, rows, *over, times=count)

    # -- the end

    def plan(
        self, outputs: Sequence[tuple[int, ...]], flops: float, finish: Finish | None = None
    ) -> Plan:
        """Return the plan."""
        return Plan(
            outputs=tuple(outputs),
            dtype=self.kind,
            table=self.table.end(self._shared, self._own),
            before=None if self.before is None else self.before.end(self._shared, self._own),
            shared=self._shared,
            own=self._own,
            flops=int(flops),
            finish=finish,
            reports=self._reports,
        )


def letter_of(dtype: np.dtype[Any]) -> str | None:
    """Return the letter of a dtype, None where LAPACK is not called for it."""
    return LETTERS.get(dtype.name)
