"""The worker service: steps of many clients that wait hold no thread, and go on when they can."""

from __future__ import annotations

import gc
import threading
from collections import deque
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.device_name import DeviceName
from headrace.graph.schema import OPS
from headrace.graph.spec import TensorSpec
from headrace.runtime.engine import Engine
from headrace.runtime.execution.executor import StartedRun
from headrace.runtime.state.containers import ContainerSet
from headrace.shapes import Shape
from headrace_mpi.steps.registration import pack_registration
from headrace_mpi.steps.rendezvous import Exchange, first_step
from headrace_mpi.steps.worker import WorkerService
from headrace_mpi.transport.wire import Frame, Kind

pytestmark = [pytest.mark.needs("backend-cpu")]

PS = DeviceName("ps", 0, "cpu", 0)
CLIENTS = 16
HANDLE = 5


def worker(number: int) -> str:
    return f"/job:worker/task:{number}/device:cpu:0"


def rank_of(device: DeviceName) -> int:
    return 0 if device.job == "ps" else 1 + (device.task or 0)


class FakeTransport:
    """Takes the place of a transport: frames go into a list, and jobs run when they are told to."""

    exchange: Exchange
    service: WorkerService

    def __init__(self) -> None:
        self.rank = 0
        self.sent: list[tuple[int, Frame]] = []
        self.jobs: deque[Any] = deque()
        self.handlers: dict[Kind, Any] = {}
        self.forgotten: set[int] = set()

    def on(self, kind: Kind, handler: Any) -> None:
        self.handlers[kind] = handler

    def send(self, rank: int, frame: Frame) -> bool:
        self.sent.append((rank, frame))
        return True

    def post(self, job: Any) -> None:
        self.jobs.append(job)

    def is_forgotten(self, rank: int) -> bool:
        return rank in self.forgotten

    def arrive(self, rank: int, frame: Frame) -> None:
        job = self.handlers[frame.kind](rank, frame)
        if job is not None:
            self.jobs.append(job)

    def run_jobs(self) -> None:
        while self.jobs:
            self.jobs.popleft()()


@pytest.fixture
def wires() -> FakeTransport:
    made = FakeTransport()
    exchange = Exchange(made)  # type: ignore[arg-type]
    made.exchange = exchange
    made.service = WorkerService(made, exchange, Engine(PS.task_name), ContainerSet(), rank_of)  # type: ignore[arg-type]
    return made


def register(wires: FakeTransport, number: int, *, alone: bool) -> None:
    """Register a step that squares what a worker sends, and sends it back."""
    ends = {"source": worker(number), "destination": str(PS)}
    turn = {"round": 0 if alone else 1}
    back = {"edge": "y:0", "source": str(PS), "destination": worker(number)}
    with hr.Graph().as_default() as graph:
        spec = TensorSpec(hr.float32, Shape(()))
        x = graph.add_operation(
            OPS["Recv"],
            name="x",
            inputs=[],
            arity=(),
            attrs={
                "dtype": hr.float32,
                "shape": spec.shape,
                "edge": "x:0",
                "sources": 0,
                "may_be_dead": alone,
                **ends,
                **turn,
            },
            specs=[spec],
            device=PS,
        ).outputs[0]
        with hr.device(str(PS)):
            y = hr.square(x)
        graph.add_operation(
            OPS["Send"],
            name="send",
            inputs=[y],
            arity=(1,),
            attrs={**back, **turn, "sources": 0},
            specs=[],
            device=PS,
        )
    edges = [
        (1, "x:0", ends["source"], ends["destination"], 0),
        (2, "y:0", back["source"], back["destination"], 0),
    ]
    payload = pack_registration(1, {PS: graph}, edges)
    wires.arrive(1 + number, Frame(Kind.REGISTER, edge=HANDLE, payload=payload))
    wires.run_jobs()
    (_, answer) = wires.sent.pop()
    assert (answer.kind, answer.payload) == (Kind.REGISTERED, None)


@pytest.mark.parametrize("alone", [False, True])
def test_steps_of_many_clients_wait_without_threads(wires: FakeTransport, *, alone: bool) -> None:
    for number in range(CLIENTS):
        register(wires, number, alone=alone)
    before = threading.active_count()
    steps = [first_step(1 + number) + 1 for number in range(CLIENTS)]
    for number, step in enumerate(steps):
        wires.arrive(1 + number, Frame(Kind.RUN, step, HANDLE))
    wires.run_jobs()
    assert threading.active_count() == before
    assert not wires.sent
    # They go on in the order in which what they wait for comes.
    for number, step in reversed(list(enumerate(steps))):
        wires.arrive(1 + number, Frame(Kind.TENSOR, step, 1, payload=np.float32(number)))
    assert len(wires.jobs) == CLIENTS
    wires.run_jobs()
    tensors = [(rank, frame) for rank, frame in wires.sent if frame.kind is Kind.TENSOR]
    assert [rank for rank, _ in tensors] == list(range(CLIENTS, 0, -1))
    assert [float(f.payload) for _, f in tensors] == [n * n for n in reversed(range(CLIENTS))]
    assert [frame.step for _, frame in wires.sent if frame.kind is Kind.DONE] == steps[::-1]


@pytest.mark.parametrize("alone", [False, True])
def test_an_abort_ends_a_step_that_waits_and_no_other(wires: FakeTransport, *, alone: bool) -> None:
    for number in range(2):
        register(wires, number, alone=alone)
    first, second = (first_step(1 + number) + 1 for number in range(2))
    wires.arrive(1, Frame(Kind.RUN, first, HANDLE))
    wires.arrive(2, Frame(Kind.RUN, second, HANDLE))
    wires.run_jobs()
    wires.arrive(1, Frame(Kind.ABORT, first, payload=b"the client gave up"))
    wires.run_jobs()
    ((rank, answer),) = wires.sent
    assert (rank, answer.kind, answer.step) == (1, Kind.ERROR, first)
    assert "the client gave up" in answer.text
    # What comes too late is dropped.
    wires.arrive(1, Frame(Kind.TENSOR, first, 1, payload=np.float32(0)))
    wires.arrive(2, Frame(Kind.TENSOR, second, 1, payload=np.float32(1)))
    wires.run_jobs()
    assert [frame.kind for _, frame in wires.sent[1:]] == [Kind.TENSOR, Kind.DONE]


@pytest.mark.parametrize("alone", [False, True])
def test_a_client_that_is_lost_leaves_nothing_behind(wires: FakeTransport, *, alone: bool) -> None:
    for number in range(2):
        register(wires, number, alone=alone)
    first, second = (first_step(1 + number) + 1 for number in range(2))
    wires.arrive(1, Frame(Kind.RUN, first, HANDLE))
    wires.arrive(2, Frame(Kind.RUN, second, HANDLE))
    # A value for a step of the lost client that has not begun here.
    wires.arrive(2, Frame(Kind.TENSOR, first + 1, 1, payload=np.float32(0)))
    wires.run_jobs()
    assert wires.exchange.kept == 3
    wires.service.lose_client(1)
    wires.exchange.lose_client(1)
    wires.run_jobs()
    ((rank, answer),) = wires.sent
    assert (rank, answer.kind, answer.step) == (1, Kind.ERROR, first)
    assert "its client, rank 1, was lost" in answer.text
    # The other client's step goes on, and nothing is kept of the first one's.
    assert wires.exchange.kept == 1
    wires.arrive(2, Frame(Kind.TENSOR, second, 1, payload=np.float32(1)))
    wires.run_jobs()
    assert [frame.kind for _, frame in wires.sent[1:]] == [Kind.TENSOR, Kind.DONE]
    wires.sent.clear()
    wires.arrive(1, Frame(Kind.RUN, first + 2, HANDLE))
    assert "nothing is registered under handle" in wires.sent[0][1].text
    wires.arrive(2, Frame(Kind.RUN, second + 1, HANDLE))
    wires.arrive(2, Frame(Kind.TENSOR, second + 1, 1, payload=np.float32(1)))
    wires.run_jobs()
    assert [frame.kind for _, frame in wires.sent[1:]] == [Kind.TENSOR, Kind.DONE]


def test_kernels_of_all_clients_are_compiled_by_the_threads_of_one_session(
    wires: FakeTransport,
) -> None:
    for number in range(CLIENTS):
        register(wires, number, alone=True)
    states = wires.service._states.values()
    assert len(states) == CLIENTS
    assert len({id(state.background) for state in states}) == 1


def run(wires: FakeTransport, number: int, count: int) -> None:
    """Let a client run its step for the n-th time, and check what comes back."""
    step = first_step(1 + number) + count
    wires.sent.clear()
    wires.arrive(1 + number, Frame(Kind.RUN, step, HANDLE))
    wires.run_jobs()
    wires.arrive(1 + number, Frame(Kind.TENSOR, step, 1, payload=np.float32(count)))
    wires.run_jobs()
    (_, back), (_, done) = wires.sent
    assert (back.kind, back.step, float(back.payload)) == (Kind.TENSOR, step, count**2)
    assert (done.kind, done.step) == (Kind.DONE, step)


@pytest.mark.parametrize("alone", [False, True])
def test_a_run_is_made_before_it_is_asked_for_and_goes_with_its_client(
    wires: FakeTransport, *, alone: bool
) -> None:
    for number in range(2):
        register(wires, number, alone=alone)
    for count in range(1, 4):
        run(wires, 0, count)
        run(wires, 1, count)
    made = [wires.service._registered[1 + number, HANDLE].ready for number in range(2)]
    assert [len(ready) for ready in made] == [1, 1]
    # Two at a time: only one was made before.
    steps = [first_step(1) + count for count in (4, 5)]
    for step in steps:
        wires.arrive(1, Frame(Kind.RUN, step, HANDLE))
    for step in steps:
        wires.arrive(1, Frame(Kind.TENSOR, step, 1, payload=np.float32(step & 7)))
    wires.sent.clear()
    wires.run_jobs()
    found = [(f.step, float(f.payload)) for _, f in wires.sent if f.kind is Kind.TENSOR]
    assert found == [(step, (step & 7) ** 2) for step in steps]
    # Nothing is left for the collector.
    del made
    gc.collect()
    gc.disable()
    try:
        assert sum(isinstance(held, StartedRun) for held in gc.get_objects()) == 2
        wires.service.lose_client(1)
        wires.arrive(2, Frame(Kind.RELEASE, 1))
        assert not any(isinstance(held, StartedRun) for held in gc.get_objects())
    finally:
        gc.enable()


def test_a_client_has_its_answer_before_its_step_is_forgotten(wires: FakeTransport) -> None:
    register(wires, 0, alone=False)
    step = first_step(1) + 1
    known: list[bool] = []
    send = wires.send
    wires.send = lambda rank, frame: (  # type: ignore[method-assign]
        known.append(step in wires.service._running),
        send(rank, frame),
    )[1]
    run(wires, 0, 1)
    assert known == [True, True]
    assert not wires.service._running
    assert not wires.exchange.kept
