"""Synchronous training: replicas whose gradients are applied together."""

from headrace_train.sync_replicas.operations import SyncReplicasCounters as SyncReplicasCounters
from headrace_train.sync_replicas.optimizer import SyncReplicasOptimizer as SyncReplicasOptimizer
