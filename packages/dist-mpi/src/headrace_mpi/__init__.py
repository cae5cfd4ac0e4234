"""Headrace graphs across MPI ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.extend.plugins import added_names

if TYPE_CHECKING:
    from headrace_mpi.cluster import Cluster as Cluster
    from headrace_mpi.collectives.broadcasting import (
        BroadcastGlobalVariablesHook as BroadcastGlobalVariablesHook,
    )
    from headrace_mpi.collectives.broadcasting import (
        broadcast_global_variables as broadcast_global_variables,
    )
    from headrace_mpi.collectives.broadcasting import broadcast_variables as broadcast_variables
    from headrace_mpi.collectives.functions import all_gather as all_gather
    from headrace_mpi.collectives.functions import all_reduce as all_reduce
    from headrace_mpi.collectives.functions import all_to_all as all_to_all
    from headrace_mpi.collectives.functions import barrier as barrier
    from headrace_mpi.collectives.functions import broadcast as broadcast
    from headrace_mpi.collectives.functions import reduce_scatter as reduce_scatter
    from headrace_mpi.collectives.groups import local_rank as local_rank
    from headrace_mpi.collectives.groups import rank as rank
    from headrace_mpi.collectives.groups import size as size
    from headrace_mpi.collectives.optimizer import DistributedOptimizer as DistributedOptimizer
    from headrace_mpi.server import Server as Server
    from headrace_mpi.server import TaskConfig as TaskConfig
    from headrace_mpi.server import tf_config as tf_config
    from headrace_mpi.sharding.costs import ShardingCosts as ShardingCosts
    from headrace_mpi.sharding.costs import measure_costs as measure_costs
    from headrace_mpi.sharding.suggestion import suggest_shards as suggest_shards

# Module -> its public names. Modules are imported when a program first names one of these.
_FOUND_IN = {
    "cluster": "Cluster",
    "server": "Server TaskConfig tf_config",
    "collectives.broadcasting": (
        "BroadcastGlobalVariablesHook broadcast_global_variables broadcast_variables"
    ),
    "collectives.functions": ("all_gather all_reduce all_to_all barrier broadcast reduce_scatter"),
    "collectives.groups": "local_rank rank size",
    "collectives.optimizer": "DistributedOptimizer",
    "sharding.costs": "ShardingCosts measure_costs",
    "sharding.suggestion": "suggest_shards",
}

__all__: list[str] = []
__all__ += [name for names in _FOUND_IN.values() for name in names.split()]

if not TYPE_CHECKING:
    __getattr__, __dir__ = added_names("dist", __name__, _FOUND_IN)
