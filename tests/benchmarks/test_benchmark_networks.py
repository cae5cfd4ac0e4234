"""The networks: shapes as published, and all ways to compute them agree."""

from __future__ import annotations

import dataclasses
import importlib
import math

import pytest

from benchmarks.networks import dataflow, layers, reference, tasks
from benchmarks.networks.layers import Conv, Dense, Flatten, GlobalMean, MaxPool, Norm, Relu
from benchmarks.networks.tasks import TASKS, Task
from benchmarks.participant import Request, StepLoop

# Every kind of layer, small.
ALL_KINDS = (
    *(Conv(3, 8, stride=2, padding=1), Norm(), Relu(), MaxPool(3, 2, padding=1)),
    layers.Residual((Conv(3, 8, padding=1, bias=False), Norm())),
    layers.Residual((Conv(3, 6, padding=1),), (Conv(1, 6, bias=False),)),
    Relu(),
)
TINY = Task((), (12, 10, 3), 5, 4, 0.01, batches=2, steps=6, lead_in=0)
FLAT = dataclasses.replace(TINY, layers=(*ALL_KINDS, Flatten(), Dense(7), Relu(), Dense(5)))
MEAN = dataclasses.replace(TINY, layers=(*ALL_KINDS, GlobalMean(), Dense(5)))
DENSE = dataclasses.replace(TINY, size=(9,), layers=(Dense(7), Relu(), Dense(6), Relu(), Dense(5)))


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("lenet", 3_274_634),
        ("alexnet", 61_100_840),
        ("vgg-a", 132_863_336),
        ("resnet18", 11_689_512),
        ("mlp", 669_706),
    ],
)
def test_networks_have_the_published_number_of_parameters(name: str, count: int) -> None:
    assert sum(math.prod(p.shape) for p in TASKS[name].parameters()) == count


@pytest.mark.parametrize("task", [FLAT, MEAN, DENSE], ids=["flat", "mean", "dense"])
@pytest.mark.needs("autodiff", "backend-cpu", "train")
def test_reference_computes_the_loss_of_the_graph(task: Task) -> None:
    hr = pytest.importorskip("headrace")
    with hr.Graph().as_default():
        program = dataflow.build(hr, task)
        session = hr.Session(config=hr.Config(executor="plain"))
        session.run(hr.global_variables_initializer())
        dataflow.load(session, program, task)
        values = dict(zip(program.feeds, task.feeds()[0], strict=True))
        loss = session.run(program.loss, values)
        assert reference.loss(task, session.run(program.variables)) == pytest.approx(loss, 1e-5)


@pytest.mark.parametrize("peer", ["numpy", "torch", "jax"])
@pytest.mark.parametrize("task", [FLAT, MEAN, DENSE], ids=["flat", "mean", "dense"])
@pytest.mark.filterwarnings("ignore")
def test_participants_train_to_the_loss_of_headrace(
    peer: str, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    if peer == "numpy" and task is not DENSE:
        pytest.skip("by hand there are dense layers only")
    pytest.importorskip(peer)
    hr = pytest.importorskip("headrace")
    monkeypatch.setitem(tasks.TASKS, "tiny", task)
    losses = []
    with hr.Graph().as_default():
        for who, variant in (("headrace", "plain executor"), (peer, "eager channels_last")):
            module = importlib.import_module(f"benchmarks.networks.{who}")
            loop = module.build(Request(who, variant, 1, "tiny"))
            assert isinstance(loop, StepLoop)
            loop.round()
            losses.append(loop.loss())
    start = reference.loss(task, task.first_values())
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    assert losses[0] < start


def test_first_values_are_those_of_the_description() -> None:
    values = list(FLAT.first_values())
    assert [v.shape for v in values] == [p.shape for p in FLAT.parameters()]
    assert values[0].std() == pytest.approx(math.sqrt(2 / 27), rel=0.2)
