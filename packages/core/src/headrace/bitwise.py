"""Functions of the bits of integers, as ``hr.bitwise``."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace.ops.bits import bitwise_and as bitwise_and
from headrace.ops.bits import bitwise_or as bitwise_or
from headrace.ops.bits import bitwise_xor as bitwise_xor
from headrace.ops.bits import invert as invert
from headrace.ops.bits import left_shift as left_shift
from headrace.ops.bits import population_count as population_count
from headrace.ops.bits import right_shift as right_shift
from headrace.plugins.namespaces import added_names as _added_names

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("bitwise", __name__)
