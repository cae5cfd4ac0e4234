"""The pool of threads for jobs that may wait on each other."""

from __future__ import annotations

import threading
import time

from headrace_mpi.transport.thread_pool import ThreadPool
from tests.waiting import wait_until


def test_jobs_that_wait_for_each_other_all_run() -> None:
    errors: list[BaseException] = []
    pool = ThreadPool("waiting", errors.append)
    barrier = threading.Barrier(7)
    for _ in range(6):
        pool.run(lambda: barrier.wait(30) and None)
    assert threads_of("waiting") <= pool.size
    deadline = time.monotonic() + 30
    while barrier.n_waiting < 6 and time.monotonic() < deadline:
        pool.relieve()
        time.sleep(0.001)
    barrier.wait(10)
    wait_until(lambda: threads_of("waiting") <= pool.size)
    assert not errors


def threads_of(name: str) -> int:
    return sum(thread.name.startswith(f"{name}-") for thread in threading.enumerate())


def test_jobs_that_do_not_wait_share_few_threads() -> None:
    pool = ThreadPool("shared", lambda error: None)
    done = threading.Semaphore(0)
    for _ in range(200):
        pool.run(done.release)
    for _ in range(200):
        assert done.acquire(timeout=10)
    assert threads_of("shared") <= pool.size


def test_threads_are_used_again() -> None:
    pool = ThreadPool("test", lambda error: None)
    names = set()
    for _ in range(20):
        done = threading.Event()

        def job(done: threading.Event = done) -> None:
            names.add(threading.current_thread().name)
            done.set()

        pool.run(job)
        assert done.wait(10)
        wait_until(lambda: pool.idle, within_s=10.0)
    assert names == {"test-1"}


def test_a_job_that_raises_is_reported_and_its_thread_goes_on() -> None:
    errors: list[BaseException] = []
    reported = threading.Event()

    def report(error: BaseException) -> None:
        errors.append(error)
        reported.set()

    pool = ThreadPool("test", report)
    empty: list[int] = []
    pool.run(lambda: empty[1] and None)
    assert reported.wait(10)
    assert isinstance(errors[0], IndexError)
    done = threading.Event()
    pool.run(done.set)
    assert done.wait(10)
