"""What headrace-dist-mpi adds: ``dist``, collectives, targets of clusters, the launcher."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from headrace.extend import hookimpl

if TYPE_CHECKING:
    from headrace import Config
    from headrace.extend import (
        CommandRegistry,
        GradientRegistry,
        KernelRegistry,
        NameRegistry,
        SettingRegistry,
        TargetRegistry,
    )
    from headrace.extend.passes import PassContext, PassRegistry, StepGraph
    from headrace.extend.runtime import Runtime

# The version of the plugin interface that this is written for.
headrace_api = 1

# The module that declares the ops.
_OPS = "headrace_mpi.ops.collective"


@hookimpl
def headrace_declare_ops() -> None:
    """Declare the ops."""
    # lazy: a program without them declares none
    from importlib import import_module

    import_module(_OPS)


@hookimpl
def headrace_register_kernels(registry: KernelRegistry) -> None:
    """Add the kernels of collectives, which run on the host."""
    registry.add_later("cpu", "headrace_mpi.kernels.collective:KERNELS")


@hookimpl
def headrace_register_gradients(registry: GradientRegistry) -> None:
    """Add the gradients of collectives."""
    # lazy: rules are needed when gradients are first asked for
    from headrace_mpi.rules.collective import RULES

    registry.add(RULES)


@hookimpl
def headrace_register_passes(registry: PassRegistry) -> None:
    """Add the passes that find products in sums, and that order and pack collectives."""
    registry.add_pass("inline", _sum_factors, name="sum-factors")
    registry.add_pass("inline", _plan_collectives, name="plan-collectives")


def _has_collectives(step: StepGraph) -> bool:
    """Whether there are collectives in a step, or in a function of it."""
    if _OPS not in sys.modules:
        return False
    # lazy: it is there, as something has asked for the ops
    from headrace.extend.graphs import functions_in
    from headrace_mpi.ops.collective import COLLECTIVES

    graphs = (step.graph, *functions_in(step.graph))
    return any(op.type in COLLECTIVES for graph in graphs for op in graph.operations)


def _sum_factors(step: StepGraph, context: PassContext) -> StepGraph:
    if not _has_collectives(step):
        return step
    # lazy: most programs have no collectives
    from headrace_mpi.collectives.factors import sum_factors

    return sum_factors(step, context)


def _plan_collectives(step: StepGraph, context: PassContext) -> StepGraph:
    if not _has_collectives(step):
        return step
    # lazy: most programs have no collectives
    from headrace_mpi.collectives.planning import plan_collectives

    return plan_collectives(step, context)


@hookimpl
def headrace_register_settings(registry: SettingRegistry) -> None:
    """Add what the package reads from the environment."""
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_mpi.settings import SETTINGS

    registry.add(*SETTINGS)


@hookimpl
def headrace_register_names(registry: NameRegistry) -> None:
    """Add ``headrace.dist``, and what TensorFlow has beside its training."""
    registry.add("dist", "headrace_mpi")
    registry.add("train.Server", "headrace_mpi.server:Server")


@hookimpl
def headrace_register_commands(registry: CommandRegistry) -> None:
    """Add the command that starts ranks, which ``run`` calls for programs, and one for records."""
    registry.add(
        "launch",
        "headrace_mpi.launcher.main:main",
        "run a program on several ranks; the same as run -n N program.py",
    )
    registry.add(
        "flight",
        "headrace_mpi.flight.command:main",
        "tell from the flight records of a job's ranks which frames never came",
    )


@hookimpl
def headrace_register_targets(registry: TargetRegistry) -> None:
    """Add the targets of clusters."""
    registry.add("mpi", _open)


def _open(target: str, config: Config) -> Runtime:
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_mpi.cluster import open_target

    return open_target(target, config.options)


@hookimpl
def headrace_diagnose() -> dict[str, object]:
    """Report mpi4py, the MPI library and the launcher, without starting MPI."""
    # lazy: an entry point is imported with every plugin, and must cost nothing
    from headrace_mpi.diagnosis import diagnose

    return diagnose()
