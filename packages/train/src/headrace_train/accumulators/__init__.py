"""Accumulators, which gather the gradients of several steps."""

from headrace_train.accumulators.base import (
    ConditionalAccumulatorBase as ConditionalAccumulatorBase,
)
from headrace_train.accumulators.dense import ConditionalAccumulator as ConditionalAccumulator
from headrace_train.accumulators.sparse import (
    SparseConditionalAccumulator as SparseConditionalAccumulator,
)
