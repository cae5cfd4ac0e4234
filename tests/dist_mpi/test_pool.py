"""The pool of threads for jobs that may wait on each other."""

from __future__ import annotations

import threading
import time

from headrace_mpi.pool import Pool


def test_jobs_that_wait_for_each_other_all_run() -> None:
    errors: list[BaseException] = []
    pool = Pool("test", errors.append)
    barrier = threading.Barrier(33)
    for _ in range(32):
        pool.run(lambda: barrier.wait(10) and None)
    barrier.wait(10)
    assert not errors


def test_threads_are_used_again() -> None:
    pool = Pool("test", lambda error: None)
    names = set()
    for _ in range(20):
        done = threading.Event()

        def job(done: threading.Event = done) -> None:
            names.add(threading.current_thread().name)
            done.set()

        pool.run(job)
        assert done.wait(10)
        deadline = time.monotonic() + 10
        while not pool.idle and time.monotonic() < deadline:
            time.sleep(0.001)
    assert names == {"test-1"}


def test_a_job_that_raises_is_reported_and_its_thread_goes_on() -> None:
    errors: list[BaseException] = []
    reported = threading.Event()

    def report(error: BaseException) -> None:
        errors.append(error)
        reported.set()

    pool = Pool("test", report)
    empty: list[int] = []
    pool.run(lambda: empty[1] and None)
    assert reported.wait(10)
    assert isinstance(errors[0], IndexError)
    done = threading.Event()
    pool.run(done.set)
    assert done.wait(10)
