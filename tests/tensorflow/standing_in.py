"""Runs a program in a process of its own, with Headrace in the place of TensorFlow."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

from tests.children import run_python


def run(
    folder: Path, program: str, *words: str, installing: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a program, by the command, or by itself after it has installed the names."""
    path = folder / "program.py"
    text = textwrap.dedent(program)
    if installing:
        text = f"import headrace.tensorflow\nheadrace.tensorflow.install()\n{text}"
    path.write_text(text)
    command = [] if installing else ["-m", "headrace", "tensorflow"]
    return run_python(*command, path, *words, check=False)


def printed(folder: Path, program: str, *words: str, installing: bool = False) -> list[str]:
    """Return the lines that a program prints that must end well."""
    done = run(folder, program, *words, installing=installing)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()
