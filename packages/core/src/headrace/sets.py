"""Sets in the last dimension of tensors, as ``hr.sets``."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace.ops.sets import set_difference as difference
from headrace.ops.sets import set_difference as set_difference
from headrace.ops.sets import set_intersection as intersection
from headrace.ops.sets import set_intersection as set_intersection
from headrace.ops.sets import set_size as set_size
from headrace.ops.sets import set_size as size
from headrace.ops.sets import set_union as set_union
from headrace.ops.sets import set_union as union
from headrace.plugins.namespaces import added_names as _added_names

__all__ = [
    "difference",
    "intersection",
    "set_difference",
    "set_intersection",
    "set_size",
    "set_union",
    "size",
    "union",
]

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("sets", __name__)
