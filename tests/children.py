"""Python programs in processes of their own, which say where they are when they do not end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# How long what is told to end has for it. Three times that, and how long a program may take, stay
# within the minute that pytest gives a test.
_GRACE_S = 2.5


def run_program(
    program: str,
    *arguments: object,
    flags: Sequence[str] = (),
    env: Mapping[str, str | None] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout_s: float = 50.0,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run the text of a program, as ``run_python`` does.

    Args:
        program: The text; what all its lines are indented by is left out.
        *arguments: What it finds behind the first of ``sys.argv``, as ``str`` writes them.
        flags: Those of the interpreter.
        env, cwd, timeout_s, check: As there.
    """
    __tracebackhide__ = True
    text = textwrap.dedent(program)
    lines = enumerate(text.splitlines(), 1)
    shown = "\n".join(f"{number:4}  {line}".rstrip() for number, line in lines)
    return _run([*flags, "-c", text, *arguments], shown, env, cwd, timeout_s, check)


def run_python(
    *arguments: object,
    env: Mapping[str, str | None] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    timeout_s: float = 50.0,
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run Python, and wait for the end of the process and of all that share its output.

    The test fails where that takes too long, and shows the stacks of all threads of the process,
    and of those that it has started.

    Args:
        *arguments: Those of the interpreter, as ``str`` writes them: a file, or ``-m`` and a
            module, and what they take.
        env: What is different in the environment; None takes a variable away.
        cwd: The folder that the process starts in.
        timeout_s: How long it may take; more than 50 s is for tests that have more than a minute.
        check: Whether the test fails where the exit status is not 0.
    """
    __tracebackhide__ = True
    return _run(arguments, " ".join(map(str, arguments)), env, cwd, timeout_s, check)


def started_by(pid: int) -> list[int]:
    """Return the processes that a process has started and that are there."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        # Those that have just ended have no parent to look at.
        with contextlib.suppress(OSError):
            if int(file.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(file.parent.name))
    return found


def _run(
    arguments: Sequence[object],
    shown: str,
    env: Mapping[str, str | None] | None,
    cwd: str | os.PathLike[str] | None,
    timeout_s: float,
    check: bool,
) -> subprocess.CompletedProcess[str]:
    __tracebackhide__ = True
    environment = {**os.environ, "PYTHONFAULTHANDLER": "1", **(env or {})}
    ended, told = False, ""
    with subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        env={name: value for name, value in environment.items() if value is not None},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as child:
        try:
            out, err = child.communicate(timeout=timeout_s)
            ended = True
        except BaseException as reason:
            late = isinstance(reason, subprocess.TimeoutExpired)
            # It may be over while what it has started goes on.
            over = "" if child.poll() is None else f", which ended with status {child.returncode},"
            what = f"child{over} and its output did not end"
            told = _told(f"{what} within {timeout_s:g} s" if late else what, shown, *_abort(child))
            if not late:
                # Such as what pytest raises in a test that takes too long.
                reason.add_note(told)
                raise
        finally:
            if not ended:
                _signal_group(child, signal.SIGKILL)
    if not ended:
        pytest.fail(told)
    if check and child.returncode != 0:
        pytest.fail(_told(f"child ended with status {child.returncode}", shown, out, err))
    return subprocess.CompletedProcess(child.args, child.returncode, out, err)


def _abort(child: subprocess.Popen[str]) -> tuple[str, str]:
    """Let Python processes write their stacks and end; return all that was written.

    The child comes first: two processes that write at once could be read by nobody.
    """
    written: tuple[bytes | None, bytes | None] = (None, None)
    for whom, number in (
        (child.send_signal, signal.SIGABRT),
        (partial(_signal_group, child), signal.SIGABRT),
        (partial(_signal_group, child), signal.SIGKILL),
    ):
        whom(number)
        try:
            return child.communicate(timeout=_GRACE_S)
        except subprocess.TimeoutExpired as late:
            # Bytes, whatever the process was opened with.
            written = (late.output, late.stderr)
    # A process that left the group, as a daemon does, holds the output.
    out, err = ((part or b"").decode(errors="backslashreplace") for part in written)
    return out, err


def _signal_group(child: subprocess.Popen[str], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def _told(what: str, shown: str, out: str, err: str) -> str:
    return f"{what}\n{shown}\n-- stdout\n{out}\n-- stderr\n{err}"
