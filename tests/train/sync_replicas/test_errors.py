"""What synchronous replicas refuse, with the reason, and never by a hang."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DeadlineExceededError,
    DTypeError,
    FailedPreconditionError,
    GraphError,
    InvalidArgumentError,
    ResourceError,
    ShapeError,
)
from tests.train.sync_replicas.replica_threads import Sharing
from tests.train.sync_replicas.sync_programs import Replica, together

pytestmark = [pytest.mark.needs("autodiff", "backend-cpu")]


def sgd() -> Any:
    return hr.train.GradientDescentOptimizer(1.0)


def built(optimizer: Any, **arguments: Any) -> Any:
    made = hr.train.SyncReplicasOptimizer(optimizer, 1, **arguments)
    v = hr.Variable([1.0, 2.0], name="v")
    made.minimize(hr.reduce_sum(v * v), hr.train.get_or_create_global_step())
    return made


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((3, 1), ArgumentTypeError, "opt must be an optimizer, got 3"),
        (("sgd", 0), AttributeValueError, "replicas_to_aggregate must be at least 1, got 0"),
        (("sgd", 1, 0), AttributeValueError, "total_num_replicas must be at least 1, got 0"),
        (("sgd", 1.5), AttributeValueError, "must be a whole number, got 1.5"),
    ],
)
def test_numbers_of_replicas(arguments: Any, error: Any, match: str) -> None:
    first, *others = arguments
    with pytest.raises(error, match=match):
        hr.train.SyncReplicasOptimizer(sgd() if first == "sgd" else first, *others)


def test_an_index_that_no_replica_has() -> None:
    with pytest.raises(AttributeValueError, match="replica_index must be from 0 to 2, as there"):
        hr.train.SyncReplicasOptimizer(sgd(), 3, replica_index=3)
    with pytest.raises(AttributeValueError, match="timeout_secs must be above 0, got 0"):
        hr.train.SyncReplicasOptimizer(sgd(), 3, timeout_secs=0)


def test_gradients_that_are_none(graph: Any) -> None:
    step = hr.train.get_or_create_global_step()
    v = hr.Variable([1.0, 2.0], name="v")
    optimizer = hr.train.SyncReplicasOptimizer(sgd(), 1)
    with pytest.raises(ValueError, match="Must supply at least one variable"):
        optimizer.apply_gradients([], step)
    with pytest.raises(ValueError, match="Global step is required to check staleness"):
        optimizer.apply_gradients([(hr.ones([2]), v)])
    with pytest.raises(ValueError, match="Unknown grad type! Got 'steep'"):
        optimizer.apply_gradients([("steep", v)], step)


def test_gradients_of_other_shapes_and_dtypes(graph: Any) -> None:
    step = hr.train.get_or_create_global_step()
    for number, (gradient, error, match) in enumerate(
        [
            (hr.ones([3]), ShapeError, r"has shape \[3\], expected \[2\]"),
            (hr.ones([2], hr.float64), DTypeError, "is float64, expected float32"),
            (
                hr.IndexedSlices(hr.ones([1, 3]), hr.constant([0])),
                ShapeError,
                "rows of the gradient",
            ),
        ]
    ):
        v = hr.Variable([1.0, 2.0], name=f"v{number}")
        with pytest.raises(error, match=match):
            hr.train.SyncReplicasOptimizer(sgd(), 1).apply_gradients([(gradient, v)], step)


def test_before_there_are_gradients(graph: Any) -> None:
    optimizer = hr.train.SyncReplicasOptimizer(sgd(), 1)
    for function in (optimizer.get_chief_queue_runner, optimizer.get_init_tokens_op):
        with pytest.raises(ValueError, match=r"[Ss]hould be called after apply_gradients\(\)"):
            function()
    with pytest.raises(FailedPreconditionError, match="should be called after apply_gradients"):
        optimizer.counters()
    with pytest.raises(ValueError, match="apply_gradient should be called before using"):
        optimizer.make_session_run_hook(True).begin()


def test_too_few_first_tokens(graph: Any) -> None:
    optimizer = hr.train.SyncReplicasOptimizer(sgd(), 4, 2)
    v = hr.Variable(1.0)
    optimizer.minimize(v * v, hr.train.get_or_create_global_step())
    match = r"Too few tokens to finish the first step: 1 \(given\) vs 2 \(needed\)"
    with pytest.raises(ValueError, match=match):
        optimizer.get_init_tokens_op(1)
    assert optimizer.get_init_tokens_op(2).type == "SyncReplicasAddTokens"


def test_what_programs_hold_is_called_as_in_tensorflow(graph: Any) -> None:
    optimizer = hr.train.SyncReplicasOptimizer(sgd(), 2, 2, name="sr")
    v = hr.Variable([1.0, 2.0], name="v")
    with hr.name_scope("around"):
        train = optimizer.minimize(hr.reduce_sum(v * v), hr.train.get_or_create_global_step())
    runner = optimizer.get_chief_queue_runner()
    assert [
        optimizer.local_step_init_op.op.name,
        train.op.name,
        runner.name,
        *(op.name for op in runner.enqueue_ops),
        optimizer.get_init_tokens_op().name,
        optimizer.get_init_tokens_op().name,
        optimizer.chief_init_op.name,
    ] == [
        "around/Assign",
        "Assign",
        "dummy_queue",
        "sync_token_q_EnqueueMany",
        "sync_token_q_EnqueueMany_1",
        "sync_token_q_EnqueueMany_2",
        "around/sr/group_deps",
    ]


def test_two_optimizers_for_one_variable(graph: Any) -> None:
    built(sgd())
    (v,) = hr.trainable_variables()
    second = hr.train.SyncReplicasOptimizer(sgd(), 1, name="second")
    with pytest.raises(GraphError, match="gradients of 'v' are gathered by 'sync_replicas' alr"):
        second.minimize(hr.reduce_sum(v), hr.train.get_or_create_global_step())


def test_it_hands_on_what_the_optimizer_has(graph: Any) -> None:
    optimizer = built(hr.train.AdamOptimizer(0.1))
    (v,) = hr.trainable_variables()
    assert optimizer.get_slot_names() == ["m", "v"]
    assert optimizer.get_slot(v, "m").op_name == "v/Adam"
    assert len(optimizer.variables()) == 4
    assert [x.op_name for x in hr.local_variables()] == ["sync_rep_local_step"]


def constants(shape: Any) -> Any:
    def make(tf: Any, replica: Any, cluster: Any) -> None:
        v = hr.Variable(np.zeros(shape, "f"), name="v")
        replica.gradient = hr.placeholder(hr.float32)
        replica.variables = [v]
        replica.inner = sgd()
        replica.pairs = [(replica.gradient, v)]

    return make


def test_a_replica_with_another_number_or_other_variables(cluster: Sharing) -> None:
    Replica(hr, cluster, 0, 2, 2, constants([2]), 0)
    with pytest.raises(ResourceError, match="replicas_to_aggregate 2 and 1"):
        Replica(hr, cluster, 1, 1, 2, constants([2]), 0)
    with pytest.raises(InvalidArgumentError, match=r"shape \[2\] and \[3\]|v float32\[3\]"):
        Replica(hr, cluster, 1, 2, 2, constants([3]), 0)


def test_a_gradient_of_another_shape_fails_before_it_is_admitted(cluster: Sharing) -> None:
    replicas = [Replica(hr, cluster, i, 2, 2, constants([2]), 0) for i in range(2)]
    for wrong in ([1, 2, 3], [[1, 2]]):
        with pytest.raises(InvalidArgumentError, match="shape"):
            replicas[1].run(replicas[1].train, {replicas[1].gradient: wrong})
    # It kept no place: the step goes on when a gradient comes that fits.
    together(replicas, [{replica.gradient: [1, 3]} for replica in replicas])
    assert replicas[0].run(replicas[0].variables)[0].tolist() == [-1, -3]


def test_a_row_that_the_variable_does_not_have(cluster: Sharing) -> None:
    def make(tf: Any, replica: Any, cluster: Any) -> None:
        v = hr.Variable(np.zeros([3, 2], "f"), name="v")
        replica.rows = hr.placeholder(hr.int64, [None])
        values = hr.ones([hr.size(replica.rows), 2])
        replica.variables = [v]
        replica.inner = sgd()
        replica.pairs = [(hr.IndexedSlices(values, replica.rows), v)]

    only = Replica(hr, cluster, 0, 1, 1, make, 0)
    for rows in ([3], [-1]):
        with pytest.raises(InvalidArgumentError, match="assertion failed"):
            only.run(only.train, {only.rows: rows})
    assert only.run(only.train, {only.rows: [2, 0]}) == 1
    assert only.run(only.variables)[0].tolist() == [[-1, -1], [0, 0], [-1, -1]]


def test_replicas_that_never_come_are_named(cluster: Sharing) -> None:
    only = Replica(hr, cluster, 0, 3, 3, constants([2]), 0, timeout_secs=0.3)
    match = r"has 1 of 3 gradients, from the replicas 0; missing are 1 \(never seen\), 2"
    with pytest.raises(DeadlineExceededError, match=match):
        only.run(only.train, {only.gradient: [1, 1]})


def test_who_leaves_is_counted_and_the_others_go_on(cluster: Sharing) -> None:
    replicas = [Replica(hr, cluster, i, 3, 3, constants([1]), 0) for i in range(3)]
    feeds = [{replica.gradient: [replica.index + 1]} for replica in replicas]
    together(replicas, feeds)
    replicas[2].session.close()
    together(replicas[:2], feeds[:2])
    assert replicas[0].run(replicas[0].variables)[0].tolist() == [-3.5]
    # The chief, too, may be the first whose data end: the others go on.
    ending = threading.Thread(target=replicas[0].session.close)
    ending.start()
    replicas[1].run(replicas[1].train, feeds[1])
    assert replicas[1].run(replicas[1].variables)[0].tolist() == [-5.5]
    replicas[1].session.close()
    ending.join(30)
    assert not ending.is_alive()


def test_one_replica_that_says_not_which_it_is_stands_in_for_all(graph: Any) -> None:
    optimizer = hr.train.SyncReplicasOptimizer(sgd(), 2, timeout_secs=30)
    step = hr.train.get_or_create_global_step()
    train = optimizer.apply_gradients([(hr.ones([]), hr.Variable(0.0, name="v"))], step)
    counters = optimizer.counters()
    hook = optimizer.make_session_run_hook(True)
    with hr.train.MonitoredTrainingSession(hooks=[hook]) as session:
        # As in TensorFlow, a thread that is alone takes the tokens of the other.
        for _ in range(28):
            session.run(train)
        applied, dropped = session.run([counters.applied, counters.dropped])
        # One after the first step is stale, and one waits for a partner.
        assert (applied, dropped) == (26, 1)
        assert session.run(step) == 13
        assert session.run("v:0") == -13


def test_more_gradients_than_the_workers_of_a_cluster_can_bring(graph: Any) -> None:
    optimizer = hr.train.SyncReplicasOptimizer(sgd(), 4)
    tasks = ["/job:ps/task:0/device:cpu:0", "/job:worker/task:0/device:cpu:0"]
    match = "a step needs 4 gradients, 1 of each replica, but the cluster has 1 workers; start 4"
    with pytest.raises(AttributeValueError, match=match):
        optimizer.check_tasks(tasks)
    optimizer.check_tasks(["/job:localhost/task:0/device:cpu:0"])
    hr.train.SyncReplicasOptimizer(sgd(), 4, 1).check_tasks(tasks)


def test_counters_are_summaries(graph: Any) -> None:
    optimizer = built(sgd())
    counters = optimizer.counters(summaries=True)
    merged = hr.summary.merge_all()
    hook = optimizer.make_session_run_hook(True, num_tokens=0)
    with hr.train.MonitoredTrainingSession(hooks=[hook]) as session:
        train = optimizer.local_step_init_op
        assert session.run(train) == 0
        found = session.run(counters)
        assert [int(n) for n in found] == [0, 0, 0, 0, 1]
        text = session.run(merged)
    names = [value.tag for value in hr.Summary.FromString(text).value]
    assert names == [f"sync_replicas/{name}" for name in counters._fields]
