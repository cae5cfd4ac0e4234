"""A program ends when all that could still do something has: steps that wait do not keep it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.children import run_program

pytestmark = [pytest.mark.needs("backend-cpu", "train"), pytest.mark.timeout(120)]

START = """
import threading, time
import headrace as hr
queue = hr.FIFOQueue(2, [hr.float32], shapes=[[]])
put, take = queue.enqueue(1.0), queue.dequeue()
session = hr.Session()
def again(op):
    while True: session.run(op)
"""
# What each does before its main thread ends. Threads are no daemons but where it says so.
PROGRAMS = {
    "full queue": "for _ in range(3): threading.Thread(target=again, args=[put]).start()",
    "empty queue": "threading.Thread(target=again, args=[take]).start()",
    "pool": """
        from concurrent.futures import ThreadPoolExecutor
        pool = ThreadPoolExecutor(4)
        for _ in range(3): pool.submit(again, put)
    """,
    "runners": """
        hr.train.add_queue_runner(hr.train.QueueRunner(queue, [put] * 2))
        hr.train.start_queue_runners(session, hr.train.Coordinator(), daemon=False)
        session.run(take)
    """,
    "beside a daemon": """
        threading.Thread(target=time.sleep, args=[1000], daemon=True).start()
        threading.Thread(target=again, args=[take]).start()
    """,
    "accumulator": """
        sums = hr.ConditionalAccumulator(hr.float32, shape=[])
        threading.Thread(target=again, args=[sums.take_grad(2)]).start()
    """,
}
# These end by themselves, and lose nothing.
WORKING = {
    "a slow producer": """
        def produce():
            for _ in range(3):
                time.sleep(0.7)
                session.run(put)
        def consume():
            for _ in range(3): session.run(take)
            print("done")
        threading.Thread(target=produce).start()
        threading.Thread(target=consume).start()
    """,
    "a slow daemon": """
        def produce():
            time.sleep(1.5)
            session.run(put)
        threading.Thread(target=produce, daemon=True).start()
        threading.Thread(target=lambda: print("done", session.run(take))).start()
    """,
    "a slow function": """
        slow = hr.py_func(lambda: time.sleep(1.5) or hr.float32.numpy.type(1), [], hr.float32)
        step = queue.enqueue(slow)
        threading.Thread(target=lambda: print("done", session.run(step))).start()
    """,
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[float, int, str]]]:
    """How long each program took after its start, its exit status and what it said.

    They wait most of the time, and so do so together.
    """
    folder = tmp_path_factory.mktemp("exits")
    files, processes, found = {}, {}, {}
    for i, (name, program) in enumerate({**PROGRAMS, **WORKING}.items()):
        files[name] = folder / str(i)
        source = START + textwrap.dedent(program)
        with files[name].open("wb") as said:
            processes[name] = subprocess.Popen(
                [sys.executable, "-c", source], stdout=said, stderr=subprocess.STDOUT
            )
    begin = time.monotonic()
    try:
        while processes and time.monotonic() - begin < 60:
            time.sleep(0.05)
            for name in [n for n, process in processes.items() if process.poll() is not None]:
                status = processes.pop(name).returncode
                found[name] = (time.monotonic() - begin, status, _text(files[name]))
        yield found
    finally:
        for process in processes.values():
            process.kill()
            process.wait()


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_a_waiting_thread_does_not_keep_it() -> None:
    source = START + textwrap.dedent(PROGRAMS["full queue"])
    done = run_program(source, timeout_s=60.0)
    assert "CancelledError: the program has ended" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_waiting_threads_do_not_keep_it(
    ended: dict[str, tuple[float, int, str]], name: str
) -> None:
    assert name in ended, "it did not end"
    _, status, said = ended[name]
    assert status == 0
    if name not in ("pool", "runners"):  # these keep the errors of their threads
        assert "CancelledError: the program has ended, and no thread is left that could" in said


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKING)
def test_threads_that_work_are_waited_for(
    ended: dict[str, tuple[float, int, str]], name: str
) -> None:
    assert name in ended, "it did not end"
    _, status, said = ended[name]
    assert status == 0
    assert "done" in said
    assert "CancelledError" not in said
