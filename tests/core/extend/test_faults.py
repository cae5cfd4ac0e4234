"""Faults that the environment injects, through the public door."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from headrace.errors import ConfigError
from headrace.extend.faults import Fault, parse_faults
from tests.children import run_program
from tests.waiting import wait_until

PROGRAM = """
import sys, time
from headrace.extend.faults import fault_point, has_faults, is_muted, name_process
fault_point("save")
name_process("rank:3")
name_process("worker:1")
begin = time.monotonic()
for number in range(1, 4):
    try:
        fault_point("save")
        fault_point("elsewhere")
    except BaseException as error:
        print(number, type(error).__name__, flush=True)
    if is_muted():
        print(number, "muted", flush=True)
print("end", has_faults(), time.monotonic() - begin > 0.2, flush=True)
"""


def test_faults_are_read() -> None:
    assert parse_faults(" worker:1 transfer kill 10; rank:0 save exit=3;;ps:0 run delay=0.5 ") == [
        Fault("worker:1", "transfer", "kill", 10),
        Fault("rank:0", "save", "exit", code=3),
        Fault("ps:0", "run", "delay", seconds=0.5),
    ]
    assert parse_faults("") == []


@pytest.mark.parametrize(
    "said", ["worker:1 save", "worker save kill", "w:1 save explode", "w:1 save kill 0", "w:1"]
)
def test_what_is_no_fault_is_refused(said: str) -> None:
    with pytest.raises(ConfigError, match="HEADRACE_FAULTS must list faults as PROCESS POINT"):
        parse_faults(said)


@pytest.mark.parametrize(
    ("said", "code", "out"),
    [
        ("", 0, ["end False False"]),
        ("worker:2 save kill", 0, ["end False False"]),
        ("worker:1 save raise 2", 0, ["2 InjectedFaultError", "end True False"]),
        ("rank:3 save memory 3", 0, ["3 MemoryError", "end True False"]),
        ("worker:1 elsewhere delay=0.3", 0, ["end True True"]),
        ("worker:1 save mute 2", 0, ["2 muted", "3 muted", "end True False"]),
        ("worker:1 save exit=5 2; rank:3 save raise", 5, ["1 InjectedFaultError"]),
        ("worker:1 save kill", -signal.SIGKILL, []),
    ],
)
def test_a_process_fails_at_its_point(said: str, code: int, out: list[str]) -> None:
    done = run_program(PROGRAM, env={"HEADRACE_FAULTS": said}, check=False)
    assert (done.returncode, done.stdout.splitlines()) == (code, out), done.stderr


def test_a_process_is_stopped() -> None:
    environ = {**os.environ, "HEADRACE_FAULTS": "rank:3 save stop"}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        flags = os.WUNTRACED | os.WNOHANG
        wait_until(lambda: os.WIFSTOPPED(os.waitpid(child.pid, flags)[1]), within_s=60.0)
        child.send_signal(signal.SIGCONT)
        assert child.wait(60) == 0
