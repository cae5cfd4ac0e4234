"""Servers, and what ``TF_CONFIG`` says of a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import headrace as hr
from headrace.errors import AttributeValueError, ClusterError, ConfigError, DTypeError
from headrace_mpi.cluster import _open

if TYPE_CHECKING:
    from tests.dist_mpi.conftest import RunProgram

SPEC = {"ps": ["a:1"], "worker": ["b:1", "c:1"]}


@pytest.fixture(autouse=True)
def no_cluster_stays_open() -> Iterator[None]:
    """Close the clusters of servers, which have no end of their own."""
    yield
    for cluster in list(_open.values()):
        cluster.close()


@pytest.mark.needs("backend-cpu")
def test_a_process_that_is_alone_serves_itself() -> None:
    server = hr.dist.Server(SPEC, "worker", 1)
    assert repr(server.cluster) == "<Cluster of ps: 1, worker: 2; this is /job:worker/task:1>"
    with hr.Graph().as_default() as graph:
        with hr.device("/job:ps/task:0"):
            total = hr.Variable(1.0).initialized_value() + 1.0
        with hr.Session(server.target, graph=graph) as session:
            assert session.run(total) == 2
    hr.dist.Server(SPEC, "ps").join()


@pytest.mark.needs("backend-cpu")
def test_a_local_server_has_one_task() -> None:
    server = hr.dist.Server.create_local_server(start=False)
    with pytest.raises(ClusterError, match="the server was not started"):
        _ = server.target
    server.start()
    cluster = server.cluster
    server.start()
    assert server.cluster is cluster
    assert (cluster.job_name, cluster.task_index, cluster.is_chief) == ("local", 0, True)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ((SPEC,), AttributeValueError, r"job_name must say which of \['ps', 'worker'\]"),
        ((SPEC, "worker"), AttributeValueError, "has 2 tasks: task_index must say which"),
        ((SPEC, "chief"), ClusterError, "has no task '/job:chief/task:0'"),
        ((SPEC, "ps", 3), ClusterError, "has no task '/job:ps/task:3'"),
        (([1],), DTypeError, r"is described by a dictionary.*got \[1\]"),
        (({"ps": 3},), DTypeError, "is described by a dictionary"),
        (
            (SPEC, "ps", 0, "grpc", "config"),
            ConfigError,
            "an hr.Config or an hr.ConfigProto, got 'c",
        ),
    ],
)
def test_what_is_no_task_is_refused(arguments: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        hr.dist.Server(*arguments)


# What TensorFlow 1.15.5 prints of ``tf.train.Server(..., start=False).server_def``.
SERVER_DEF = """cluster {
  job {
    name: "ps"
    tasks {
      key: 0
      value: "a:1"
    }
  }
  job {
    name: "worker"
    tasks {
      key: 0
      value: "b:1"
    }
    tasks {
      key: 1
      value: "c:2"
    }
  }
}
job_name: "worker"
task_index: 1
default_session_config {
  allow_soft_placement: true
}
protocol: "grpc"
"""


@pytest.mark.needs("train")
def test_a_server_is_described_as_tensorflow_describes_it() -> None:
    cluster = {"ps": ["a:1"], "worker": ["b:1", "c:2"]}
    config = hr.ConfigProto(allow_soft_placement=True)
    server = hr.train.Server(cluster, "worker", 1, config=config, start=False)
    described = server.server_def
    assert str(described) == SERVER_DEF
    assert isinstance(described, hr.train.ServerDef)
    again = hr.train.Server(described, start=False)
    assert again.server_def == described
    other = hr.train.Server(described, job_name="ps", task_index=0, protocol="mpi", start=False)
    assert (other.server_def.job_name, other.server_def.protocol) == ("ps", "mpi")
    local = hr.train.Server.create_local_server(start=False).server_def
    assert (local.job_name, local.cluster.job[0].tasks[0]) == ("local", "localhost:0")
    assert not local.HasField("default_session_config")
    with pytest.raises(DTypeError, match="a ServerDef must say of which cluster"):
        hr.train.Server(hr.train.ServerDef(job_name="ps"), start=False)


@pytest.mark.needs("train", "backend-cpu")
def test_sessions_on_a_server_have_its_settings_unless_they_are_given_some() -> None:
    proto = hr.ConfigProto(
        allow_soft_placement=True,
        operation_timeout_in_ms=1500,
        intra_op_parallelism_threads=1,
        device_count={"CPU": 2, "GPU": 0, "TPU": 8},
    )
    proto.graph_options.optimizer_options.opt_level = hr.OptimizerOptions.L0
    proto.graph_options.enable_bfloat16_sendrecv = True
    wanted = hr.Config(
        allow_soft_placement=True,
        timeout=1.5,
        threads=1,
        optimize=False,
        compress_transfers="bfloat16",
        device_count={"cpu": 2, "cuda": 0},
    )
    for config in (proto, wanted):
        described = hr.train.Server(SPEC, "worker", 0, config=config, start=False).server_def
        server = hr.train.Server(described)
        with hr.Session(server.target) as session:
            assert session.config == wanted
        with hr.Session(server.target, config=hr.Config()) as session:
            assert session.config == hr.Config()
    with hr.Session() as session:
        assert session.config == hr.Config()
    described.default_session_config.device_filters.append("/job:ps")
    with pytest.raises(ConfigError, match=r"ConfigProto\.device_filters asks for what Headrace do"):
        hr.train.Server(described, start=False)


def test_tf_config_names_cluster_and_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    assert hr.dist.tf_config() == ({}, "", 0)
    text = json.dumps({"cluster": SPEC, "task": {"type": "worker", "index": 1}})
    monkeypatch.setenv("TF_CONFIG", text)
    assert hr.dist.tf_config() == (SPEC, "worker", 1)
    assert hr.dist.tf_config('{"task": {"type": "evaluator"}}') == ({}, "evaluator", 0)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("{", "TF_CONFIG is no JSON"),
        ("[1]", "must be an object with the objects 'cluster' and 'task'"),
        ('{"cluster": 3}', "must be an object with the objects 'cluster' and 'task'"),
        ('{"task": {"type": 3}}', "a task has a 'type', the name of its job, and an 'index'"),
        ('{"task": {"type": "ps", "index": "0"}}', "a task has a 'type'"),
        (
            '{"cluster": {"ps": ["a"]}, "task": {"type": "ps", "index": 1}}',
            "has no task 1 of job 'ps', it has ps: 1",
        ),
    ],
)
def test_a_tf_config_that_says_nothing_clear_is_refused(text: str, match: str) -> None:
    with pytest.raises(ClusterError, match=match):
        hr.dist.tf_config(text)


PROGRAM = """
import json, os
import headrace as hr

rank = int(os.environ["OMPI_COMM_WORLD_RANK"])
# The ranks play other tasks than they would in order.
task = [("worker", 1), ("worker", 0), ("ps", 0)][rank]
cluster = {"ps": ["a:1"], "worker": ["b:1", "c:1"]}
played = {"type": task[0], "index": task[1]}
os.environ["TF_CONFIG"] = json.dumps({"cluster": cluster, "task": played})
config = hr.dist.tf_config()
server = hr.dist.Server(config.cluster, config.job_name, config.task_index)
if config.job_name == "ps":
    server.join()
elif config.task_index == 0:
    with hr.device("/job:ps/task:0"):
        v = hr.Variable(3.0)
    with hr.device("/job:worker/task:1"):
        y = v * 2.0
    with hr.Session(server.target) as session:
        session.run(v.initializer)
        print(rank, session.run(y))
"""


@pytest.mark.slow
@pytest.mark.needs("mpi", "backend-cpu")
def test_ranks_play_the_tasks_that_tf_config_names(run_program: RunProgram) -> None:
    done = run_program(3, PROGRAM)
    assert done.code == 0, done
    assert "1 6.0" in done.out
