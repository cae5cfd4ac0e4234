"""Functions that change variables: each write is one atomic change, locking or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import GraphError, ShapeError, shown
from headrace.graph.collections import GraphKeys
from headrace.graph.convert import constant_of, convert_to_tensor
from headrace.graph.graph_scopes import checked_name
from headrace.graph.schema import OPERATORS
from headrace.graph.scopes import beside, control_dependencies, get_default_graph, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import broadcast_to, reshape
from headrace.ops.array import shape as shape_op
from headrace.ops.constant import range as range_op
from headrace.ops.conversion import cast
from headrace.ops.elementwise import logical_not
from headrace.ops.gather import boolean_mask
from headrace.ops.joining import stack
from headrace.ops.state import (
    assign_add_variable,
    assign_sub_variable,
    assign_variable,
    content_of,
    count_up_to_variable,
    read_variable,
    scatter_add_variable,
    scatter_div_variable,
    scatter_max_variable,
    scatter_min_variable,
    scatter_mul_variable,
    scatter_nd_add_variable,
    scatter_nd_sub_variable,
    scatter_nd_update_variable,
    scatter_sub_variable,
    scatter_update_variable,
    variable_initialized,
)

if TYPE_CHECKING:
    from headrace.ops.variable import Variable


# What yields the new value of the variable that it changes.
_WRITES = {
    "StridedSliceAssign",
    *("AssignVariable", "AssignAddVariable", "AssignSubVariable"),
    *("ScatterUpdateVariable", "ScatterAddVariable", "ScatterSubVariable"),
    *("ScatterMulVariable", "ScatterDivVariable", "ScatterMinVariable", "ScatterMaxVariable"),
    *("ScatterNdUpdateVariable", "ScatterNdAddVariable", "ScatterNdSubVariable"),
}


class _Unlisted:
    """A variable that no list of a graph has, such as an imported one, as writes need it."""

    def __init__(self, handle: Tensor) -> None:
        self.handle = handle
        self.dtype = content_of(handle.spec).dtype
        self.op_name = handle.op.name


def _checked(ref: Any) -> Variable:
    """Return what must be a variable, or stand for one.

    Its handle does, which graphs find by its name, and so does what a change of it yields.

    Raises:
        GraphError: if it is something else.
    """
    if _is_written(ref):
        ref = ref.op.inputs[0]
    if isinstance(ref, Tensor) and ref.spec.content is not None:
        found = next((v for v in ref.graph.variables if v.handle is ref), None)
        ref = _Unlisted(ref) if found is None else found
    handle = getattr(ref, "handle", None)
    if not isinstance(handle, Tensor) or handle.spec.content is None:
        raise GraphError(
            f"expected a Variable to assign to, got {shown(ref)}; tensors do not change, make it "
            "with hr.Variable or hr.get_variable"
        )
    variable: Variable = ref
    return variable


def _is_written(ref: Any) -> bool:
    """Whether something is the new value that a change of a variable yields."""
    return isinstance(ref, Tensor) and ref.op.type in _WRITES


def _upon(ref: Any, handle: Tensor) -> AbstractContextManager[Any]:
    """Change a variable in the block, after the change that stands for it, if one does."""
    if not _is_written(ref):
        return beside(handle)
    scopes = ExitStack()
    scopes.enter_context(beside(handle))
    scopes.enter_context(control_dependencies([ref]))
    return scopes


def read_written(written: Tensor) -> Tensor:
    """Read a variable again, after a change of it.

    Args:
        written: The new value that the change yields.

    Raises:
        GraphError: if no change of a variable yields it.
    """
    handle = _checked(written).handle
    with _upon(written, handle):
        return read_variable(handle, name="read")


def _operand(value: Any, variable: Variable, name: str) -> Tensor:
    """Return what a variable is changed by as a tensor; a constant gets the name."""
    return convert_to_tensor(value, None, name.replace("//", "/"), variable.dtype)


def _part(name: str, part: str) -> str:
    """Return the name of what a node named so is made of."""
    return f"{checked_name(name)}/{part}"


def assign(
    ref: Any,
    value: Any,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """Replace the value of a variable.

    Args:
        ref: The variable, or what indexing it gave, to replace that part; or what another such
            function returned, to change the variable after that.
        value: The new value, of its dtype and shape.
        validate_shape: False to allow another shape, for variables made so.
        use_locking: Ignored; every write is atomic.
        name: The name of the operation.

    Returns:
        The new value.
    """
    if isinstance(ref, Tensor) and ref.op.type == "StridedSlice":
        return OPERATORS["assign_slice"](ref, value, name)  # type: ignore[no-any-return]
    return _assigned(ref, value, name, validate_shape is not False)


def _assigned(ref: Any, value: Any, name: str | None = None, validate: bool = True) -> Tensor:
    """Replace the value of a variable, or of what stands for one."""
    variable = _checked(ref)
    update = _operand(value, variable, _part(name or "Assign", "value"))
    with _upon(ref, variable.handle):
        return assign_variable(variable.handle, update, validate, name=name or "Assign")


def assign_add(
    ref: Variable, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """Add to a variable.

    Args:
        ref: The variable.
        value: What to add, of its dtype and shape.
        use_locking: Ignored; every write is atomic.
        name: The name of the operation.

    Returns:
        The new value.
    """
    variable = _checked(ref)
    update = _operand(value, variable, _part(name or "AssignAdd", "value"))
    with _upon(ref, variable.handle):
        return assign_add_variable(variable.handle, update, name=name or "AssignAdd")


def assign_sub(
    ref: Variable, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """Subtract from a variable.

    Args:
        ref: The variable.
        value: What to subtract, of its dtype and shape.
        use_locking: Ignored; every write is atomic.
        name: The name of the operation.

    Returns:
        The new value.
    """
    variable = _checked(ref)
    update = _operand(value, variable, _part(name or "AssignSub", "value"))
    with _upon(ref, variable.handle):
        return assign_sub_variable(variable.handle, update, name=name or "AssignSub")


def _scatter(
    op: Callable[..., Tensor], ref: Variable, indices: Any, updates: Any, name: str
) -> Tensor:
    """Add a node that changes some rows or slices of a variable."""
    variable = _checked(ref)
    rows = convert_to_tensor(indices, name=_part(name, "indices"))
    values = _operand(updates, variable, _part(name, "updates"))
    with _upon(ref, variable.handle):
        return op(variable.handle, rows, values, name=name)


def scatter_update(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Tensor:
    """Replace rows of a variable; of rows named twice one wins.

    Args:
        ref: A variable [rows, ...].
        indices: [n...], int32 or int64, the row of each update.
        updates: [n..., ...], of the variable's dtype, or a scalar for all rows.
        use_locking: Ignored; every write is atomic.
        name: The name of the operation.

    Returns:
        The new value of the whole variable.

    Raises:
        ExecutionError: if an index is no row, when it runs; the variable is not changed.
    """
    return _scatter(scatter_update_variable, ref, indices, updates, name or "ScatterUpdate")


def scatter_add(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Add to rows of a variable; updates of rows named twice add up.

    Args:
        ref: A variable [rows, ...].
        indices: [n...], int32 or int64, the row of each update.
        updates: [n..., ...], of the variable's dtype, or a scalar for all rows.
        use_locking: Ignored; every write is atomic.
        name: The name of the operation.

    Returns:
        The new value of the whole variable.

    Raises:
        ExecutionError: if an index is no row, when it runs; the variable is not changed.
    """
    return _scatter(scatter_add_variable, ref, indices, updates, name or "ScatterAdd")


def scatter_sub(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Subtract from rows of a variable; updates of rows named twice add up.

    Args:
        ref: A variable [rows, ...].
        indices: [n...], int32 or int64, the row of each update.
        updates: [n..., ...], of the variable's dtype, or a scalar for all rows.
        use_locking: Ignored; every write is atomic.
        name: The name of the operation.

    Returns:
        The new value of the whole variable.

    Raises:
        ExecutionError: if an index is no row, when it runs; the variable is not changed.
    """
    return _scatter(scatter_sub_variable, ref, indices, updates, name or "ScatterSub")


def scatter_mul(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Multiply rows of a variable; rows named twice are multiplied twice.

    Args:
        ref: A variable [rows, ...].
        indices: [n...], int32 or int64, the row of each update.
        updates: [n..., ...], of the variable's dtype, or a scalar for all rows.
        use_locking: Ignored; every write is atomic.
        name: The name of the operation.

    Returns:
        The new value of the whole variable.

    Raises:
        ExecutionError: if an index is no row, when it runs; the variable is not changed.
    """
    return _scatter(scatter_mul_variable, ref, indices, updates, name or "ScatterMul")


def scatter_div(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Divide rows of a variable; rows named twice are divided twice.

    Quotients of integers are rounded towards zero.

    Args:
        ref: A variable [rows, ...].
        indices: [n...], int32 or int64, the row of each update.
        updates: [n..., ...], of the variable's dtype, or a scalar for all rows.
        use_locking: Ignored; every write is atomic.
        name: The name of the operation.

    Returns:
        The new value of the whole variable.

    Raises:
        ExecutionError: if an index is no row or an integer is divided by zero, when it runs; the
            variable is not changed.
    """
    return _scatter(scatter_div_variable, ref, indices, updates, name or "ScatterDiv")


def scatter_min(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Lower the elements of rows of a variable to updates that are less.

    Args:
        ref: A variable [rows, ...], real.
        indices: [n...], int32 or int64, the row of each update.
        updates: [n..., ...], of the variable's dtype, or a scalar for all rows.
        use_locking: Ignored; every write is atomic.
        name: The name of the operation.

    Returns:
        The new value of the whole variable.

    Raises:
        ExecutionError: if an index is no row, when it runs; the variable is not changed.
    """
    return _scatter(scatter_min_variable, ref, indices, updates, name or "ScatterMin")


def scatter_max(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Raise the elements of rows of a variable to updates that are greater.

    Args:
        ref: A variable [rows, ...], real.
        indices: [n...], int32 or int64, the row of each update.
        updates: [n..., ...], of the variable's dtype, or a scalar for all rows.
        use_locking: Ignored; every write is atomic.
        name: The name of the operation.

    Returns:
        The new value of the whole variable.

    Raises:
        ExecutionError: if an index is no row, when it runs; the variable is not changed.
    """
    return _scatter(scatter_max_variable, ref, indices, updates, name or "ScatterMax")


def scatter_nd_update(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Tensor:
    """Replace elements or slices of a variable; of equal indices one wins.

    Args:
        ref: A variable.
        indices: [n..., depth], int32 or int64, indices along its first ``depth`` axes.
        updates: [n..., ...] with its other axes, of its dtype.
        use_locking: Ignored; every write is atomic.
        name: The name of the operation.

    Returns:
        The new value of the whole variable.

    Raises:
        ExecutionError: if an index is out of range, when it runs; the variable is not changed.
    """
    return _scatter(scatter_nd_update_variable, ref, indices, updates, name or "ScatterNdUpdate")


def scatter_nd_add(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Add to elements or slices of a variable; updates of equal indices add up.

    Args:
        ref: A variable.
        indices: [n..., depth], int32 or int64, indices along its first ``depth`` axes.
        updates: [n..., ...] with its other axes, of its dtype.
        use_locking: Ignored; every write is atomic.
        name: The name of the operation.

    Returns:
        The new value of the whole variable.

    Raises:
        ExecutionError: if an index is out of range, when it runs; the variable is not changed.
    """
    return _scatter(scatter_nd_add_variable, ref, indices, updates, name or "ScatterNdAdd")


def scatter_nd_sub(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = False, name: str | None = None
) -> Tensor:
    """Subtract from elements or slices of a variable; updates of equal indices add up.

    Args:
        ref: A variable.
        indices: [n..., depth], int32 or int64, indices along its first ``depth`` axes.
        updates: [n..., ...] with its other axes, of its dtype.
        use_locking: Ignored; every write is atomic.
        name: The name of the operation.

    Returns:
        The new value of the whole variable.

    Raises:
        ExecutionError: if an index is out of range, when it runs; the variable is not changed.
    """
    return _scatter(scatter_nd_sub_variable, ref, indices, updates, name or "ScatterNdSub")


def batch_scatter_update(
    ref: Variable, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Tensor:
    """Replace rows of each matrix or block of a batch that a variable holds.

    Args:
        ref: A variable [batch..., rows, ...].
        indices: [batch..., n], int32 or int64, rows in each part of the batch.
        updates: [batch..., n, ...], of the variable's dtype.
        use_locking: Ignored; every write is atomic.
        name: The name of the operations.

    Returns:
        The new value of the whole variable.

    Raises:
        ShapeError: if the number of dimensions of ``indices`` is not known.
        ExecutionError: if an index is out of range, when it runs; the variable is not changed.
    """
    variable = _checked(ref)
    with name_scope(name):
        rows = convert_to_tensor(indices)
        rank = rows.shape.rank
        if not rank:
            raise ShapeError(
                f"indices must have a known number of dimensions above 0, got {shown(rows)}"
            )
        sizes = shape_op(rows)
        columns = []
        for axis in range(rank - 1):
            places = cast(range_op(sizes[axis]), rows.dtype)
            view = [-1 if i == axis else 1 for i in range(rank)]
            columns.append(broadcast_to(reshape(places, view), sizes))
        where = stack([*columns, rows], -1)
        return scatter_nd_update(variable, where, updates, use_locking)


def count_up_to(ref: Variable, limit: int, name: str | None = None) -> Tensor:
    """Increment a scalar integer variable up to a limit.

    Args:
        ref: A scalar variable, int32 or int64.
        limit: Where to stop.
        name: The name of the operation.

    Returns:
        [], the value from before.

    Raises:
        OutOfRangeError: if the variable has reached the limit, when it runs.
    """
    variable = _checked(ref)
    with _upon(ref, variable.handle):
        return count_up_to_variable(variable.handle, limit, name=name)


def is_variable_initialized(variable: Variable, name: str | None = None) -> Tensor:
    """Return whether a variable has a value, as a scalar bool tensor.

    Args:
        variable: The variable.
        name: The name of the operation.
    """
    handle = _checked(variable).handle
    with _upon(variable, handle):
        return variable_initialized(handle, name=name or "IsVariableInitialized")


def report_uninitialized_variables(
    var_list: Iterable[Variable] | None = None, name: str | None = "report_uninitialized_variables"
) -> Tensor:
    """Return the names of the variables that have no value.

    Args:
        var_list: The variables; all global and local ones of the default graph if None.
        name: The name of the operations.

    Returns:
        [n], string.
    """
    if var_list is None:
        graph = get_default_graph().outermost
        keys = (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES)
        var_list = dict.fromkeys(v for key in keys for v in graph.get_collection(key))
    variables = [_checked(v) for v in var_list]
    with name_scope(name, "report_uninitialized_variables"):
        names = np.array([v.op_name.encode() for v in variables], object)
        if not variables:
            return constant_of(names, "Const")
        listed = constant_of(names, "names")
        with_value = stack([is_variable_initialized(v) for v in variables])
        return boolean_mask(listed, logical_not(with_value))


OPERATORS["assign_written"] = _assigned
OPERATORS["add_written"] = assign_add
OPERATORS["subtract_written"] = assign_sub
OPERATORS["read_written"] = read_written
