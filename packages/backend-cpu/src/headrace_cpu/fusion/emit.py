"""The Python source of a fusion group's kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace_cpu.fusion.constants import BARRIER_WORD, COUNT_WORD, FIRST_WORD, THREAD_WORD
from headrace_cpu.fusion.layout import Layout
from headrace_cpu.fusion.loops import NestWriter
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
    for number, nest in enumerate(nests):
        body += NestWriter(writer, nest, number).write()
        if number + 1 < len(nests):
            body += ["if threads > 1:", f"    wait(word(block, {BARRIER_WORD}))"]
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
