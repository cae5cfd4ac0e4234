"""One rank's failure ends the job: in seconds, with one traceback, and with nothing left over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.dist_mpi.conftest import RunProgram

pytestmark = pytest.mark.needs("mpi")

# The other ranks wait for a message that never comes, as those of a failed job do.
WAIT = """
transport.start()
world.comm.Barrier()
def wait_for_ever():
    transport.wait(Wakeup(), 60)
"""


@pytest.mark.parametrize("as_module", [False, True], ids=["script", "module"])
def test_an_exception_ends_the_job_with_one_traceback(
    run_program: RunProgram, *, as_module: bool
) -> None:
    done = run_program(
        3,
        WAIT
        + """
def work():
    raise ValueError("the model is wrong")
if world.rank == 1:
    work()
wait_for_ever()
""",
        as_module=as_module,
    )
    assert done.code == 1, done
    assert done.seconds < 10
    assert done.err.count("Traceback (most recent call last)") == 1
    assert "headrace: rank 1 of 3 (host " in done.err
    assert "[rank 1] ValueError: the model is wrong" in done.err
    assert "[rank 0]" not in done.err
    assert "[rank 2]" not in done.err


MISTAKES = {
    "building": "hr.matmul(hr.zeros([2, 3]), hr.zeros([2, 3]))",
    "in a branch": "hr.cond(hr.constant(True), lambda: hr.zeros([3]) + hr.zeros([2]), lambda: 1.0)",
    "by name": "hr.get_default_graph().get_tensor_by_name('nothing:0')",
    "configuring": "hr.Config(executor='fast')",
    "joining": "hr.concat([hr.zeros([2, 3]), hr.zeros([2])], 0)",
    "in a function": "hr.function(lambda x: hr.matmul(x, x))(hr.zeros([2, 3]))",
}


@pytest.mark.parametrize(
    "name",
    [
        next(iter(MISTAKES)),
        # A job each.
        *(pytest.param(name, marks=pytest.mark.slow) for name in list(MISTAKES)[1:]),
    ],
)
def test_a_mistake_on_a_rank_shows_the_programs_frames_alone(
    run_program: RunProgram, name: str
) -> None:
    mistake = f"import headrace as hr\nif world.rank == 1:\n    {MISTAKES[name]}\n"
    done = run_program(2, WAIT + mistake + "wait_for_ever()\n")
    assert done.code == 1, done
    frames = [line for line in done.err.splitlines() if line.startswith("[rank 1]   File ")]
    assert frames, done
    assert not [line for line in frames if "/headrace/" in line or "/headrace_mpi/" in line], done
    assert done.err.count("Traceback") == 1


def test_an_exception_in_another_thread_ends_the_job(run_program: RunProgram) -> None:
    done = run_program(
        2,
        WAIT
        + """
def work():
    raise ValueError("wrong in the background")
if world.rank == 0:
    threading.Thread(target=work, name="loader").start()
wait_for_ever()
""",
    )
    assert done.code == 1, done
    assert done.seconds < 10
    assert done.err.count("Traceback") == 1
    assert "failed in thread loader" in done.err
    assert "[rank 0] ValueError: wrong in the background" in done.err


def test_the_same_mistake_on_all_ranks_is_told_once(run_program: RunProgram) -> None:
    done = run_program(4, WAIT + "raise ValueError('a mistake in the program')\n")
    assert done.code == 1, done
    assert done.err.count("Traceback") == 1
    assert done.err.count("ValueError: a mistake in the program") == 1


def test_a_rank_that_fails_because_another_did_says_nothing(run_program: RunProgram) -> None:
    # The launcher ends the other ranks with SIGTERM; here it makes one raise an error of its own,
    # when the rank that failed first is gone, and with it all that it held.
    done = run_program(
        2,
        WAIT
        + """
import contextlib, os, signal
from pathlib import Path
first = world.comm.bcast(os.getpid())
def interrupted(number, frame):
    with contextlib.suppress(OSError):
        while Path(f"/proc/{first}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.001)
    raise RuntimeError("ended by a signal")
if world.rank == 1:
    signal.signal(signal.SIGTERM, interrupted)
world.comm.Barrier()
if world.rank == 0:
    raise ValueError("the model is wrong")
wait_for_ever()
""",
    )
    assert done.code == 1, done
    assert done.err.count("Traceback") == 1
    assert "[rank 0] ValueError: the model is wrong" in done.err


def test_a_rank_that_leaves_when_another_is_missing_still_says_so(run_program: RunProgram) -> None:
    done = run_program(
        2,
        """
# As if a third had been killed, and the launcher had not noticed.
world.hooks._first._met.add(2)
if world.rank == 1:
    sys.exit(3)
threading.Event().wait(30)
""",
    )
    assert done.code == 3, done
    assert "rank 1 of 2" in done.err
    assert "left with exit code 3; this ends the job" in done.err


def test_a_broken_handler_ends_the_job(run_program: RunProgram) -> None:
    done = run_program(
        2,
        """
def broken(source, frame):
    raise KeyError("inside a handler")
transport.on(Kind.RUN, broken)
"""
        + WAIT
        + """
if world.rank == 1:
    transport.send(0, Frame(Kind.RUN))
wait_for_ever()
""",
    )
    assert done.code == 1, done
    assert done.err.count("Traceback") == 1
    assert "[rank 0] KeyError: 'inside a handler'" in done.err


@pytest.mark.parametrize(
    ("leaving", "code"),
    [("sys.exit(3)", 3), ("sys.exit('no data')", 1), ("exit = sys.exit; exit(7)", 7)],
)
def test_leaving_with_an_error_code_ends_the_job(
    run_program: RunProgram, leaving: str, code: int
) -> None:
    done = run_program(
        2, WAIT + f"if world.rank == 1:\n    {leaving}\nelse:\n    wait_for_ever()\n"
    )
    assert done.code == code, done
    assert done.seconds < 10
    assert f"left with exit code {code}; this ends the job" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "ending",
    [
        "pass",
        "sys.exit(0)",
        "sys.exit()",
        "raise SystemExit",
        "raise SystemExit(0)",
        "try:\n    sys.exit(4)\nexcept SystemExit:\n    say('stayed')",
    ],
)
def test_a_normal_end_is_clean(run_program: RunProgram, ending: str) -> None:
    done = run_program(2, WAIT + ending + "\n")
    assert (done.code, done.err) == (0, "")
    assert done.seconds < 10


def test_an_interrupt_ends_the_job(run_program: RunProgram) -> None:
    done = run_program(
        2,
        WAIT
        + """
if world.rank == 1:
    import os, signal
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
wait_for_ever()
""",
    )
    assert done.code == 130, done
    assert done.seconds < 10
    assert "headrace: rank 1 of 2 (host " in done.err
    assert "was interrupted" in done.err


def test_a_hook_of_the_program_still_prints(run_program: RunProgram) -> None:
    done = run_program(
        2,
        WAIT + "if world.rank == 0:\n    raise ValueError('mine')\nwait_for_ever()\n",
        before="import sys\nsys.excepthook = lambda kind, value, trace: "
        "sys.stderr.write(f'told by my hook: {value}\\n')\n",
    )
    assert done.code == 1, done
    assert "headrace: rank 0 of 2" in done.err
    assert "told by my hook: mine" in done.err
    assert "Traceback" not in done.err


def test_a_single_process_fails_as_python_does(run_program: RunProgram) -> None:
    done = run_program(1, "raise ValueError('alone')\n")
    assert done.code == 1, done
    assert done.err.count("Traceback") == 1
    assert "[rank 0]" not in done.err
