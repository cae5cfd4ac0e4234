"""Assertions and questions about tensors, as ``hr.debugging``."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace.ops.assertions import assert_equal as assert_equal
from headrace.ops.assertions import assert_greater as assert_greater
from headrace.ops.assertions import assert_greater_equal as assert_greater_equal
from headrace.ops.assertions import assert_less as assert_less
from headrace.ops.assertions import assert_less_equal as assert_less_equal
from headrace.ops.assertions import assert_near as assert_near
from headrace.ops.assertions import assert_negative as assert_negative
from headrace.ops.assertions import assert_non_negative as assert_non_negative
from headrace.ops.assertions import assert_non_positive as assert_non_positive
from headrace.ops.assertions import assert_none_equal as assert_none_equal
from headrace.ops.assertions import assert_positive as assert_positive
from headrace.ops.assertions import is_non_decreasing as is_non_decreasing
from headrace.ops.assertions import is_strictly_increasing as is_strictly_increasing
from headrace.ops.checks import check_numerics as check_numerics
from headrace.ops.checks import verify_tensor_all_finite as assert_all_finite
from headrace.ops.elementwise import is_finite as is_finite
from headrace.ops.elementwise import is_inf as is_inf
from headrace.ops.elementwise import is_nan as is_nan
from headrace.ops.report import assert_true as Assert
from headrace.ops.shape_assertions import assert_integer as assert_integer
from headrace.ops.shape_assertions import assert_proper_iterable as assert_proper_iterable
from headrace.ops.shape_assertions import assert_rank as assert_rank
from headrace.ops.shape_assertions import assert_rank_at_least as assert_rank_at_least
from headrace.ops.shape_assertions import assert_rank_in as assert_rank_in
from headrace.ops.shape_assertions import assert_same_float_dtype as assert_same_float_dtype
from headrace.ops.shape_assertions import assert_scalar as assert_scalar
from headrace.ops.shape_assertions import assert_shapes as assert_shapes
from headrace.ops.shape_assertions import assert_type as assert_type
from headrace.ops.shape_assertions import is_numeric_tensor as is_numeric_tensor
from headrace.plugins.namespaces import added_names as _added_names

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("debugging", __name__)
