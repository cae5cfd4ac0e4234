"""Hints of profiles: which part to look at first, and what makes it quicker."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.runtime.profiling.profile_row import ProfileRow
from headrace.runtime.profiling.report import amount, duration

# From here on a kernel is as quick as what bounds it.
_BOUND = 0.6
# A share of the steps' time that is worth a word, for what is between kernels.
_BETWEEN = 0.4
# Calls that are shorter than this, in seconds, take longer to make than to compute.
_SHORT = 5e-6
# Functions that take tens of operations for each element, of which one is counted.
_ELEMENTARY = (
    "Exp", "Expm1", "Log", "Log1p", "Pow", "Sin", "Cos", "Tan", "Tanh", "Sinh", "Cosh", "Sigmoid",
    "Softplus", "Softmax", "LogSoftmax", "Erf", "Erfc", "Lgamma", "Digamma", "Atan", "Atan2",
)  # fmt: skip


def hints(steps: int, step_seconds: float, kernels: Sequence[ProfileRow]) -> tuple[str, ...]:
    """Return a line about the slowest kernel, and one about what is between kernels.

    Args:
        steps: How many steps ran.
        step_seconds: How long they took together.
        kernels: What ran in them, the longest first.
    """
    found = []
    busy = sum(row.seconds for row in kernels)
    if step_seconds > 0 and 1 - busy / step_seconds > _BETWEEN:
        found.append(_between(steps, step_seconds, busy))
    if kernels:
        found.append(f"slowest: {_named(kernels[0])}: {_why(kernels[0])}")
    return tuple(found)


def _between(steps: int, step_seconds: float, busy: float) -> str:
    part, mean = 1 - busy / step_seconds, duration(step_seconds / steps)
    return (
        f"{part:.0%} of the time of a step ({mean}) passes between kernels: the first steps "
        "compile; later ones check feeds, and hand values from kernel to kernel. Larger batches, "
        "session.make_callable, or several steps in one hr.while_loop make it less"
    )


def _named(row: ProfileRow) -> str:
    name = row.name if row.computes in ("", row.name) else f"{row.name} ({row.computes})"
    place = f" at {row.line}" if row.line else ""
    return f"{name}{place}, {row.share:.0%} of the time of kernels"


def _why(row: ProfileRow) -> str:
    """Say what bounds a kernel, and what makes it quicker."""
    if row.waits:
        return (
            "it waits. Let what it waits for be quicker or earlier: more threads that fill the "
            "queue, a prefetch, a larger capacity; or, for another task, less to send"
        )
    if row.mean < _SHORT:
        return (
            f"{row.calls} calls of {duration(row.mean)}: each takes longer to make than to "
            "compute. Larger batches, or a loop that is written as operations on whole arrays"
        )
    part = row.of_limit
    if part is None:
        return "what it moves and computes is not counted"
    if part >= _BOUND:
        return f"at {part:.0%} of the machine's limit, {_bound(row)}"
    return f"at {part:.0%} of the machine's limit; {_below(row)}"


def _bound(row: ProfileRow) -> str:
    if row.memory_bound:
        return (
            f"moving {amount(row.bytes / row.calls, 'B')} a call. Fewer bytes make it quicker: "
            "fewer rows, a smaller dtype, or neighbours that fuse with it"
        )
    return (
        f"computing {amount((row.flops or 0) / row.calls, 'flop')} a call. Only less to compute, "
        "or more cores, make it quicker"
    )


def _below(row: ProfileRow) -> str:
    if not row.compiled:
        return (
            "it runs by itself, in its plain kernel. `python -m headrace ops` tells which kernels "
            "there are; operations that compile fuse with their neighbours"
        )
    types = {word.rpartition(" ")[2] for word in row.computes.split(", ")}
    elementary = sorted(types.intersection(_ELEMENTARY))
    if elementary:
        return (
            f"{', '.join(elementary)} takes tens of operations for each element. float32 is "
            "computed at twice the speed of float64, and what is the same in each step once, "
            "outside of it"
        )
    return (
        "it is too small for all threads, or reads its memory in leaps: larger batches, or a "
        "layout in which the last dimension is the one that is read in order"
    )
