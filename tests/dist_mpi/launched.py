"""Jobs that ``python -m headrace run`` starts, with their output in files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.mpi_environment import AS_ROOT


class Launched(NamedTuple):
    """A job that was started, and the files of its output."""

    process: subprocess.Popen[bytes]
    folder: Path

    def end(self, timeout_s: float = 60.0) -> int:
        try:
            return self.process.wait(timeout_s)
        finally:
            if self.process.poll() is None:
                self.process.terminate()
                self.process.wait(20)

    @property
    def out(self) -> list[str]:
        return (self.folder / "out").read_text().splitlines()

    @property
    def err(self) -> str:
        return (self.folder / "err").read_text()


def launch(folder: Path, program: str, *options: str, words: tuple[str, ...] = ()) -> Launched:
    """Start a program's source with ``run``."""
    (folder / "program.py").write_text(program)
    environ = {
        **os.environ,
        **AS_ROOT,
        "HEADRACE_START_TIMEOUT": "30",
    }
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace", "run", *options, str(folder / "program.py"), *words],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
    return Launched(process, folder)
