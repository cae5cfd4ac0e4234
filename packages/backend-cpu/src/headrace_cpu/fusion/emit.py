"""The Python source of a fusion group's kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace_cpu.fusion.constants import BARRIER_WORD, COUNT_WORD, FIRST_WORD, THREAD_WORD
from headrace_cpu.fusion.layout import Layout
from headrace_cpu.fusion.loops import NestWriter, shared_rows
from headrace_cpu.fusion.schedule import Schedule
from headrace_cpu.fusion.space import Value
from headrace_cpu.fusion.writer import Writer


@dataclass(slots=True, eq=False)
class Kernel:
    """A generated kernel.

    Attributes:
        text: Its source.
        layout: Its block.
        loads: What it loads, and in which nest and phase.
    """

    text: str
    layout: Layout
    loads: list[tuple[int, int, Value]] = field(default_factory=list)


def write_kernel(schedule: Schedule, name: str) -> Kernel:
    """Return the kernel of a schedule: a function ``name(block)``, one nest after the other."""
    writer = Writer(schedule)
    nests = schedule.nests
    body: list[str] = []
    first = 0
    while first < len(nests):
        last = first + 1
        while first in schedule.bands and schedule.bands.get(last) == first:
            last += 1
        written = [NestWriter(writer, nests[i], i).write() for i in range(first, last)]
        body += written[0] if len(written) == 1 else _band(writer, nests[first].dims[0], written)
        if last < len(nests):
            body += ["if threads > 1:", f"    wait(word(block, {BARRIER_WORD}))"]
        first = last
    head = [f"{text} = {value}" for value, text in writer.header.items()]
    words = [
        f"{word} = word(block, {FIRST_WORD + i})" for i, word in enumerate(writer.layout.names)
    ]
    threads = [
        "threads = 1",
        "thread = 0",
        f"if word(block, {COUNT_WORD}) != 0:",
        f"    threads = ask(word(block, {COUNT_WORD}))",
        f"    thread = ask(word(block, {THREAD_WORD}))",
    ]
    lines = [*words, *threads, *writer.lines, *body]
    text = "\n".join([*head, "", "", f"def {name}(block):", *("    " + x for x in lines), ""])
    return Kernel(text.lstrip("\n"), writer.layout, writer.loads)


def _band(writer: Writer, dim: int, nests: list[list[str]]) -> list[str]:
    """Return the loop over the steps of a band: for each of them one nest after the other."""
    return [
        *shared_rows(writer.size(dim)),
        "for turn in range(first, last):",
        f"    i{dim} = turn",
        *("    " + line for lines in nests for line in lines),
    ]
