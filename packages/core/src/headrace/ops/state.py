"""State: handles to variables, and the ops that read and change what they hold.

Every read and every write is atomic per tensor. A read sees the writes that come before it along
data or control edges; what is not ordered so may happen in either order.
"""

from __future__ import annotations

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import AttributeValueError, DTypeError, ShapeError, told
from headrace.graph.spec import TensorSpec, handle_spec
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, Index, Resource
from headrace.shapes import Shape

_WRITES = "writing to a variable is no differentiable function"


def content_of(handle: TensorSpec) -> TensorSpec:
    """Return the spec of what a variable holds.

    Raises:
        DTypeError: if the handle is of another kind of resource.
    """
    if handle.content is None:
        raise DTypeError("expected a variable, got a handle to another kind of resource")
    return handle.content


@op("VarHandle", effects="reads", public="", no_gradient="it is the variable itself")
def var_handle(dtype: DType, shape: Shape, container: str, shared_name: str) -> Spec:
    """A handle to the variable of a name in a container of the device.

    Args:
        dtype: Dtype of what the variable holds.
        shape: Shape of what it holds, as far as fixed.
        container: The container; empty for the default one.
        shared_name: The variable's name in the container.

    Returns:
        [], a resource handle.
    """
    return handle_spec(TensorSpec(dtype, shape))


@op("ReadVariable", effects="reads", public="")
def read_variable(resource: Resource) -> Spec:
    """The value of a variable.

    Args:
        resource: [], a variable's handle. Raises when it runs before anything was assigned.

    Returns:
        The variable's shape and dtype.
    """
    return content_of(resource)


@op("VariableInitialized", effects="reads", public="", no_gradient="booleans have no gradient")
def variable_initialized(resource: Resource) -> Spec:
    """Whether a variable has a value.

    Args:
        resource: [], a variable's handle.

    Returns:
        [], bool.
    """
    content_of(resource)
    return TensorSpec(dtypes.bool_, Shape(()))


def _changed(resource: TensorSpec, value: TensorSpec) -> TensorSpec:
    content = content_of(resource)
    if not content.dtype.is_numeric:
        raise DTypeError(f"the variable holds {content.dtype}, which is not numeric; use hr.assign")
    return _assigned(resource, value)


def _assigned(resource: TensorSpec, value: TensorSpec, validate_shape: bool = True) -> TensorSpec:
    content = content_of(resource)
    if content.dtype != value.dtype:
        raise DTypeError(
            f"the variable holds {content.dtype}, the value is {value.dtype}; convert it with "
            "hr.cast"
        )
    if not validate_shape:
        return TensorSpec(content.dtype, value.shape)
    if not content.shape.is_compatible_with(value.shape):
        raise ShapeError(f"the variable has shape {content.shape}, the value {value.shape}")
    return TensorSpec(content.dtype, content.shape.merge_with(value.shape))


@op("AssignVariable", keeps_inputs=False, effects="changes", public="", no_gradient=_WRITES)
def assign_variable(resource: Resource, value: Anything, validate_shape: bool = True) -> Spec:
    """Replace the value of a variable.

    Args:
        resource: [], a variable's handle.
        value: The new value, of the variable's dtype.
        validate_shape: Whether the value must have the variable's shape.

    Returns:
        The new value.
    """
    return _assigned(resource, value, validate_shape)


@op("AssignAddVariable", keeps_inputs=False, effects="changes", public="", no_gradient=_WRITES)
def assign_add_variable(resource: Resource, value: Anything) -> Spec:
    """Add to the value of a variable, as one atomic change.

    Args:
        resource: [], a variable's handle.
        value: What to add, of the variable's dtype and shape.

    Returns:
        The new value.
    """
    return _changed(resource, value)


@op("AssignSubVariable", keeps_inputs=False, effects="changes", public="", no_gradient=_WRITES)
def assign_sub_variable(resource: Resource, value: Anything) -> Spec:
    """Subtract from the value of a variable, as one atomic change.

    Args:
        resource: [], a variable's handle.
        value: What to subtract, of the variable's dtype and shape.

    Returns:
        The new value.
    """
    return _changed(resource, value)


def _scattered(resource: TensorSpec, indices: TensorSpec, updates: TensorSpec) -> TensorSpec:
    content = _updated(resource, updates)
    if content.rank == 0:
        raise ShapeError("a scalar variable has no rows to update")
    expected = indices.shape.concatenate(content.shape[1:])
    # A single number goes for all rows.
    if updates.rank != 0 and not expected.is_compatible_with(updates.shape):
        raise ShapeError(
            f"updates must have shape {expected} (indices {indices.shape}, rows of "
            f"{content.shape}), got {updates.shape}"
        )
    return content


def _combined(resource: TensorSpec, indices: TensorSpec, updates: TensorSpec) -> TensorSpec:
    content = _scattered(resource, indices, updates)
    _check_numeric(content)
    return content


def _compared(resource: TensorSpec, indices: TensorSpec, updates: TensorSpec) -> TensorSpec:
    content = _combined(resource, indices, updates)
    if content.dtype.is_complex:
        raise DTypeError(f"the variable holds {content.dtype}; complex numbers have no order")
    return content


def _updated(resource: TensorSpec, updates: TensorSpec) -> TensorSpec:
    content = content_of(resource)
    if content.dtype != updates.dtype:
        raise DTypeError(f"the variable holds {content.dtype}, the updates are {updates.dtype}")
    return content


def _check_numeric(content: TensorSpec) -> None:
    if not content.dtype.is_numeric:
        raise DTypeError(f"the variable holds {content.dtype}, which is not numeric")


@op(
    "ScatterAddVariable",
    accumulates=True,
    keeps_inputs=False,
    effects="changes",
    public="",
    no_gradient=_WRITES,
)
def scatter_add_variable(resource: Resource, indices: Index, updates: Anything) -> Spec:
    """Add rows to rows of a variable, as one atomic change; rows named twice add up.

    Args:
        resource: [], the handle of a variable [rows, ...].
        indices: [n...], the row of each update; others than existing rows raise when it runs.
        updates: [n..., ...] or [], of the variable's dtype.

    Returns:
        The new value of the whole variable.
    """
    return _combined(resource, indices, updates)


@op(
    "ScatterSubVariable",
    accumulates=True,
    keeps_inputs=False,
    effects="changes",
    public="",
    no_gradient=_WRITES,
)
def scatter_sub_variable(resource: Resource, indices: Index, updates: Anything) -> Spec:
    """Subtract rows from rows of a variable, as one atomic change; rows named twice add up.

    Args:
        resource: [], the handle of a variable [rows, ...].
        indices: [n...], the row of each update; others than existing rows raise when it runs.
        updates: [n..., ...] or [], of the variable's dtype.

    Returns:
        The new value of the whole variable.
    """
    return _combined(resource, indices, updates)


@op(
    "ScatterMulVariable",
    keeps_inputs=False,
    effects="changes",
    public="",
    no_gradient=_WRITES,
)
def scatter_mul_variable(resource: Resource, indices: Index, updates: Anything) -> Spec:
    """Multiply rows of a variable, as one atomic change; rows named twice are multiplied twice.

    Args:
        resource: [], the handle of a variable [rows, ...].
        indices: [n...], the row of each update; others than existing rows raise when it runs.
        updates: [n..., ...] or [], of the variable's dtype.

    Returns:
        The new value of the whole variable.
    """
    return _combined(resource, indices, updates)


@op(
    "ScatterDivVariable",
    keeps_inputs=False,
    effects="changes",
    public="",
    no_gradient=_WRITES,
)
def scatter_div_variable(resource: Resource, indices: Index, updates: Anything) -> Spec:
    """Divide rows of a variable, as one atomic change; rows named twice are divided twice.

    Quotients of integers are rounded towards zero; dividing them by zero raises when it runs.

    Args:
        resource: [], the handle of a variable [rows, ...].
        indices: [n...], the row of each update; others than existing rows raise when it runs.
        updates: [n..., ...] or [], of the variable's dtype.

    Returns:
        The new value of the whole variable.
    """
    return _combined(resource, indices, updates)


@op(
    "ScatterMinVariable",
    keeps_inputs=False,
    effects="changes",
    public="",
    no_gradient=_WRITES,
)
def scatter_min_variable(resource: Resource, indices: Index, updates: Anything) -> Spec:
    """Lower rows of a variable to updates that are less, as one atomic change.

    Args:
        resource: [], the handle of a variable [rows, ...].
        indices: [n...], the row of each update; others than existing rows raise when it runs.
        updates: [n..., ...] or [], of the variable's dtype.

    Returns:
        The new value of the whole variable.
    """
    return _compared(resource, indices, updates)


@op(
    "ScatterMaxVariable",
    keeps_inputs=False,
    effects="changes",
    public="",
    no_gradient=_WRITES,
)
def scatter_max_variable(resource: Resource, indices: Index, updates: Anything) -> Spec:
    """Raise rows of a variable to updates that are greater, as one atomic change.

    Args:
        resource: [], the handle of a variable [rows, ...].
        indices: [n...], the row of each update; others than existing rows raise when it runs.
        updates: [n..., ...] or [], of the variable's dtype.

    Returns:
        The new value of the whole variable.
    """
    return _compared(resource, indices, updates)


@op(
    "ScatterUpdateVariable",
    keeps_inputs=False,
    effects="changes",
    public="",
    no_gradient=_WRITES,
)
def scatter_update_variable(resource: Resource, indices: Index, updates: Anything) -> Spec:
    """Replace rows of a variable, as one atomic change; of rows named twice one wins.

    Args:
        resource: [], the handle of a variable [rows, ...].
        indices: [n...], the row of each update; others than existing rows raise when it runs.
        updates: [n..., ...] or [], of the variable's dtype.

    Returns:
        The new value of the whole variable.
    """
    return _scattered(resource, indices, updates)


def _scattered_nd(resource: TensorSpec, indices: TensorSpec, updates: TensorSpec) -> TensorSpec:
    content = _updated(resource, updates)
    if indices.rank == 0:
        raise ShapeError("indices must have one dimension at least, whose rows are the indices")
    depth = indices.shape[-1] if indices.rank is not None else None
    if depth is None or content.rank is None:
        return content
    if depth > content.rank:
        raise ShapeError(
            f"indices of {depth} numbers (shape {indices.shape}) into a variable of shape "
            f"{content.shape}"
        )
    expected = indices.shape[:-1].concatenate(content.shape[depth:])
    if not expected.is_compatible_with(updates.shape):
        raise ShapeError(
            f"updates must have shape {expected} (indices {indices.shape} into {content.shape}), "
            f"got {updates.shape}"
        )
    if content.shape.num_elements() == 0 and (updates.shape.num_elements() or 0) > 0:
        raise ShapeError(
            f"updates {updates.shape} do not lie within a variable of shape {content.shape}"
        )
    return content


@op(
    "ScatterNdUpdateVariable",
    keeps_inputs=False,
    effects="changes",
    public="",
    no_gradient=_WRITES,
)
def scatter_nd_update_variable(resource: Resource, indices: Index, updates: Anything) -> Spec:
    """Replace slices of a variable, as one atomic change; of equal indices one wins.

    Args:
        resource: [], the handle of a variable.
        indices: [n..., depth], where each slice is along the first ``depth`` axes of the
            variable; others than existing slices raise when it runs.
        updates: [n..., ...] with the other axes of the variable, of its dtype.

    Returns:
        The new value of the whole variable.
    """
    return _scattered_nd(resource, indices, updates)


@op(
    "ScatterNdAddVariable",
    accumulates=True,
    keeps_inputs=False,
    effects="changes",
    public="",
    no_gradient=_WRITES,
)
def scatter_nd_add_variable(resource: Resource, indices: Index, updates: Anything) -> Spec:
    """Add to slices of a variable, as one atomic change; updates of equal indices add up.

    Args:
        resource: [], the handle of a variable.
        indices: [n..., depth], where each slice is along the first ``depth`` axes of the
            variable; others than existing slices raise when it runs.
        updates: [n..., ...] with the other axes of the variable, of its dtype.

    Returns:
        The new value of the whole variable.
    """
    _check_numeric(content_of(resource))
    return _scattered_nd(resource, indices, updates)


@op(
    "ScatterNdSubVariable",
    accumulates=True,
    keeps_inputs=False,
    effects="changes",
    public="",
    no_gradient=_WRITES,
)
def scatter_nd_sub_variable(resource: Resource, indices: Index, updates: Anything) -> Spec:
    """Subtract from slices of a variable, as one atomic change; updates of equal indices add up.

    Args:
        resource: [], the handle of a variable.
        indices: [n..., depth], where each slice is along the first ``depth`` axes of the
            variable; others than existing slices raise when it runs.
        updates: [n..., ...] with the other axes of the variable, of its dtype.

    Returns:
        The new value of the whole variable.
    """
    _check_numeric(content_of(resource))
    return _scattered_nd(resource, indices, updates)


@op("CountUpTo", effects="changes", public="", no_gradient=_WRITES)
def count_up_to_variable(resource: Resource, limit: int) -> Spec:
    """Increment an integer variable up to a limit.

    Args:
        resource: [], the handle of a scalar variable, int32 or int64.
        limit: Where to stop: raises when it runs on a variable that has reached it.

    Returns:
        [], the value from before.
    """
    content = content_of(resource)
    if content.dtype not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"the variable holds {content.dtype}; expected int32 or int64")
    if content.rank not in (None, 0):
        raise ShapeError(f"a counter is a scalar, the variable has shape {content.shape}")
    if not content.dtype.min <= limit <= content.dtype.max:
        raise AttributeValueError(f"limit {told(limit)} is no {content.dtype}")
    return TensorSpec(content.dtype, Shape(()))
