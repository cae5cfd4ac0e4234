"""Frames between real ranks: every size, many threads, large payloads both ways, bad frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.dist_mpi.conftest import RunProgram

pytestmark = pytest.mark.needs("mpi")


@pytest.mark.slow
def test_payloads_of_every_size_arrive_unchanged(run_program: RunProgram) -> None:
    done = run_program(
        2,
        """
        import ml_dtypes
        got, waiter = {}, Wakeup()
        def arrive(source, frame):
            got[frame.edge] = (source, frame)
            if len(got) == len(ARRAYS):
                waiter.wake()
        rng = np.random.default_rng(world.rank)
        def arrays(seed):
            rng = np.random.default_rng(seed)
            sizes = (0, 1, 7, 8000, 8181, 8192, 8193, 100_000, 12_500_000)
            out = [rng.standard_normal(n) for n in sizes]
            out += [np.array(2.5, ml_dtypes.bfloat16), rng.standard_normal((300, 200)).T,
                    rng.standard_normal(70_000).astype(ml_dtypes.bfloat16),
                    np.array([b"a" * n for n in range(400)], object).reshape(20, 20)]
            return out
        ARRAYS = arrays(1 - world.rank)
        transport.on(Kind.TENSOR, arrive)
        transport.start()
        for edge, array in enumerate(arrays(world.rank)):
            frame = Frame(Kind.TENSOR, 5, edge, payload=array)
            transport.send(1 - world.rank, frame)
        assert transport.wait(waiter, 20)
        for edge, expected in enumerate(ARRAYS):
            source, frame = got[edge]
            assert source == 1 - world.rank and frame.step == 5
            assert frame.payload.dtype == expected.dtype
            np.testing.assert_array_equal(frame.payload, expected)
        say("good")
        """,
    )
    assert done.code == 0, done.err
    assert sorted(done.out.split("\n")) == ["", "rank 0: good", "rank 1: good"]


def test_a_payload_larger_than_a_message_of_mpi_comes_in_chunks(run_program: RunProgram) -> None:
    done = run_program(
        2,
        """
        import headrace_mpi.transport.mpi_channel as module
        module.CHUNK_BYTES = 1 << 20
        waiter, got = Wakeup(), []
        transport.on(Kind.TENSOR, lambda source, frame: got.append(frame) or waiter.wake())
        transport.start()
        sent = np.arange(1_000_003, dtype=np.int64)
        if world.rank == 0:
            transport.send(1, Frame(Kind.TENSOR, payload=sent))
        else:
            assert transport.wait(waiter, 20)
            np.testing.assert_array_equal(got[0].payload, sent)
            say("good")
        """,
    )
    assert done.code == 0, done.err
    assert "rank 1: good" in done.out


def test_many_threads_send_and_wait_at_once(run_program: RunProgram) -> None:
    # Each thread of each rank asks the next rank, whose jobs answer; nobody gets another's answer.
    done = run_program(
        3,
        """
        THREADS, CALLS = 8, 60
        waiters, answers = {}, {}
        def answer(source, frame):
            def job():
                payload = frame.payload * 2 if frame.payload is not None else None
                transport.send(source, Frame(Kind.TENSOR, frame.step, 1, payload=payload))
            return job
        def arrive(source, frame):
            if frame.edge == 0:
                return answer(source, frame)
            answers[frame.step] = frame.payload
            waiters[frame.step].wake()
        transport.on(Kind.TENSOR, arrive)
        transport.start()
        good = []
        def ask(thread):
            rng = np.random.default_rng(thread)
            for call in range(CALLS):
                step = thread * 1000 + call
                waiter = waiters[step] = Wakeup()
                size = int(rng.choice([1, 100, 5_000, 40_000]))
                x = np.full(size, step, np.float64)
                transport.send((world.rank + 1) % world.size, Frame(Kind.TENSOR, step, payload=x))
                assert transport.wait(waiter, 30), f"no answer to {step}"
                np.testing.assert_array_equal(answers.pop(step), x * 2)
            good.append(thread)
        threads = [threading.Thread(target=ask, args=(n,)) for n in range(THREADS)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert len(good) == THREADS
        world.comm.Barrier()
        say("good")
        """,
    )
    assert done.code == 0, done.err
    assert done.out.count("good") == 3


def test_serving_runs_jobs_on_the_serving_thread(run_program: RunProgram) -> None:
    done = run_program(
        2,
        """
        waiter, names = Wakeup(), []
        def run(source, frame):
            def job():
                names.append(threading.current_thread() is threading.main_thread())
                transport.send(source, Frame(Kind.DONE, frame.step))
            return job
        transport.on(Kind.RUN, run)
        transport.on(Kind.DONE, lambda source, frame: waiter.wake())
        transport.on(Kind.SHUTDOWN, lambda source, frame: waiter.wake())
        transport.start()
        world.comm.Barrier()
        if world.rank == 1:
            assert transport.serve(waiter, 20)
            assert len(names) == 200 and sum(names) > 150, sum(names)
        else:
            for step in range(200):
                transport.send(1, Frame(Kind.RUN, step, 3))
                assert transport.wait(waiter, 10)
            transport.send(1, Frame(Kind.SHUTDOWN))
        say("good")
        """,
    )
    assert done.code == 0, done.err
    assert done.out.count("good") == 2


def test_a_waiting_thread_is_woken_by_another_thread_and_times_out(
    run_program: RunProgram,
) -> None:
    done = run_program(
        1,
        """
        transport.start()
        waiter = Wakeup()
        threading.Timer(0.2, waiter.wake).start()
        begin = time.monotonic()
        assert transport.wait(waiter, 10)
        assert 0.1 < time.monotonic() - begin < 2
        assert not transport.wait(waiter, 0.1)
        waiter.wake()
        assert transport.wait(waiter, 10)
        transport.on(Kind.HEALTH, lambda source, frame: waiter.wake())
        transport.send(0, Frame(Kind.HEALTH))
        assert transport.wait(waiter, 10)
        say("good")
        """,
    )
    assert done.code == 0, done.err
    assert "good" in done.out


def test_threads_are_woken_for_what_is_theirs(run_program: RunProgram) -> None:
    # Items come from the other rank and from threads beside, while several threads wait.
    done = run_program(
        2,
        """
        STEPS, ITEMS = 6, 100
        waiters, came = [Wakeup() for _ in range(STEPS)], [[] for _ in range(STEPS)]
        def put(number, item):
            came[number].append(item)
            waiters[number].wake()
        transport.on(Kind.TENSOR, lambda source, frame: put(frame.step, ("far", frame.edge)))
        transport.start()
        world.comm.Barrier()
        good = []
        def step(number):
            for item in range(ITEMS):
                if item % 3:
                    frame = Frame(Kind.TENSOR, number, item, payload=np.zeros(1))
                    transport.send(1 - world.rank, frame)
                else:
                    threading.Timer(0.001, put, [number, ("near", item)]).start()
                while len(came[number]) <= item:
                    assert transport.wait(waiters[number], 30)
            expected = [("far" if item % 3 else "near", item) for item in range(ITEMS)]
            assert sorted(came[number]) == sorted(expected), came[number]
            good.append(number)
        threads = [threading.Thread(target=step, args=(n,)) for n in range(STEPS)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert len(good) == STEPS
        say("good")
        """,
    )
    assert done.code == 0, done.err
    assert done.out.count("good") == 2


def test_an_idle_rank_answers_and_needs_little_of_a_core(run_program: RunProgram) -> None:
    done = run_program(
        2,
        """
        waiter = Wakeup()
        transport.on(Kind.HEALTH, lambda source, frame: transport.send(
            source, Frame(Kind.DONE, frame.step)) and None)
        transport.on(Kind.DONE, lambda source, frame: waiter.wake())
        transport.start()
        time.sleep(1.2)
        begin = time.process_time()
        time.sleep(1)
        used = time.process_time() - begin
        assert used < 0.15, used
        if world.rank == 0:
            begin = time.monotonic()
            transport.send(1, Frame(Kind.HEALTH, 1))
            assert transport.wait(waiter, 10)
            assert time.monotonic() - begin < 1.0
        else:
            time.sleep(0.5)
        say("good")
        """,
    )
    assert done.code == 0, done.err
    assert done.out.count("good") == 2


def test_bad_frames_are_reported_and_the_rest_still_arrives(run_program: RunProgram) -> None:
    done = run_program(
        2,
        """
        from mpi4py import MPI
        from headrace_mpi.transport import wire
        faults, waiter = [], Wakeup()
        transport._on_fault = faults.append
        transport.on(Kind.DONE, lambda source, frame: waiter.wake())
        def broken(source, frame):
            raise ValueError("broken handler")
        transport.on(Kind.RUN, broken)
        transport.start()
        if world.rank == 0:
            send = lambda data, tag=1: world.comm.Send([data, MPI.BYTE], 1, tag)
            send(b"not a frame at all, by any means: really not a frame")
            send(b"")
            send(bytes(200_000))
            lie = wire.encode(Frame(Kind.TENSOR, payload=np.zeros(100_000))).header(tag=50)
            send(lie)
            send(b"short", 50)
            transport.send(1, Frame(Kind.SHUTDOWN))
            transport.send(1, Frame(Kind.RUN, 1))
            time.sleep(0.2)
            transport.send(1, Frame(Kind.DONE, 1))
        else:
            assert transport.wait(waiter, 20)
            for fault in faults:
                say(f"{type(fault).__name__} {fault}")
        """,
    )
    assert done.code == 0, done.err
    for text in (
        "WireError a message starts with b'not ', expected b'HRMP'",
        "WireError a message of 0 bytes is no frame",
        "WireError a message of 200000 bytes came from rank 0, expected at most",
        "WireError the payload of a TENSOR frame comes in 5 bytes, announced were 800000",
        "ClusterError a SHUTDOWN frame came from rank 0, but this rank does not expect any",
        "ValueError broken handler",
    ):
        assert text in done.out


def test_sending_to_nobody_and_after_the_end_is_refused(run_program: RunProgram) -> None:
    done = run_program(
        1,
        """
        from headrace.errors import ClusterError
        transport.start()
        for rank in (-1, 1):
            try:
                transport.send(rank, Frame(Kind.DONE))
            except ClusterError as error:
                say(str(error))
        assert transport.close()
        try:
            transport.send(0, Frame(Kind.DONE))
        except ClusterError as error:
            say(str(error))
        """,
    )
    assert done.code == 0, done.err
    assert "there is no rank 1: the ranks are 0 to 0" in done.out
    assert "a DONE frame was sent to rank 0 after this rank left the cluster" in done.out
