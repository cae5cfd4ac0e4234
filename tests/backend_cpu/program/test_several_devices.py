"""Several CPUs of one process: one region, kernels of one device each, and no transfers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("autodiff")

RNG = np.random.default_rng(5)
WEIGHTS = [RNG.normal(size=size).astype(np.float32) * 0.2 for size in ((6, 40), (40, 40), (40, 3))]
IMAGES, LABELS = (RNG.normal(size=(16, size)).astype(np.float32) for size in (6, 3))


def towers(*places: str) -> tuple[list[Any], Any, Any]:
    """Return the variables, the losses and the update of a model that is trained on each place."""
    with hr.device(places[0]):
        variables = [hr.Variable(w) for w in WEIGHTS]
    parts = zip(hr.split(IMAGES, len(places)), hr.split(LABELS, len(places)), strict=True)
    losses, slopes = [], []
    for place, (images, labels) in zip(places, parts, strict=True):
        with hr.device(place):
            x = images
            for variable in variables[:-1]:
                x = hr.nn.relu(hr.matmul(x, variable) + 0.1)
            loss = hr.reduce_mean(hr.square(hr.matmul(x, variables[-1]) - labels))
            losses.append(loss)
            slopes.append(hr.gradients(loss, variables))
    with hr.device(places[0]), hr.control_dependencies(losses):
        pairs = zip(variables, zip(*slopes, strict=True), strict=True)
        update = hr.group(*[hr.assign_sub(v, 0.2 * hr.add_n(list(gs))) for v, gs in pairs])
    return variables, losses, update


def trained(places: tuple[str, ...], **settings: Any) -> list[np.ndarray]:
    with hr.Graph().as_default():
        variables, losses, update = towers(*places)
        config = hr.Config(device_count={"cpu": 3}, verify=True, **settings)
        with hr.Session(config=config) as session:
            session.run([v.initializer for v in variables])
            found = [session.run([*losses, update])[:-1] for _ in range(5)]
            return [*np.array(found).T, *session.run(variables)]


@pytest.mark.parametrize(
    "settings", [{"compile_after": 0}, {"executor": "plain"}, {"optimize": False}, {}]
)
@pytest.mark.parametrize("places", [("/cpu:0", "/cpu:1"), ("/cpu:2", "/cpu:1"), ("/cpu:1",) * 2])
def test_towers_on_several_devices_compute_what_they_do_on_one(
    places: tuple[str, ...], settings: dict[str, Any]
) -> None:
    expected = trained(("/cpu:0",) * 2, executor="plain")
    for one, other in zip(trained(places, **settings), expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-5)


def test_a_step_on_several_devices_is_one_region_of_kernels_of_one_device_each() -> None:
    variables, losses, update = towers("/cpu:0", "/cpu:1")
    config = hr.Config(device_count={"cpu": 2}, compile_after=0, compile_wait=True)
    with hr.Session(config=config) as session:
        session.run([v.initializer for v in variables])
        session.run([*losses, update])
        plan = session._prepared[next(reversed(session._prepared))].step.plan
        (part,) = session.explain([*losses, update]).parts
    assert [node.region is not None for node in plan.nodes] == [True]
    assert not plan.transfers
    places = {work.device[-5:] for work in part.works}
    assert places == {"cpu:0", "cpu:1"}
    assert part.kernels
    for work in part.works:
        assert {str(op.device_name) for op in work.ops} == {work.device}


def test_the_plan_of_a_program_on_one_device_stays_as_it_is() -> None:
    def described(**settings: Any) -> str:
        with hr.Graph().as_default():
            variables, losses, update = towers("", "")
            with hr.Session(config=hr.Config(compile_after=0, **settings)) as session:
                session.run([v.initializer for v in variables])
                session.run([*losses, update])
                return session.explain([*losses, update]).source()

    assert described() == described(device_count={"cpu": 2})


def test_borders_are_where_programs_put_them() -> None:
    """A chain from device to device, with shapes that depend on data in between."""
    x = hr.placeholder(hr.float32, [None, 4], name="x")
    y = x
    for i in range(6):
        with hr.device(f"/cpu:{i % 3}"):
            y = hr.tanh(y * 1.5 + float(i) / 4)
    with hr.device("/cpu:1"):
        kept = hr.boolean_mask(y, y[:, 0] > 0.5)
    with hr.device("/cpu:2"):
        values, places = hr.unique(hr.cast(hr.reshape(kept * 10.0, [-1]), hr.int32))
    with hr.device("/cpu:0"):
        total = hr.reduce_sum(kept * 2.0, axis=0) + hr.cast(hr.size(values), hr.float32)
    fetches = [y, kept, values, places, total]
    given = [RNG.normal(size=(rows, 4)).astype(np.float32) for rows in (5, 3, 5)]
    results = []
    for settings in ({"compile_after": 0}, {"optimize": False}, {"executor": "plain"}):
        config = hr.Config(device_count={"cpu": 3}, verify=True, **settings)
        with hr.Session(config=config) as session:
            results.append([a for value in given for a in session.run(fetches, {x: value})])
    for found in results[:-1]:
        for one, other in zip(found, results[-1], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("executor", ["plan", "plain"])
def test_a_value_from_another_device_stays_as_it_was(executor: str) -> None:
    """An update in place of a variable leaves alone what was read of it before."""
    with hr.device("/cpu:1"):
        v = hr.Variable(hr.ones([1000]), name="v")
        before = hr.identity(v.read_value())
    with hr.device("/cpu:0"):
        held = hr.identity(before)
        with hr.control_dependencies([held]):
            after = hr.assign_add(v, hr.fill([1000], 2.0))
        with hr.control_dependencies([after]):
            late = held * 1.0
    config = hr.Config(device_count={"cpu": 2}, executor=executor, compile_after=0)
    with hr.Session(config=config) as session:
        session.run(v.initializer)
        seen = [session.run([held, late, after]) for _ in range(3)]
    for i, (first, second, third) in enumerate(seen):
        np.testing.assert_array_equal(first, np.full(1000, 1.0 + 2 * i))
        np.testing.assert_array_equal(second, first)
        np.testing.assert_array_equal(third, first + 2)
