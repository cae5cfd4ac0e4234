"""``python -m headrace tensorflow``: run a program with Headrace in the place of TensorFlow."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from headrace.errors import ConfigError, HeadraceError
from headrace_tensorflow.installing import install

_USAGE = """usage: python -m headrace tensorflow program.py [WORD ...]
       python -m headrace tensorflow -m module [WORD ...]

Run a program that imports tensorflow, with Headrace in its place. What follows the program's name
is the program's."""


def main(words: list[str]) -> int:
    """Run a program, or a module, as Python does, after it was said what ``tensorflow`` is.

    Args:
        words: What follows ``tensorflow`` on the command line.

    Returns:
        0, or 1 after an error of Headrace, if the program does not exit with a code itself.

    Raises:
        ConfigError: if no program is named or it is not there, or TensorFlow was imported already.
    """
    if words[:1] in (["-h"], ["--help"]):
        sys.stdout.write(f"{_USAGE}\n")
        return 0
    as_module = words[:1] == ["-m"]
    named = words[1:] if as_module else words
    if not named or (named[0].startswith("-") and not as_module):
        raise ConfigError(f"name a program, program.py, or a module, -m module\n{_USAGE}")
    if not as_module and not Path(named[0]).exists():
        raise ConfigError(f"there is no program {named[0]}")
    install()
    sys.argv = list(named)
    try:
        _run(named[0], as_module)
    except HeadraceError:
        # An error of the program, which is told as Python tells it.
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _run(name: str, as_module: bool) -> None:
    if as_module:
        sys.path.insert(0, "")
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        # As "python program.py" does it: what stands beside the program can be imported.
        sys.path.insert(0, str(Path(name).resolve().parent))
        runpy.run_path(name, run_name="__main__")
