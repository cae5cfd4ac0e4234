"""Models on clusters: what tasks there are, and which of them keeps a variable."""

from headrace_train.clusters.device_setter import replica_device_setter as replica_device_setter
from headrace_train.clusters.spec import ClusterSpec as ClusterSpec
from headrace_train.clusters.strategies import (
    GreedyLoadBalancingStrategy as GreedyLoadBalancingStrategy,
)
from headrace_train.clusters.strategies import RandomStrategy as RandomStrategy
from headrace_train.clusters.strategies import RoundRobinStrategy as RoundRobinStrategy
from headrace_train.clusters.strategies import byte_size_load_fn as byte_size_load_fn
