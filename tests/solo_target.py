"""A plugin of the tests: sessions on several tasks, all of which this process plays.

``with use_host(host().with_plugin("solo", "tests.solo_target"))`` lets sessions open the target
``SOLO``. A cluster does the same in a process without ranks, but starts MPI.
"""

from __future__ import annotations

from typing import Any

from headrace.extend.plugins import hookimpl

SOLO = "solo:"
TASKS = ("/job:worker/task:0", "/job:ps/task:0", "/job:ps/task:1")


def _open(target: str, config: Any) -> Any:
    from headrace_mpi.jobs import ps_and_workers
    from headrace_mpi.node import SoloNode

    jobs = ps_and_workers(2, 1)
    return SoloNode(jobs, jobs.chief).open_runtime(config.options)


@hookimpl
def headrace_register_targets(registry: Any) -> None:
    """Add the target."""
    registry.add("solo", _open)
