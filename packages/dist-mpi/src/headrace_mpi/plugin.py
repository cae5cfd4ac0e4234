"""What headrace-dist-mpi adds to Headrace: ``dist``, targets of clusters, and facts for doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.extend import hookimpl

if TYPE_CHECKING:
    from headrace.extend import NameRegistry
    from headrace.runtime.runtime import Runtime
    from headrace.session.config import Config


@hookimpl
def headrace_register_names(registry: NameRegistry) -> None:
    """Add ``headrace.dist``."""
    registry.add("dist", "headrace_mpi")


@hookimpl
def headrace_open_runtime(target: str, config: Config) -> Runtime | None:
    """Open the targets of clusters."""
    if not target.startswith("mpi:"):
        return None
    from headrace_mpi.cluster import open_target

    return open_target(target, config.options)


@hookimpl
def headrace_diagnose() -> dict[str, object]:
    """Report mpi4py, the MPI library and the launcher, without starting MPI."""
    from headrace_mpi.diagnosis import diagnose

    return diagnose()
