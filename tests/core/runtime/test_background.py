"""Work behind the steps: order, threads, what closing, failing and forking do."""

from __future__ import annotations

import signal
import subprocess
import threading
from pathlib import Path

import pytest

from headrace.runtime.concurrency.background import Background
from headrace.runtime.regions.compilation_history import told
from tests.children import run_program, run_python
from tests.waiting import wait_until

pytestmark = pytest.mark.timeout(60)


def nothing() -> None:
    pass


def threads_behind() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("headrace-background")]


@pytest.mark.parametrize("threads", [1, 3])
def test_what_is_submitted_is_done_once_and_its_threads_end(threads: int) -> None:
    done: list[object] = []
    behind = Background()
    pieces = [lambda i=i: done.append(i) for i in range(20)]
    behind.submit(pieces, lambda: done.append("all"), threads=threads)
    wait_until(lambda: "all" in done)
    assert done[-1] == "all"
    assert sorted(done[:-1]) == list(range(20))
    wait_until(lambda: not threads_behind())
    behind.close()


def test_closing_does_what_is_left_and_takes_no_more() -> None:
    gate, done, lost = threading.Event(), [], []
    behind = Background()
    behind.submit([gate.wait], nothing)
    behind.submit([lambda: done.append(1)] * 5, lambda: done.append("all"))
    threading.Timer(0.05, gate.set).start()
    behind.close()
    assert done == [1] * 5 + ["all"]
    assert not threads_behind()
    behind.submit([nothing], nothing, dropped=lambda: lost.append(1))
    assert lost == [1]


def test_where_an_exception_ends_the_session_the_rest_is_dropped() -> None:
    gate, done, lost = threading.Event(), [], []
    begun = threading.Event()
    behind = Background()
    behind.submit([lambda: (begun.set(), gate.wait())], lambda: done.append("begun"))
    begun.wait(10)
    behind.submit([lambda: done.append(1)], nothing, dropped=lambda: lost.append(1))
    threading.Timer(0.05, gate.set).start()
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:
        behind.close()
    assert (done, lost) == (["begun"], [1])
    assert not threads_behind()


def test_a_piece_that_raises_is_told_and_the_others_go_on(monkeypatch) -> None:
    told_errors, lost, done = [], [], []
    monkeypatch.setattr(threading, "excepthook", lambda args: told_errors.append(args.exc_value))
    behind = Background()
    behind.submit([lambda: 1 // 0, nothing], lambda: done.append(1), dropped=lambda: lost.append(1))
    behind.submit([nothing], lambda: done.append(2))
    wait_until(lambda: done)
    behind.close()
    assert (done, lost) == ([2], [1])
    assert [type(error) for error in told_errors] == [ZeroDivisionError]


def run(text: str) -> subprocess.CompletedProcess[str]:
    return run_program(text, check=False)


def test_a_process_ends_when_the_work_is_done() -> None:
    ended = run(
        """
        import sys, time
        from headrace.runtime.concurrency.background import Background
        Background().submit([lambda: time.sleep(0.1)] * 3, lambda: print("all"))
        """
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "all\n", "")


def test_a_process_that_fails_does_not_wait_for_what_was_not_begun() -> None:
    ended = run(
        """
        import time
        from headrace.runtime.concurrency.background import Background
        Background().submit([lambda: time.sleep(0.2)] * 500, lambda: print("all"))
        raise ValueError("mine")
        """
    )
    assert ended.returncode == 1
    assert "all" not in ended.stdout
    assert ended.stderr.count("ValueError: mine") == 1


@pytest.mark.parametrize(
    ("ends", "code"),
    [
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("raise ValueError", 1),
        ("sys.exit(3)", 3),
        ("pass", 0),
    ],
)
def test_work_that_runs_texts_leaves_how_a_process_ends(
    tmp_path: Path, ends: str, code: int
) -> None:
    """Python forgets an interrupt that nobody caught where a thread runs a text meanwhile."""
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, time\n"
        "from headrace.runtime.concurrency.background import Background\n"
        "begun = []\n"
        "def piece():\n"
        "    begun.append(0)\n"
        "    time.sleep(0.3)\n"
        "    exec('1')\n"
        "Background().submit([piece], lambda: None)\n"
        "while not begun:\n"
        "    time.sleep(0.01)\n"
        f"{ends}\n"
    )
    ended = run_python(program, check=False)
    assert ended.returncode == code


def test_a_forked_process_holds_no_lock_and_is_told_what_it_lost() -> None:
    ended = run(
        """
        import os, time, threading, warnings
        from headrace.runtime.concurrency.background import Background
        warnings.simplefilter("ignore")
        lock, lost = threading.Lock(), []
        def piece():
            with lock:
                time.sleep(0.05)
        behind = Background()
        behind.submit([piece] * 20, lambda: None, dropped=lambda: lost.append(os.getpid()))
        time.sleep(0.02)
        child = os.fork()
        if not child:
            assert lock.acquire(timeout=5)
            assert lost == [os.getpid()]
            Background().submit([lambda: os._exit(7)], lambda: None)
            time.sleep(20)
        behind.close()
        assert not lost
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    )
    assert (ended.stdout, ended.stderr) == ("7\n", "")


def test_histories_say_when_and_why() -> None:
    history = [(((4, 2), (3,)), 0.0), (((5, 2), (3,)), 1.25), (((5, 2), (9,)), 2.0)]
    assert told(history, []) == []
    assert told(history, ["x", "y"]) == [
        "planned for x [4, 2], y [3], 0.0 s after the step was prepared",
        "planned again, 1.2 s after the step was prepared: x [5, 2] had not come before",
        "planned again, 2.0 s after the step was prepared: y [9] had not come before",
    ]
    more = [*history, (((4, 2), (9,)), 3.0), (("any",), 4.0)]
    lines = told(more, ["x", "y"])
    assert lines[0] == "planned for 2 other combinations of shapes before"
    assert "x [4, 2], y [9] had not come together before" in lines[2]
    assert "more combinations came than are planned one by one" in lines[3]
