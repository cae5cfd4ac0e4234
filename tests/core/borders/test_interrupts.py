"""One Ctrl-C ends a program with KeyboardInterrupt, whatever it does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from tests.waiting import wait_until

pytestmark = [pytest.mark.needs("backend-cpu", "io", "train"), pytest.mark.slow]

# A process whose parent ignores interrupts, as background jobs of shells do, ignores them, too.
START = """
import pathlib, signal, sys
import headrace as hr
signal.signal(signal.SIGINT, signal.default_int_handler)
x = hr.placeholder(hr.float32, [])
queue = hr.FIFOQueue(2, [hr.float32], shapes=[[]])
session = hr.Session()
session.run(x * 2.0, {x: 1.0})
pathlib.Path(sys.argv[1]).write_text("ready")
"""
PROGRAMS = {
    "dequeue": "session.run(queue.dequeue())",
    "enqueue": "enqueue = queue.enqueue(1.0)\nwhile True: session.run(enqueue)",
    "steps": "y = x * 2.0\nwhile True: session.run(y, {x: 1.0})",
    "loop": "session.run(hr.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 7, [0]))",
    "build": "while True: hr.sin(x)",
    "plan": "while True: session.run(hr.add_n([x * float(i) for i in range(500)]), {x: 1.0})",
    "threads": """
        import threading, time
        enqueue = queue.enqueue(1.0)
        def fill():
            while True: session.run(enqueue)
        for _ in range(3): threading.Thread(target=fill).start()
        time.sleep(100)
    """,
    "runners": """
        hr.train.add_queue_runner(hr.train.QueueRunner(queue, [queue.enqueue(1.0)] * 2))
        coord, take = hr.train.Coordinator(), queue.dequeue()
        hr.train.start_queue_runners(session, coord, daemon=False)
        while True: session.run(take)
    """,
    "saves": """
        v = hr.Variable(hr.zeros([1000]))
        session.run(v.initializer)
        saver, add, count = hr.train.Saver(), v.assign_add(hr.ones([1000])), 0
        while True:
            session.run(add)
            count += 1
            saver.save(session, sys.argv[1] + "-model", global_step=count)
    """,
    "pipe": """
        import os
        os.mkfifo(sys.argv[1] + "-pipe")
        files = hr.FIFOQueue(1, [hr.string], shapes=[[]])
        session.run(files.enqueue(sys.argv[1] + "-pipe"))
        session.run(hr.WholeFileReader().read(files))
    """,
    "python": "session.run(hr.py_func(lambda: __import__('time').sleep(60), [], hr.float32))",
}


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_one_interrupt_ends_a_program(name: str, tmp_path: Path) -> None:
    ready, said = tmp_path / "ready", tmp_path / "stderr"
    source = START + textwrap.dedent(PROGRAMS[name])
    with said.open("wb") as stderr:
        process = subprocess.Popen([sys.executable, "-c", source, str(ready)], stderr=stderr)
        try:
            wait_until(ready.exists, within_s=60.0)
            time.sleep(0.7)
            os.kill(process.pid, signal.SIGINT)
            started = time.monotonic()
            process.wait(30)
            took = time.monotonic() - started
        finally:
            process.kill()
            process.wait()
    # Threads that waited say so, too.
    assert "\nKeyboardInterrupt\n" in said.read_text()
    # Two seconds, on a machine that is five times slower.
    assert took < 10
    if name == "saves":
        _check_last_checkpoint(tmp_path)


def _check_last_checkpoint(folder: Path) -> None:
    latest = hr.train.latest_checkpoint(folder)
    count = int(latest.rpartition("-")[2])
    with hr.Graph().as_default(), hr.Session() as session:
        v = hr.Variable(hr.zeros([1000]))
        hr.train.Saver().restore(session, latest)
        np.testing.assert_array_equal(session.run(v), np.full(1000, count))
