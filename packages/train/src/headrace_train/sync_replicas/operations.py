"""What synchronous training has in a graph, for its hook and for whoever looks at it."""

from __future__ import annotations

from typing import NamedTuple

from headrace import Operation, Tensor


class SyncReplicasCounters(NamedTuple):
    """What has happened so far, as scalar tensors.

    Attributes:
        applied: int64: how many gradients were applied.
        dropped: int64: how many were refused, and did not travel.
        waited: int64: how often a replica had to wait for the next step.
        waited_secs: float64: how many seconds replicas have waited together.
        replicas: int64: how many replicas have not left.
    """

    applied: Tensor
    dropped: Tensor
    waited: Tensor
    waited_secs: Tensor
    replicas: Tensor


class SyncReplicasOperations(NamedTuple):
    """What the hook runs at the end.

    Attributes:
        leave: Takes the replica out.
        end: Ends the training of all.
        counts: [7], int64, what ``sync_replicas_counters`` yields.
    """

    leave: Operation
    end: Operation
    counts: Tensor
