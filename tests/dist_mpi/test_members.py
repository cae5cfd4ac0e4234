"""What ranks tell each other, and what they refuse of one another."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.errors import ClusterError
from headrace.extend.devices import DeviceName
from headrace.extend.runtime import Engine
from headrace_mpi.jobs import Jobs
from headrace_mpi.membership import members
from headrace_mpi.membership.members import Member, introduce, meet

MEMBER = Member(
    3,
    "höst",
    77,
    "ps: 1, worker: 3",
    "/job:worker/task:2",
    "headrace-core 0.1.0, Python 3.12",
    ("/job:ps/task:0/device:cpu:0",),
    {"cpu": 0},
)


OTHER = (
    r"their versions:\n  headrace-core 0\.1\.0, Python 3\.12: ranks 0, 1\n"
    r"  headrace-core 0\.2\.0, Python 3\.12: ranks 2\n  run the same program with the same packages"
)


def test_a_member_survives_its_journey() -> None:
    assert Member.unpack(MEMBER.pack()) == MEMBER


@pytest.mark.needs("backend-cpu")
def test_a_rank_tells_its_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    task = DeviceName("worker", 0)
    monkeypatch.setattr(members, "_COMPARED", ("numpy", "headrace-of-nowhere"))
    told = introduce(0, Jobs((("worker", 1),)), task, Engine(task).machine())
    assert told.versions.startswith("numpy ")
    assert ", headrace-of-nowhere not installed, Python 3." in told.versions


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"versions": "headrace-core 0.2.0, Python 3.12"},
            OTHER,
        ),
        ({"jobs": "ps: 2, worker: 2"}, r"the jobs of the cluster:\n  ps: 1, worker: 3: ranks 0"),
        ({"on_worker_loss": "continue"}, r"on_worker_loss:\n  end: ranks 0, 1"),
        ({"task": "/job:ps/task:0"}, r"who plays which task .*:\n  /job:ps/task:0: ranks 0, 2"),
    ],
)
def test_ranks_that_do_not_agree_are_refused(
    change: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = ("/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1")
    told = [replace(MEMBER, rank=rank, task=task) for rank, task in enumerate(tasks)]
    told[2] = replace(told[2], **change)
    monkeypatch.setattr(members, "gather", lambda comm, data: [one.pack() for one in told])
    comm: Any = SimpleNamespace()
    with pytest.raises(ClusterError, match=message):
        meet(comm, told[0])
