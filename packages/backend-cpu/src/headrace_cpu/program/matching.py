"""Matching: the implementations that a table lists take the operations of a region.

A matcher stands for one implementation. In the order of their priorities, each is shown the
operations that nobody has taken, and makes an instruction of those that it computes best, often
with operations around them.

A generated kernel takes a tenth to a third of a second to compile, and may not compile at all. So
its matcher names fallbacks: other implementations, of which the first that can compute the
operation does so until the kernel is compiled, and where it cannot be. What none of them can
compute is not matched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable
from enum import Enum

from headrace import Operation
from headrace.extend.records import dataclass
from headrace_cpu.matmul.blas import loaded_blas
from headrace_cpu.native.assembly import vector_bytes
from headrace_cpu.native.threads import open_mp
from headrace_cpu.onednn.library import load
from headrace_cpu.program.implementation import Implementation
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.settings import CompileSettings


class Need(Enum):
    """What an implementation needs besides the operation."""

    THREADS = "OpenMP's threads"
    VECTORS = "vectors of at least 32 bytes"
    BLAS = "a BLAS that can be called by its address"
    ONEDNN = "oneDNN, where it is installed and wanted"

    def met(self, settings: CompileSettings) -> bool:
        """Whether it is there; oneDNN is loaded to find out."""
        if self is Need.THREADS:
            return open_mp() is not None
        if self is Need.VECTORS:
            return vector_bytes() >= 32
        if self is Need.BLAS:
            return loaded_blas() is not None
        return settings.onednn and load() is not None


@dataclass(frozen=True, slots=True)
class Candidate:
    """An operation that a matcher may take.

    Attributes:
        matches: The region, and what is taken of it.
        op: The operation: nobody has taken it.
        settings: What the session asks for.
        fallback: What computes it, perhaps with others around it, until the matcher's own kernel is
            compiled; None for a matcher that declares no fallback.
    """

    matches: Matches
    op: Operation
    settings: CompileSettings
    fallback: Implementation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """A kind of implementation, as the table lists it.

    Attributes:
        name: What it is called.
        priority: Those of higher priority choose first.
        types: The types of the operations that it may want; None for any.
        wants: Whether it would compute an operation, told from types and shapes, before anything
            that it needs is loaded.
        make: Makes the instruction; None where it cannot, or where others are quicker.
        needs: What must be there.
        fallback: The names of the matchers that make the fallback, the best one first. The
            instruction made must compute the same operations as its fallback.
    """

    name: str
    priority: int
    wants: Callable[[Candidate], bool]
    make: Callable[[Candidate], Implementation | None]
    types: Collection[str] | None = None
    needs: tuple[Need, ...] = ()
    fallback: tuple[str, ...] = ()


def match(
    matches: Matches,
    settings: CompileSettings,
    matchers: Iterable[Matcher],
    only: Container[str] | None = None,
) -> None:
    """Let matchers take operations of a region.

    Args:
        matches: The region; gets the instructions.
        settings: What the session asks for.
        matchers: The table, with those that are fallbacks of others.
        only: The names of those that may choose, None for all of them; the others are fallbacks.
    """
    table = {matcher.name: matcher for matcher in matchers}
    every = {t for m in table.values() if m.types is not None for t in m.types}
    of_type: dict[str, list[Operation]] = {}
    place = {op: i for i, op in enumerate(matches.operations) if op.type in every}
    for op in place:
        of_type.setdefault(op.type, []).append(op)
    for matcher in sorted(table.values(), key=lambda m: -m.priority):
        if only is not None and matcher.name not in only:
            continue
        candidates: Iterable[Operation] = matches.operations
        if matcher.types is not None:
            listed = [op for t in sorted(matcher.types) for op in of_type.get(t, ())]
            candidates = sorted(listed, key=place.__getitem__)
        for op in candidates:
            if not matches.free(op) or not matcher.wants(Candidate(matches, op, settings)):
                continue
            if not _met(matcher, settings):
                break
            instruction = _made(matcher, Candidate(matches, op, settings), table)
            if instruction is not None:
                matches.add(instruction)


def _met(matcher: Matcher, settings: CompileSettings) -> bool:
    return all(need.met(settings) for need in matcher.needs)


def _made(
    matcher: Matcher, candidate: Candidate, table: dict[str, Matcher]
) -> Implementation | None:
    """Return a matcher's instruction for an operation that it wants, None where it has none."""
    if not matcher.fallback:
        return matcher.make(candidate)
    for name in matcher.fallback:
        other = table[name]
        if not other.wants(candidate) or not _met(other, candidate.settings):
            continue
        fallback = _made(other, candidate, table)
        if fallback is not None:
            found = Candidate(candidate.matches, candidate.op, candidate.settings, fallback)
            return matcher.make(found)
    return None
