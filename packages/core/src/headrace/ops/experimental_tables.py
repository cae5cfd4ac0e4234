"""Tables under the names of ``hr.lookup.experimental``, with the arguments of TensorFlow."""

from __future__ import annotations

from typing import Any

from headrace.ops.tables import MutableDenseHashTable

__all__ = ["DenseHashTable"]


class DenseHashTable(MutableDenseHashTable):
    """A ``MutableDenseHashTable`` whose name in its container is its own."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
    ) -> None:
        """Make a table; the arguments are those of ``MutableDenseHashTable`` but for one."""
        super().__init__(
            key_dtype,
            value_dtype,
            default_value,
            empty_key,
            deleted_key,
            initial_num_buckets,
            name=name,
            checkpoint=checkpoint,
        )
