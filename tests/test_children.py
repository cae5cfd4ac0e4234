"""What tests say of a process that does not end, or ends badly."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from tests import children
from tests.children import run_program, run_python
from tests.waiting import wait_until


def test_a_program_gets_its_arguments_flags_environment_and_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GONE", "1")
    monkeypatch.setenv("KEPT", "2")
    done = run_program(
        """
        import os, sys
        print(sys.argv, sys.warnoptions, os.getcwd())
        print(*(os.environ.get(name) for name in ("GONE", "KEPT", "NEW")), file=sys.stderr)
        """,
        tmp_path / "file",
        flags=("-W", "error"),
        env={"GONE": None, "NEW": "3"},
        cwd=tmp_path,
    )
    assert done.returncode == 0
    assert done.stdout == f"{['-c', str(tmp_path / 'file')]} ['error'] {tmp_path}\n"
    assert done.stderr == "None 2 3\n"


def test_files_and_modules_run(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys; print(__name__, sys.argv[1:])")
    for arguments in ([tmp_path / "program.py"], ["-m", "program"]):
        done = run_python(*arguments, "--flag", cwd=tmp_path)
        assert done.stdout == "__main__ ['--flag']\n"


def test_standard_input_is_empty() -> None:
    assert run_program("import sys; print(len(sys.stdin.read()))").stdout == "0\n"


def test_one_that_fails_shows_what_it_said() -> None:
    program = "print('so far')\nraise SystemExit('no further')"
    with pytest.raises(pytest.fail.Exception) as failure:
        run_program(program)
    assert str(failure.value) == (
        "child ended with status 1\n"
        "   1  print('so far')\n"
        "   2  raise SystemExit('no further')\n"
        "-- stdout\nso far\n\n"
        "-- stderr\nno further\n"
    )
    done = run_program(program, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (1, "so far\n", "no further\n")


def test_one_that_is_killed_fails() -> None:
    with pytest.raises(pytest.fail.Exception, match="child ended with status -9"):
        run_program("import os; os.kill(os.getpid(), 9)")


def overdue(program: str, *arguments: str, ready: str) -> str:
    """Return what is said of a program that had begun, for which a busy machine takes its time."""
    for timeout_s in (1.5, 6.0, 20.0):
        with pytest.raises(pytest.fail.Exception, match="did not end within") as failure:
            run_program(program, *arguments, timeout_s=timeout_s)
        said = str(failure.value)
        if re.search(ready, said):
            return said
    raise AssertionError(said)


def test_one_that_hangs_shows_the_lines_of_all_its_threads() -> None:
    said = overdue(
        """
        import threading, time
        def forever():
            while True:
                time.sleep(0.1)
        threading.Thread(target=forever, daemon=True).start()
        print("begun", flush=True)
        threading.Event().wait()
        """,
        ready="\nbegun\n",
    )
    assert said.startswith("child and its output did not end within ")
    assert "\n   5          time.sleep(0.1)\n" in said
    assert 'File "<string>", line 5 in forever' in said
    assert 'File "<string>", line 8 in <module>' in said


def test_one_that_takes_no_notice_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "_GRACE_S", 0.5)
    said = overdue(
        """
        import os, signal
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGABRT])
        print("begun:", os.getpid(), flush=True)
        while True:
            signal.sigwait([signal.SIGABRT])
        """,
        ready="begun: ([0-9]+)",
    )
    _wait_until_gone(_pid_in(said))


PARENT = """
import subprocess, sys
process = subprocess.Popen([sys.executable, "-c", sys.argv[1]])
"""
GRANDCHILD = """
import os, time
print("begun:", os.getpid(), flush=True)
time.sleep(1000)
"""


def _pid_in(said: str) -> int:
    return int(said.partition("\nbegun: ")[2].split()[0])


def _is_gone(pid: int) -> bool:
    """Whether a process is over, though its new parent may not have asked how it ended."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"


def _wait_until_gone(pid: int) -> None:
    wait_until(lambda: _is_gone(pid))


@pytest.mark.parametrize(
    ("ends", "told"),
    [
        ("", "child, which ended with status 0, and its output did not end"),
        ("process.wait()", "child and its output did not end"),
    ],
    ids=["over", "waiting"],
)
def test_a_grandchild_that_goes_on_shows_its_line_and_is_killed(ends: str, told: str) -> None:
    said = overdue(PARENT + ends, GRANDCHILD, ready="begun: ([0-9]+)")
    assert said.startswith(told)
    assert 'File "<string>", line 4 in <module>' in said
    assert (said.count('File "<string>", line 4 in <module>') == 2) == bool(ends)
    _wait_until_gone(_pid_in(said))


def test_a_grandchild_in_a_group_of_its_own_keeps_nothing_from_being_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(children, "_GRACE_S", 0.5)
    program = PARENT.replace("])", "], start_new_session=True)")
    said = overdue(program, GRANDCHILD, ready="begun: ([0-9]+)")
    assert said.startswith("child, which ended with status 0,")
    assert not _is_gone(_pid_in(said))
    os.kill(_pid_in(said), signal.SIGKILL)


class LateError(Exception):
    """What pytest raises in a test that takes too long, say."""


def test_what_interrupts_a_test_ends_its_child(tmp_path: Path) -> None:
    said = tmp_path / "pid"
    program = """
        import os, sys, time
        with open(sys.argv[1], "w") as file:
            file.write(f"{os.getpid()}.")
        time.sleep(1000)
    """

    def interrupt() -> None:
        while not (said.exists() and said.read_text().endswith(".")):
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGUSR1)

    def raise_late(*_: object) -> None:
        raise LateError

    before = signal.signal(signal.SIGUSR1, raise_late)
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(LateError) as late:
            run_program(program, said)
    finally:
        signal.signal(signal.SIGUSR1, before)
        thread.join()
    assert 'File "<string>", line 5 in <module>' in "".join(late.value.__notes__)
    _wait_until_gone(int(said.read_text()[:-1]))


def test_output_that_fills_the_pipe_is_read() -> None:
    done = run_program("import sys; print('a' * 10**6); print('b' * 10**6, file=sys.stderr)")
    assert (len(done.stdout), len(done.stderr)) == (10**6 + 1, 10**6 + 1)
    assert done.args[0] == sys.executable
