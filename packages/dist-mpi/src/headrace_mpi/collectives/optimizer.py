"""``DistributedOptimizer``: an optimizer whose gradients are the means of those of all ranks."""

from __future__ import annotations

from typing import Any, final

import headrace as hr
from headrace import DType, IndexedSlices
from headrace.errors import ArgumentTypeError, AttributeValueError, shown
from headrace_mpi.collectives.functions import DEFAULT_BUCKET_BYTES, bucketed_all_reduce

_COMPRESSIONS: dict[str | None, DType | None] = {
    None: None,
    "bfloat16": hr.bfloat16,
    "float16": hr.float16,
}


@final
class DistributedOptimizer(hr.train.Optimizer):
    """An optimizer whose gradients are the means of those of all ranks.

    Each rank computes the gradients of its share of the batch, and all apply the same means, so
    variables that start alike stay alike; let ``broadcast_global_variables`` make them so. The
    habits are Horovod's (Sergeev and Del Balso, Horovod: fast and easy distributed deep learning in
    TensorFlow, 2018).

    Example:
        ::

            opt = hr.dist.DistributedOptimizer(hr.train.MomentumOptimizer(0.1, 0.9))
            train = opt.minimize(loss)
            hooks = [hr.dist.BroadcastGlobalVariablesHook(0)]
            with hr.train.MonitoredTrainingSession(hooks=hooks) as session:
                session.run(train)
    """

    def __init__(
        self,
        opt: Any,
        compression: str | None = None,
        bucket_bytes: int = DEFAULT_BUCKET_BYTES,
        name: str | None = None,
    ) -> None:
        """Wrap an optimizer.

        Args:
            opt: Applies the means.
            compression: ``"bfloat16"`` or ``"float16"`` to let float32 and float64 gradients
                travel as such; they are added up as float32.
            bucket_bytes: Up to how many bytes of gradients travel together.
            name: Prefix of what is built; ``Distributed`` with the optimizer's class if None.

        Raises:
            ArgumentTypeError: if ``opt`` is no optimizer.
            AttributeValueError: if there is no such compression, or no bucket of that size.
        """
        if not isinstance(opt, hr.train.Optimizer):
            raise ArgumentTypeError(f"opt must be an optimizer, got {type(opt).__name__}")
        if compression not in _COMPRESSIONS:
            raise AttributeValueError(
                "compression must be None, 'bfloat16' or 'float16', got " + shown(compression)
            )
        if type(bucket_bytes) is not int or bucket_bytes < 0:
            raise AttributeValueError(
                f"bucket_bytes must be a number of bytes >= 0, got {shown(bucket_bytes)}"
            )
        super().__init__(False, name or f"Distributed{type(opt).__name__}")
        self._optimizer = opt
        self._travels_as = _COMPRESSIONS[compression]
        self._bucket_bytes = bucket_bytes

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """Return pairs of the mean gradient of all ranks and variable.

        Takes what the optimizer's own ``compute_gradients`` does. Where the loss does not depend
        on a variable, which must be so on all ranks, there is None.
        """
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        with hr.name_scope(f"{self._name}_all_reduce"):
            return [(self._mean(gradient), variable) for gradient, variable in pairs]

    def _mean(self, gradient: Any) -> Any:
        if gradient is None:
            return None
        dtype = gradient.dtype
        narrow = self._travels_as
        if narrow is None or not dtype.is_floating or dtype.itemsize <= narrow.itemsize:
            return bucketed_all_reduce(gradient, "mean", self._bucket_bytes)
        if isinstance(gradient, IndexedSlices):
            values = hr.cast(gradient.values, narrow)
            sent = IndexedSlices(values, gradient.indices, gradient.dense_shape)
            mean = bucketed_all_reduce(sent, "mean", self._bucket_bytes)
            return IndexedSlices(hr.cast(mean.values, dtype), mean.indices, mean.dense_shape)
        sent = hr.cast(gradient, narrow)
        return hr.cast(bucketed_all_reduce(sent, "mean", self._bucket_bytes), dtype)

    def apply_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """Return an operation that changes variables; the optimizer's own."""
        return self._optimizer.apply_gradients(*args, **kwargs)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """Return a variable of the optimizer's state; the optimizer's own."""
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args: Any, **kwargs: Any) -> Any:
        """Return the names of the optimizer's state per variable; the optimizer's own."""
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args: Any, **kwargs: Any) -> Any:
        """Return the variables of the optimizer's state; the optimizer's own."""
        return self._optimizer.variables(*args, **kwargs)
