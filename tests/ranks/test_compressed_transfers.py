"""Float32 between tasks as bfloat16: half the bytes, a bounded error, and nets that still learn."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ClusterError, ConfigError

pytestmark = [pytest.mark.ranks(1, 2, 4), pytest.mark.needs("backend-cpu")]

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"
BFLOAT16 = hr.Config(compress_transfers="bfloat16")


def truncated(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The values with the lower half of their bits zero."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32) & 0xFFFF0000
    return bits.view(np.float32)


VALUES = np.concatenate(
    [
        np.random.default_rng(0).normal(size=60_000),
        [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 3.4e38],
    ]
).astype(np.float32)


def far_and_near() -> tuple[hr.Variable, hr.Tensor]:
    with hr.device(PS):
        far = hr.Variable(VALUES, name="far")
    with hr.device(WORKER):
        near = hr.identity(far * 1.0) * 1.0
    return far, near


@pytest.mark.parametrize("executor", ["plan", "plain"])
def test_the_upper_half_of_the_bits_travels(cluster: Any, executor: str) -> None:
    if not cluster.is_chief:
        return
    far, _ = far_and_near()
    with hr.device(WORKER):
        near = hr.identity(far) * 1.0
    config = hr.Config(compress_transfers="bfloat16", executor=executor)
    with hr.Session(cluster.target, config=config) as session:
        session.run(far.initializer)
        found = session.run(near)
        # What is fetched is whole.
        assert session.run(far).tobytes() == VALUES.tobytes()
    assert found.tobytes() == truncated(VALUES).tobytes()
    finite = np.abs(VALUES) > 1e-37
    finite &= np.isfinite(VALUES)
    error = np.abs(found[finite] - VALUES[finite]) / np.abs(VALUES[finite])
    assert 0 < error.max() <= 2**-7


def test_half_the_bytes_move(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    far, near = far_and_near()
    with hr.device(WORKER):
        there = hr.reduce_sum(near)
    with hr.device(PS):
        back = hr.reduce_sum(near + 1.0)
    counted, explained = [], []
    for config in (hr.Config(), BFLOAT16):
        with hr.Session(cluster.target, config=config) as session:
            session.run(far.initializer)
            session.run([there, back])
            begin = getattr(getattr(cluster.node, "transport", None), "bytes_sent", 0)
            session.run([there, back])
            end = getattr(getattr(cluster.node, "transport", None), "bytes_sent", 0)
            counted.append(end - begin)
            explanation = session.explain([there, back])
            moved = [m for m in explanation.transfers if m.leaves_task and (m.bytes or 0) > 100]
            assert {m.dtype for m in moved} == {"bfloat16" if config is BFLOAT16 else "float32"}
            explained.append(sum(m.bytes or 0 for m in moved))
            assert f"from {PS}/device:cpu:0 to {WORKER}/device:cpu:0: " in str(explanation)
    assert explained[0] == 2 * explained[1] == 2 * 4 * VALUES.size
    if hasattr(cluster.node, "transport"):
        assert counted[0] == pytest.approx(2 * counted[1], rel=0.001)


def test_values_of_other_dtypes_and_dead_ones_move_as_they_are(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    flag = hr.placeholder(hr.bool, [])
    with hr.device(PS):
        double = hr.Variable(np.float64(1) / 3, name="double")
        whole = hr.Variable(np.int32(2**30 + 1), name="whole")
        single = hr.Variable(np.float32(1) / 3, name="single")
    with hr.device(WORKER):
        chosen = hr.cond(flag, lambda: single * 3.0, lambda: hr.constant(2.0))
        sums = [double * 3.0, whole + 0, chosen]
    with hr.Session(cluster.target, config=BFLOAT16) as session:
        session.run(hr.global_variables_initializer())
        third = float(truncated(np.float32([1 / 3]))[0])
        found = session.run(sums, {flag: True})
        assert found[:2] == [np.float64(1) / 3 * 3, 2**30 + 1]
        assert found[2] == np.float32(third * 3)
        assert session.run(chosen, {flag: False}) == 2.0


@pytest.mark.needs("autodiff", "train")
def test_a_net_learns_as_well(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    rng = np.random.default_rng(1)
    centers = rng.normal(size=(10, 20)) * 1.5
    labels = rng.integers(0, 10, 600)
    images = (centers[labels] + rng.normal(size=(600, 20))).astype(np.float32)
    x = hr.placeholder(hr.float32, [None, 20])
    y = hr.placeholder(hr.int32, [None])
    with hr.device(PS):
        start = [rng.normal(size=s).astype(np.float32) * 0.3 for s in ((20, 32), (32, 10))]
        w1, w2 = hr.Variable(start[0], name="n1"), hr.Variable(start[1], name="n2")
    logits = hr.matmul(hr.nn.relu(hr.matmul(x, w1)), w2)
    loss = hr.reduce_mean(hr.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    right = hr.reduce_mean(
        hr.cast(hr.equal(hr.argmax(logits, 1), hr.cast(y, hr.int64)), hr.float32)
    )
    step = hr.train.GradientDescentOptimizer(0.3).minimize(loss)
    found = []
    for config in (hr.Config(), BFLOAT16):
        with hr.Session(cluster.target, config=config) as session:
            session.run(hr.global_variables_initializer())
            for i in range(60):
                rows = slice(i % 4 * 100, i % 4 * 100 + 100)
                session.run(step, {x: images[rows], y: labels[rows]})
            found.append(session.run(right, {x: images[400:], y: labels[400:]}))
    assert found[0] > 0.9
    assert abs(found[0] - found[1]) < 0.02


def test_ranks_that_ask_for_different_transfers_are_refused(cluster: Any) -> None:
    if cluster.num_workers < 2 or cluster.job_name == "ps" or cluster.task_index > 1:
        return
    with hr.device(PS):
        v = hr.Variable(np.ones([100], np.float32), name="v")
        turn = hr.Variable(np.int32(0), name="turn")
        ready = hr.is_variable_initialized(turn)
    near = hr.identity(v) * 2.0

    def wait_for(session: hr.Session, number: int) -> None:
        while not session.run(ready) or session.run(turn) != number:
            time.sleep(0.01)

    with hr.Session(cluster.target, config=BFLOAT16) as session:
        if cluster.is_chief:
            session.run(hr.global_variables_initializer())
            session.run(turn.assign(1))
            wait_for(session, 2)
            return
        wait_for(session, 1)
    with (
        hr.Session(cluster.target) as session,
        pytest.raises(ClusterError, match=r"(?s)transfers=.*None: rank 2\n  'bfloat16': rank 1\n"),
    ):
        session.run(near)
    with hr.Session(cluster.target, config=BFLOAT16) as session:
        session.run(turn.assign(2))


def test_what_is_no_such_setting_is_refused() -> None:
    for wrong in ("float16", True, hr.float16):
        with pytest.raises(ConfigError, match="compress_transfers must be 'bfloat16' or None, got"):
            hr.Config(compress_transfers=wrong)
    assert hr.Config(compress_transfers=hr.bfloat16) == BFLOAT16
    proto = hr.ConfigProto(graph_options=hr.GraphOptions(enable_bfloat16_sendrecv=True))
    with hr.Session(config=proto) as session:
        assert session.config.compress_transfers == "bfloat16"
