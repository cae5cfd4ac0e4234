"""What the compiler makes of the cases, in numbers that do not depend on how busy a machine is.

``python -m benchmarks.suite.counts`` compares with the committed table, and exits with 1 where a
case needs more kernels, more operations outside of kernels, or more bytes; ``--write`` renews the
table. Nothing runs: ``Session.explain`` tells.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import headrace as hr
from benchmarks.suite import dataflow
from benchmarks.suite.case import Case
from benchmarks.suite.cases import all_cases

TABLE = Path(__file__).with_name("counts.txt")
# Sizes of buffers may change by alignment; a lost fusion moves far more.
BYTES_TOLERANCE = 0.02
# Explaining this one takes longer than all others together; its chains differ in constants only.
LEFT_OUT = ("ten-thousand-nodes",)


@dataclass(frozen=True)
class Counts:
    """What one step of a case needs; a loop counts for one round.

    Attributes:
        kernels: compiled kernels.
        plain: operations that run by themselves.
        bytes: bytes that all of them read and write, as far as they are known.
    """

    kernels: int
    plain: int
    bytes: int


def count(case: Case) -> Counts:
    """Explain one step of a case on a session of two threads without oneDNN."""
    graph = hr.Graph()
    with graph.as_default():
        built = dataflow.build(hr, case, case.first_state())
        # Not every installation has oneDNN, and the counts are the same for all.
        with hr.Session(config=hr.Config(threads=2, onednn=False)) as session:
            feed = {built.inputs[name]: value for name, value in case.feeds()[0].items()}
            explained = session.explain(built.step, feed)
    plain = sum(len(part.plain) for part in explained.walk())
    return Counts(len(explained.kernels), plain, explained.bytes)


def counted() -> list[str]:
    """Return the names of the cases that the table has."""
    return [name for name in all_cases() if name not in LEFT_OUT]


def read(text: str) -> dict[str, Counts]:
    """Read a table: a name and three numbers a line, after the head."""
    found = {}
    for line in text.splitlines()[1:]:
        name, *numbers = line.split()
        found[name] = Counts(*map(int, numbers))
    return found


def write(table: Mapping[str, Counts]) -> str:
    """Write a table."""
    lines = [f"{'case':24}{'kernels':>8}{'plain':>8}{'bytes':>14}"]
    lines += [f"{n:24}{c.kernels:8}{c.plain:8}{c.bytes:14}" for n, c in table.items()]
    return "\n".join(lines) + "\n"


def worse(name: str, before: Counts | None, now: Counts) -> str:
    """Say what a case needs more of than before; "" if nothing."""
    how = "renew the table with: python -m benchmarks.suite.counts --write"
    if before is None:
        return f"case {name!r} is not in the table; {how}"
    most = before.bytes * (1 + BYTES_TOLERANCE)
    pairs = (
        ("kernels", before.kernels, now.kernels, now.kernels > before.kernels),
        ("operations outside of kernels", before.plain, now.plain, now.plain > before.plain),
        ("bytes", before.bytes, now.bytes, now.bytes > most),
    )
    more = [f"{new} {what}, was {old}" for what, old, new, grown in pairs if grown]
    if not more:
        return ""
    return f"case {name!r} needs {'; '.join(more)}: see Session.explain, or, if meant, {how}"


def compare(before: Mapping[str, Counts], names: Iterable[str]) -> list[str]:
    """Count cases again, and say which need more than before."""
    said = [worse(name, before.get(name), count(all_cases()[name])) for name in names]
    return [line for line in said if line]


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare with the table, or write it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.suite.counts", description=__doc__)
    parser.add_argument("--write", action="store_true", help="renew the table")
    if parser.parse_args(arguments).write:
        table = {name: count(all_cases()[name]) for name in counted()}
        TABLE.write_text(write(table), encoding="utf-8")
        return 0
    found = compare(read(TABLE.read_text(encoding="utf-8")), counted())
    sys.stdout.write("".join(f"{line}\n" for line in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
