"""Tasks with several CPUs each: what crosses ranks, what does not, and what names the devices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import NoDeviceError

pytestmark = [pytest.mark.ranks(1, 2), pytest.mark.needs("backend-cpu")]

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


def program() -> tuple[list[Any], list[Any]]:
    """Return variables on both CPUs of a server, and fetches that use them on those of a worker."""
    with hr.device(f"{PS}/device:cpu:1"):
        v = hr.Variable([1.0, 2.0], name="v")
        tripled = hr.multiply(v, 3.0, name="tripled")
    with hr.device(f"{PS}/device:cpu:0"):
        w = hr.Variable([1.0, 2.0], name="w")
        both = hr.add(w, tripled, name="both")
    with hr.device(f"{WORKER}/device:cpu:1"):
        a = hr.add(both, tripled * 2.0, name="a")
    with hr.device(f"{WORKER}/device:cpu:0"):
        b = hr.tanh(a, name="b")
    with hr.control_dependencies([both, tripled]):
        update = hr.assign_add(v, b)

    def body(i: Any, x: Any) -> Any:
        with hr.device(f"{PS}/device:cpu:1"):
            y = x * 1.5 + w
        with hr.device(f"{WORKER}/device:cpu:1"):
            return i + 1, hr.sin(y)

    _, looped = hr.while_loop(lambda i, x: i < 4, body, [0, hr.ones([2])])
    return [v, w], [both, a, b, update, looped]


def test_each_task_has_as_many_cpus_as_the_session_asks_for(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    variables, fetches = program()
    found: list[list[Any]] = []
    for settings in ({"compile_after": 0}, {"executor": "plain"}, {}):
        config = hr.Config(device_count={"cpu": 2}, verify=True, **settings)
        with hr.Session(cluster.target, config=config) as session:
            session.run([v.initializer for v in variables])
            found.append([value for _ in range(4) for value in session.run(fetches)])
            names = [device.name for device in session.list_devices()]
    assert names == [f"{task}/device:cpu:{i}" for task in (PS, WORKER) for i in range(2)]
    v, w = np.array([1.0, 2.0]), np.array([1.0, 2.0])
    expected: list[Any] = []
    for _ in range(4):
        both, x = w + v * 3, np.ones(2)
        b = np.tanh(both + v * 6)
        for _ in range(4):
            x = np.sin(x * 1.5 + w)
        expected += [both, both + v * 6, b, v + b, x]
        v = v + b
    for each in found:
        for one, other in zip(each, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5)


def test_a_trace_names_the_devices_of_all_tasks(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    variables, fetches = program()
    config = hr.Config(device_count={"cpu": 2}, executor="plain")
    with hr.Session(cluster.target, config=config) as session:
        session.run([v.initializer for v in variables])
        metadata = hr.RunMetadata()
        options = hr.RunOptions(trace_level=hr.RunOptions.FULL_TRACE)
        session.run(fetches[:3], options=options, run_metadata=metadata)
    ran = {
        node.node_name: stats.device
        for stats in metadata.step_stats.dev_stats
        for node in stats.node_stats
    }
    assert ran["tripled"] == f"{PS}/device:cpu:1"
    assert ran["both"] == f"{PS}/device:cpu:0"
    assert ran["a"] == f"{WORKER}/device:cpu:1"
    assert ran["b"] == f"{WORKER}/device:cpu:0"
    # Two values go from task to task, and none from CPU to CPU.
    assert sum(name.startswith("_recv/") for name in ran) == 2


def test_a_session_without_the_count_has_one_cpu_of_each_task(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    _, fetches = program()
    with hr.Session(cluster.target) as session:
        assert len(session.list_devices()) == 2
        with pytest.raises(NoDeviceError, match=r"device_count={\"cpu\": 2}\) lets the session"):
            session.run(fetches[0])
