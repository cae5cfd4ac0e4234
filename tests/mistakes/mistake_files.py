"""Reads the catalogue of mistakes: programs, and beside each the error that it ends with.

A program's first line says what is mistaken. The next say when it is refused, and what its error
must contain: what was got, what was expected, and what to do.

``refused:`` is ``building`` where nothing but the program decides that it is mistaken: it must be
refused before a step runs. Otherwise it is ``step``, with the reason why it is not known earlier,
or ``command`` for words of the command line. The line of the program that the error must name ends
in ``# the mistake``.

This module imports nothing of Headrace: the documentation is made with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent
FIELDS = ("refused", "got", "expected", "fix")
MARK = "  # the mistake"
WHEN = ("building", "step", "command")


@dataclass(frozen=True)
class Mistake:
    """A program that is mistaken.

    Attributes:
        path: Its file.
        title: What is mistaken, in a sentence.
        refused: When it is refused: one of ``WHEN``.
        reason: Why it is not refused before a step runs; empty where it is.
        says: What its error must contain, by field.
        program: The program, without the lines that tell all this.
    """

    path: Path
    title: str
    refused: str
    reason: str
    says: dict[str, str]
    program: str

    @property
    def part(self) -> str:
        """The part of Headrace that the mistake is about."""
        return self.path.parent.name

    @property
    def name(self) -> str:
        """The part and the name of the file."""
        return f"{self.part}/{self.path.stem}"

    @property
    def line(self) -> int:
        """The number of the mistaken line, 0 of a command."""
        lines = self.program.splitlines()
        return next((i for i, text in enumerate(lines, 1) if text.endswith(MARK)), 0)

    @property
    def golden(self) -> Path:
        """The file of the error in full."""
        return self.path.with_suffix(".txt")


def read(path: Path) -> Mistake:
    """Read a program.

    Raises:
        ValueError: if its first lines are not in the form.
    """
    head, _, program = path.read_text(encoding="utf-8").partition("\n\n")
    title, *lines = [line.removeprefix("# ") for line in head.splitlines()]
    says = dict(line.split(": ", 1) for line in lines)
    if tuple(says) != FIELDS or not title.endswith("."):
        raise ValueError(f"{path}: expected a sentence and then {FIELDS}, got {head}")
    refused, _, reason = says.pop("refused").partition(": ")
    return Mistake(path, title, refused, reason, says, program)


def mistakes() -> Iterator[Mistake]:
    """Yield all mistakes, sorted by part and name."""
    for path in sorted(FOLDER.glob("*/*")):
        if path.suffix in (".py", ".sh"):
            yield read(path)


def page() -> str:
    """Return the catalogue as Markdown, with a heading for each part."""
    text = []
    part = ""
    for mistake in mistakes():
        if mistake.part != part:
            part = mistake.part
            text.append(f"## {part.replace('_', ' ').capitalize()}")
        language = "python" if mistake.path.suffix == ".py" else "sh"
        text += [
            f"**{mistake.title}**",
            f"```{language}\n{mistake.program.strip()}\n```",
            f"```text\n{mistake.golden.read_text(encoding='utf-8').strip()}\n```",
        ]
    return "\n\n".join(text)
