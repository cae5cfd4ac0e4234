"""Runs the programs of the catalogue, and writes down what is told of their mistakes.

``python -m tests.mistakes.told --write`` writes the errors of all, for a person to read.
"""

from __future__ import annotations

import contextlib
import io
import linecache
import os
import shlex
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import headrace as hr
from headrace import tracebacks
from headrace.cli.main import main

from .mistake_files import Mistake, mistakes

# A machine that has other devices, plugins or settings tells the same.
_MARKERS = frozenset(" ~^")


class NotRefusedError(Exception):
    """A program that ran to its end."""


def told(mistake: Mistake) -> tuple[str, list[FrameType]]:
    """Run a program in this process, in the working directory, in a graph of its own.

    Returns:
        What Python writes when it ends, without the marks below its lines, which differ between
        versions of Python; and the frames on the way from the program to what refused it.

    Raises:
        NotRefusedError: if it runs to its end.
    """
    frames: list[FrameType]
    environment = dict(os.environ)
    os.environ["HEADRACE_TRACEBACK"] = ""
    try:
        if mistake.path.suffix == ".sh":
            text, frames = _told_by_command(mistake.program), []
        else:
            text, frames = _told_by_program(mistake)
        # Where the program happens to run.
        return text.replace(str(Path.cwd()), "/home/user"), frames
    finally:
        os.environ.clear()
        os.environ.update(environment)


def _told_by_command(program: str) -> str:
    words = shlex.split(program)
    if words[:3] != ["python", "-m", "headrace"]:
        raise ValueError(f"expected a command of Headrace, got {program}")
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            code: Any = main(words[3:])
        except SystemExit as end:
            code = end.code
    if code == 0:
        raise NotRefusedError(program)
    return said.getvalue()


def _told_by_program(mistake: Mistake) -> tuple[str, list[FrameType]]:
    file = mistake.path.name
    program = mistake.program
    linecache.cache[file] = (len(program), None, program.splitlines(keepends=True), file)
    code = compile(program, file, "exec")
    space: dict[str, Any] = {"__name__": "__main__"}
    try:
        with hr.Graph().as_default(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(code, space)
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code is not code:
            trace = trace.tb_next
        frames = [frame for frame, _ in traceback.walk_tb(trace)]
        folded = tracebacks.fold(error.with_traceback(trace))
        lines = "".join(traceback.format_exception(error)).splitlines()
        kept = [line for line in lines if not line or set(line) - _MARKERS]
        return "\n".join([*kept, *[tracebacks.HINT.strip()] * folded]) + "\n", frames
    raise NotRefusedError(mistake.name)


def write() -> None:
    """Write the errors of all mistakes into the files beside them."""
    here = Path.cwd()
    for mistake in mistakes():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                text, _ = told(mistake)
            finally:
                os.chdir(here)
        mistake.golden.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit(__doc__)
    write()
