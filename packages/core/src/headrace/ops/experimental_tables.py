"""Tables under the names of ``hr.lookup.experimental``."""

from headrace.ops.tables import MutableDenseHashTable as DenseHashTable

__all__ = ["DenseHashTable"]
