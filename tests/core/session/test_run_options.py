"""Options of single runs, deadlines, metadata, and the settings that TensorFlow programs give."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    ConfigError,
    DeadlineExceededError,
    GraphError,
    NoDeviceError,
    SessionClosedError,
)
from headrace.runtime.concurrency.deadlines import Deadlines

cpu = pytest.mark.needs("backend-cpu")
queues = pytest.mark.needs("backend-cpu", "train")


# -- deadlines


def test_functions_are_called_in_time_unless_they_are_discarded() -> None:
    called: list[str] = []
    done = threading.Event()
    deadlines = Deadlines()
    deadlines.add(0.10, lambda: (called.append("later"), done.set()))
    kept = deadlines.add(0.05, lambda: called.append("never"))
    deadlines.add(0.01, lambda: called.append("soon"))
    deadlines.discard(kept)
    assert done.wait(10)
    assert called == ["soon", "later"]


def test_what_is_discarded_takes_no_room() -> None:
    deadlines = Deadlines()
    kept = deadlines.add(600, lambda: None)
    for _ in range(1000):
        deadlines.discard(deadlines.add(600, lambda: None))
    assert len(deadlines._waiting) < 200
    assert list(deadlines._calls) == [kept]
    deadlines.discard(kept)
    deadlines.discard(kept)


@queues
@pytest.mark.parametrize("where", ["options", "config", "proto"])
def test_a_step_that_waits_ends_at_its_deadline(where: str) -> None:
    queue = hr.train.FIFOQueue(2, hr.float32, shapes=[[]])
    taken, put = queue.dequeue(), queue.enqueue(1.0)
    config = {
        "options": None,
        "config": hr.Config(timeout=0.1),
        "proto": hr.ConfigProto(operation_timeout_in_ms=100),
    }[where]
    options = hr.RunOptions(timeout_in_ms=100) if where == "options" else None
    with hr.Session(config=config) as sess:
        began = time.monotonic()
        with pytest.raises(DeadlineExceededError, match=r"not done within 0\.1 s"):
            sess.run(taken, options=options)
        assert time.monotonic() - began < 5
        # Nothing was taken, and the session goes on.
        sess.run(put)
        assert sess.run(taken, options=options) == 1.0


@cpu
def test_a_step_that_is_done_in_time_is_not_cancelled() -> None:
    x = hr.placeholder(hr.float32, [2])
    with hr.Session(config=hr.Config(timeout=30.0)) as sess:
        for _ in range(3):
            value = sess.run(x + x, {x: [1, 2]}, options=hr.RunOptions(timeout_in_ms=20000))
        np.testing.assert_array_equal(value, [2, 4])


# -- metadata


@cpu
@pytest.mark.parametrize("executor", ["plan", "plain"])
def test_a_traced_run_tells_what_ran(executor: str) -> None:
    v = hr.Variable([1.0, 2.0], name="v")
    y = hr.reduce_sum(hr.exp(v) * 2.0, name="total")
    metadata = hr.RunMetadata()
    options = hr.RunOptions(trace_level=hr.RunOptions.FULL_TRACE)
    before = time.time() * 1e6
    with hr.Session(config=hr.Config(executor=executor)) as sess:
        sess.run(v.initializer)
        plain = sess.run(y)
        traced = sess.run(y, options=options, run_metadata=metadata)
        assert traced == plain
        nodes = [n for device in metadata.step_stats.dev_stats for n in device.node_stats]
        assert any("total" in n.timeline_label for n in nodes)
        assert all(n.all_start_micros >= before - 1e6 for n in nodes)
        assert all(n.all_end_rel_micros >= n.op_end_rel_micros >= 0 for n in nodes)
        assert next(d.device for d in metadata.step_stats.dev_stats).endswith("device:cpu:0")
        # State is that of the session.
        sess.run(v.assign([0.0, 0.0]), options=options)
        assert sess.run(y) == 4.0
        sess.run(y, run_metadata=metadata)
    with pytest.raises(SessionClosedError, match="closed"):
        sess.run(y, options=options)


@cpu
def test_options_of_other_types_are_refused() -> None:
    x = hr.constant(1.0)
    with hr.Session() as sess:
        with pytest.raises(ConfigError, match=r"options must be hr.RunOptions, got \{"):
            sess.run(x, options={})
        with pytest.raises(ConfigError, match=r"run_metadata must be an hr.RunMetadata, got 3"):
            sess.run(x, run_metadata=3)
        with pytest.raises(ConfigError, match="output_partition_graphs asks for what"):
            sess.run(x, options=hr.RunOptions(output_partition_graphs=True))
        with pytest.raises(ConfigError, match="timeout_in_ms must be 0 or more, got -1"):
            sess.run(x, options=hr.RunOptions(timeout_in_ms=-1))


# -- messages


def test_fields_keep_their_types() -> None:
    config = hr.ConfigProto()
    config.gpu_options.allow_growth = True
    config.graph_options.optimizer_options.opt_level = hr.OptimizerOptions.L0
    assert config == hr.ConfigProto(
        gpu_options=hr.GPUOptions(allow_growth=True),
        graph_options=hr.GraphOptions(optimizer_options=hr.OptimizerOptions(opt_level=-1)),
    )
    assert config != hr.ConfigProto()
    assert config.HasField("gpu_options")
    assert not config.HasField("intra_op_parallelism_threads")
    with pytest.raises(ConfigError, match="ConfigProto has no field 'thread'"):
        config.HasField("thread")
    assert "allow_growth=True" in repr(config)
    assert hr.GPUOptions(per_process_gpu_memory_fraction=1).per_process_gpu_memory_fraction == 1.0
    with pytest.raises(ConfigError, match="ConfigProto has no field 'thread'; it has"):
        hr.ConfigProto(thread=3)
    with pytest.raises(ConfigError, match="allow_soft_placement of ConfigProto must be of type bo"):
        config.allow_soft_placement = 1
    with pytest.raises(ConfigError, match="must be of type int, got True"):
        config.intra_op_parallelism_threads = True


@cpu
def test_a_config_proto_becomes_a_config() -> None:
    proto = hr.ConfigProto(
        intra_op_parallelism_threads=1, inter_op_parallelism_threads=4, allow_soft_placement=True
    )
    proto.graph_options.optimizer_options.opt_level = hr.OptimizerOptions.L0
    with hr.Session(config=proto) as sess:
        assert sess.config == hr.Config(
            threads=1, inter_op_threads=4, allow_soft_placement=True, optimize=False
        )
    # Limits of what is taken anyway only as it is needed.
    gpus = hr.GPUOptions(per_process_gpu_memory_fraction=0.5, allocator_type="BFC")
    with hr.Session(config=hr.ConfigProto(gpu_options=gpus)) as sess:
        assert sess.config == hr.Config()
    for refused in (
        hr.ConfigProto(device_filters=["/job:ps"]),
        hr.ConfigProto(gpu_options=hr.GPUOptions(visible_device_list="0")),
    ):
        with pytest.raises(ConfigError, match="asks for what Headrace does not have"):
            hr.Session(config=refused)
    own = hr.ConfigProto(isolate_session_state=True)
    with hr.Session(config=own) as sess:
        assert sess.config == hr.Config()
    with pytest.raises(ConfigError, match="sessions of a cluster share those of its tasks"):
        hr.Session("mpi:0/job:worker/task:0", config=own)
    with pytest.raises(ConfigError, match=r"an hr.Config or an hr.ConfigProto, got 'fast'"):
        hr.Session(config="fast")


@pytest.mark.parametrize("timeout", [0, -1.0, float("inf"), True, "1"])
def test_a_timeout_is_a_positive_time(timeout: object) -> None:
    with pytest.raises(ConfigError, match="timeout must be a number of seconds above 0"):
        hr.Config(timeout=timeout)


# -- placement


@cpu
def test_soft_placement_runs_elsewhere_what_cannot_run_where_it_should() -> None:
    with hr.device("/device:cuda:7"):
        x = hr.constant(1.0) + 1.0
    with hr.Session() as sess, pytest.raises(NoDeviceError, match="cuda:7"):
        sess.run(x)
    with hr.Session(config=hr.Config(allow_soft_placement=True)) as sess:
        assert sess.run(x) == 2.0


@cpu
def test_placement_is_printed_once_for_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    x = hr.placeholder(hr.float32, [], name="x")
    y = hr.add(x, 1.0, name="y")
    with hr.Session(config=hr.Config(log_device_placement=True, optimize=False)) as sess:
        for value in (1.0, 2.0):
            sess.run(y, {x: value})
    assert capsys.readouterr().err.count("y: (Add): /job:localhost/task:0/device:") == 1


# -- shells


@cpu
def test_an_interactive_session_is_the_default_until_it_is_closed() -> None:
    graph = hr.Graph()
    with graph.as_default():
        x = hr.constant(3.0)
    around = hr.get_default_graph()
    session = hr.InteractiveSession(graph=graph)
    try:
        assert x.eval() == 3.0
        assert hr.get_default_graph() is graph
        assert hr.get_default_session() is session
    finally:
        session.close()
    session.close()
    assert hr.get_default_graph() is around
    with pytest.raises(GraphError, match="there is no default session"):
        x.eval()


def test_passes_of_tensorflow_are_named_and_others_refused() -> None:
    options = hr.ConfigProto().graph_options.rewrite_options
    options.remapping = options.OFF
    assert options.changed() == {"remapping": 2}
    with pytest.raises(hr.errors.ConfigError, match="RewriterConfig has no field 'nix'"):
        options.nix = 1
    with pytest.raises(hr.errors.ConfigError, match="remapping of RewriterConfig must be of type"):
        options.remapping = "off"
