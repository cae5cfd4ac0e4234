"""Explanations: what a step is going to do, as objects and as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from headrace.errors import HeadraceError, listing
from headrace.records import dataclass
from headrace.runtime.profiling.report import ProgramReport, Work, amount

if TYPE_CHECKING:
    from headrace.passes.rewrites import Rewrite


@dataclass(frozen=True, slots=True)
class Part:
    """What a step does at one go.

    Attributes:
        number: Names the part; the parts inside it are ``2.1``, or ``2.body.1`` in a loop.
        title: What it is.
        device: The device on which it runs.
        after: The numbers of the parts for which it waits.
        waits: Whether it may also wait for something outside the step.
        works: Its kernels, and the operations that run by themselves, in order.
        report: Memory and source of a compiled region, None for others.
        rewrites: What the simplifier did to its operations.
        line: The user's line that made its first operation.
        note: What is not known, and why.
        compiled: When and why it was compiled, and compiled again.
        inside: The parts of what it runs, such as the body of a loop.
        rounds: How the rounds of a loop run, and why not at one go.
    """

    number: str
    title: str
    device: str
    after: tuple[str, ...] = ()
    waits: bool = False
    works: tuple[Work, ...] = ()
    report: ProgramReport | None = None
    rewrites: tuple[Rewrite, ...] = ()
    line: str = ""
    note: str = ""
    compiled: tuple[str, ...] = ()
    inside: tuple[Part, ...] = ()
    rounds: str = ""

    @property
    def kernels(self) -> tuple[Work, ...]:
        """The kernels, each of which may compute several operations."""
        return tuple(work for work in self.works if work.fused)

    @property
    def plain(self) -> tuple[Work, ...]:
        """The operations that run by themselves."""
        return tuple(work for work in self.works if not work.fused)


@dataclass(frozen=True, slots=True)
class Placed:
    """Operations that are on a device for one reason.

    Attributes:
        device: The device.
        reason: Why they are there.
        operations: Their names.
    """

    device: str
    reason: str
    operations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Transfer:
    """A tensor that moves between devices, once in each step.

    Attributes:
        tensor: Its name.
        source: The device that sends it.
        destination: The device that receives it.
        dtype: The dtype as which it moves.
        bytes: How much moves; None where the shape is not known before the step runs.
    """

    tensor: str
    source: str
    destination: str
    dtype: str
    bytes: int | None

    @property
    def leaves_task(self) -> bool:
        """Whether it moves from one task to another."""
        return self.source.rpartition("/device")[0] != self.destination.rpartition("/device")[0]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a step is going to do; printing it shows that as text.

    Attributes:
        parts: What it does, in an order in which it can run.
        placement: Where its operations are, and why.
        feeds: The shapes of the feeds for which it is explained, by name; None where not known.
        remote: The other tasks that run parts of the step, which are not shown.
        whole: What passes of plugins did to the whole step, before it was placed.
        replaced: What plugins replace, on request, of the kernels and devices that it uses.
        transfers: What moves between devices, also of parts that other tasks run; without what
            moves in the rounds of loops.
    """

    parts: tuple[Part, ...]
    placement: tuple[Placed, ...] = ()
    feeds: Mapping[str, tuple[int, ...] | None] = field(default_factory=dict)
    remote: tuple[str, ...] = ()
    whole: tuple[Rewrite, ...] = ()
    replaced: tuple[str, ...] = ()
    transfers: tuple[Transfer, ...] = ()

    def walk(self) -> Iterator[Part]:
        """Yield all parts, each before those inside it."""
        stack = list(reversed(self.parts))
        while stack:
            part = stack.pop()
            yield part
            stack.extend(reversed(part.inside))

    @property
    def kernels(self) -> tuple[Work, ...]:
        """The kernels of all parts."""
        return tuple(work for part in self.walk() for work in part.kernels)

    @property
    def rewrites(self) -> tuple[Rewrite, ...]:
        """What the simplifier and the passes of plugins did, to the whole and in all parts."""
        return (*self.whole, *(rewrite for part in self.walk() for rewrite in part.rewrites))

    @property
    def flops(self) -> int:
        """Floating-point operations of all kernels; a loop's inside counts for one round."""
        return sum(work.flops or 0 for part in self.walk() for work in part.works)

    @property
    def bytes(self) -> int:
        """Bytes that all kernels and operations read and write, as far as they are known."""
        return sum(work.bytes for part in self.walk() for work in part.works)

    @property
    def transferred(self) -> int:
        """Bytes that move between tasks, as far as they are known."""
        return sum(move.bytes or 0 for move in self.transfers if move.leaves_task)

    def source(self) -> str:
        """Return the sources of all compiled regions, and of their kernels."""
        found = []
        for part in self.walk():
            if part.report is None:
                continue
            found.append(f"# part {part.number}: {part.title}\n{part.report.source}")
            found += [f"# {work.name}\n{work.source}\n" for work in part.kernels if work.source]
        return "\n".join(found)

    def memory_svg(self, *, width: float = 760.0) -> str:
        """Return a drawing of what lies where in the memory of each part, as SVG.

        Args:
            width: Of the drawing, in pixels.

        Raises:
            HeadraceError: if no part is known to need memory: none is compiled for known shapes.
        """
        # lazy: explanations are drawn when somebody looks
        from headrace.drawing.memory import to_svg

        reports = {
            f"part {part.number}: {part.title}": part.report
            for part in self.walk()
            if part.report is not None and part.report.buffers
        }
        if not reports:
            notes = [part.note for part in self.walk() if part.note and not part.inside]
            reason = notes[0] if notes else "nothing in it needs memory between its kernels"
            raise HeadraceError(f"no part of the step has an arena to draw: {reason}")
        return to_svg(reports, width=width)

    def __str__(self) -> str:
        lines = [self._head()]
        for placed in self.placement:
            count = len(placed.operations)
            few = "" if count > 4 else ": " + ", ".join(placed.operations)
            lines.append(
                f"  {count} operation{'s' if count != 1 else ''} on {placed.device}, "
                f"{placed.reason}{few}"
            )
        lines += _rewritten(self.whole, "  ")
        several = len({part.device for part in self.walk()}) > 1
        for part in self.parts:
            lines += _text(part, "", several)
        lines += _moves(self.transfers)
        lines += [f"replaced: {text}" for text in self.replaced]
        if self.remote:
            lines.append(f"further parts run on {', '.join(self.remote)} and are not shown")
        return "\n".join(lines)

    def _head(self) -> str:
        count = len(self.parts)
        shapes = ", ".join(
            f"{name} {list(shape) if shape is not None else 'of any shape'}"
            for name, shape in self.feeds.items()
        )
        parts = f"{count} part{'s' if count != 1 else ''}"
        moved = f"{amount(self.bytes, 'B')} read and written, {amount(self.flops, 'flop')}"
        return f"a step of {parts}, {moved}" + (f"; feeds {shapes}" if shapes else "")


def _moves(transfers: Sequence[Transfer]) -> list[str]:
    """Return a line for each pair of devices between which tensors move."""
    pairs: dict[tuple[str, str], list[Transfer]] = {}
    for move in transfers:
        pairs.setdefault((move.source, move.destination), []).append(move)
    lines = []
    for (source, destination), moves in pairs.items():
        unknown = sum(move.bytes is None for move in moves)
        size = amount(sum(move.bytes or 0 for move in moves), "B")
        more = f" and {unknown} of sizes that depend on data" if unknown else ""
        few = listing((f"{move.tensor} ({move.dtype})" for move in moves), 4)
        lines.append(f"moves {size}{more} from {source} to {destination}: {few}")
    return lines


def _text(part: Part, indent: str, several: bool) -> list[str]:
    waits = []
    if part.after:
        waits.append("after " + ", ".join(part.after))
    if part.waits:
        waits.append("waits for what is outside the step")
    tail = f" ({'; '.join(waits)})" if waits else ""
    where = f" on {part.device}" if several else ""
    lines = [f"{indent}part {part.number}: {part.title}{where}{tail}"]
    inner = indent + "  "
    if part.note:
        lines.append(f"{inner}{part.note}")
    if part.rounds:
        lines.append(f"{inner}{part.rounds}")
    lines += [inner + line for line in part.compiled]
    report = part.report
    if report is not None and (report.arena_bytes or report.result_bytes):
        lines.append(
            f"{inner}memory: arena {amount(report.arena_bytes, 'B')}, at its peak "
            f"{amount(report.peak_bytes, 'B')}; results {amount(report.result_bytes, 'B')}"
        )
    if report is not None:
        lines += [inner + line for line in _table(part.works, part.device)]
    lines += _rewritten(part.rewrites, inner)
    for inside in part.inside:
        lines += _text(inside, inner, several)
    return lines


def _table(works: Sequence[Work], device: str) -> list[str]:
    lines = []
    for work in works:
        types = work.types if work.device in (device, "") else f"{work.types} on {work.device}"
        flops = "-" if work.flops is None else amount(work.flops, "flop")
        name = work.name if work.fused else "plain"
        package = work.package or "-"
        lines.append(f"{name:<16} {amount(work.bytes, 'B'):>9} {flops:>11}  {package:<20}  {types}")
        lines.append(f"{'':<16}   at {'; '.join(_lines(work))}")
    return lines


def _lines(work: Work) -> list[str]:
    """Return the user's lines of a piece of work, the last with its text."""
    sites = list(dict.fromkeys(op.site for op in reversed(work.ops)))
    others = [f"{site.filename}:{site.line}" for site in sites[1:4]]
    more = [f"and {len(sites) - 4} more lines"] if len(sites) > 4 else []
    return [*map(str, sites[:1]), *others, *more]


def _rewritten(rewrites: Sequence[Rewrite], indent: str) -> list[str]:
    """Return a line for each rule: how often it applied, where first, and whose it is."""
    found: dict[tuple[str, str], tuple[int, Rewrite]] = {}
    for rewrite in rewrites:
        count, first = found.get((rewrite.rule, rewrite.plugin), (0, rewrite))
        found[rewrite.rule, rewrite.plugin] = (count + 1, first)
    lines = []
    for count, first in found.values():
        place = f", first {first.ops[0]!r}" if first.ops else ""
        by = f" by plugin {first.plugin!r}" if first.plugin else ""
        lines.append(f"{indent}rewritten: {count} x {first.rule}{by}{place}: {first.reason}")
    return lines
