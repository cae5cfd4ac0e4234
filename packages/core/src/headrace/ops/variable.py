"""Variables: the Python face of a named buffer that outlives steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from headrace.dtypes import DType, as_dtype
from headrace.errors import DTypeError, GraphError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.scopes import (
    colocate_with,
    control_dependencies,
    current_scope,
    get_default_graph,
    name_scope,
)
from headrace.graph.tensor import Tensor, TensorOperators
from headrace.ops.control import group
from headrace.ops.elementwise import cast
from headrace.ops.state import (
    assign_add_variable,
    assign_sub_variable,
    assign_variable,
    read_variable,
    scatter_add_variable,
    scatter_sub_variable,
    scatter_update_variable,
    var_handle,
    variable_initialized,
)
from headrace.shapes import UNKNOWN, Shape


@final
class Variable(TensorOperators):
    """A tensor that is kept between steps and changed by assignment.

    Used where a tensor is expected, it is read anew, so that a read made under
    ``control_dependencies`` sees the writes named there. It has no value in a session until its
    initializer was run.
    """

    __slots__ = ("graph", "handle", "initial_value", "initializer", "snapshot", "trainable")

    def __init__(
        self,
        initial_value: Any,
        trainable: bool = True,
        name: str | None = None,
        dtype: Any = None,
        *,
        validate_shape: bool = True,
        shared_name: str | None = None,
    ) -> None:
        """Make a variable in the default graph.

        Args:
            initial_value: What its initializer assigns: a tensor, data, or a function that
                returns one. It also sets dtype and shape.
            trainable: Whether optimizers change it by default.
            name: The variable's name; made unique.
            dtype: The dtype; that of ``initial_value`` if None.
            validate_shape: Whether all later values must have the initial value's shape.
            shared_name: Its name in its container; the variable's own name if None. Variables of
                one shared name in a named container or a cluster are one buffer.

        Raises:
            DTypeError: if the initial value does not have the dtype.
        """
        if initial_value is None:
            raise DTypeError("a Variable needs an initial_value: data, a tensor, or a function")
        with control_dependencies(None), name_scope(name, "Variable") as scope:
            wanted = None if dtype is None else as_dtype(dtype)
            with name_scope("Initializer"):
                value = initial_value() if callable(initial_value) else initial_value
                start = convert_to_tensor(value, preferred_dtype=wanted)
                if wanted is not None:
                    start = cast(start, wanted) if isinstance(value, Tensor) else start
                    start = convert_to_tensor(start, wanted)
            self.graph: Graph = get_default_graph()
            self.initial_value = start
            self.trainable = trainable
            own_name = scope[:-1]
            self.handle = var_handle(
                start.dtype,
                start.shape if validate_shape else UNKNOWN,
                current_scope().container,
                own_name if shared_name is None else shared_name,
                name=None if not own_name else "handle",
            )
            with colocate_with(self.handle):
                self.initializer: Operation = assign_variable(
                    self.handle, start, validate_shape, name="Assign"
                ).op
                self.snapshot = read_variable(self.handle, name="read")
        self.graph.add_variable(self)

    @classmethod
    def from_parts(
        cls,
        handle: Tensor,
        initial_value: Tensor,
        initializer: Operation,
        snapshot: Tensor,
        trainable: bool,
    ) -> Variable:
        """Return the variable that nodes of a loaded graph make up, and list it there."""
        self = cls.__new__(cls)
        self.graph = handle.graph
        self.handle = handle
        self.initial_value = initial_value
        self.initializer = initializer
        self.snapshot = snapshot
        self.trainable = trainable
        self.graph.add_variable(self)
        return self

    @property
    def name(self) -> str:
        """The variable's name with the ``:0`` that tensors have."""
        return f"{self.op_name}:0"

    @property
    def op_name(self) -> str:
        """The variable's name in its graph, by which checkpoints know it."""
        return self.handle.op.name.removesuffix("/handle")

    @property
    def op(self) -> Operation:
        """The operation that yields the handle."""
        return self.handle.op

    @property
    def dtype(self) -> DType:
        """The dtype of its values."""
        content = self.handle.spec.content
        assert content is not None
        return content.dtype

    @property
    def shape(self) -> Shape:
        """The static shape of its values."""
        content = self.handle.spec.content
        assert content is not None
        return content.shape

    def get_shape(self) -> Shape:
        """Return the static shape of its values."""
        return self.shape

    @property
    def device(self) -> str:
        """The device asked for."""
        return self.handle.op.device

    def value(self) -> Tensor:
        """Return a new read of the variable."""
        with colocate_with(self.handle):
            return read_variable(self.handle, name=f"{self.op_name.rpartition('/')[2]}/read")

    read_value = value

    def initialized_value(self) -> Tensor:
        """Return the value that the initializer assigns, for making other initial values."""
        return self.initial_value

    def is_initialized(self) -> Tensor:
        """Return whether the variable has a value, as a scalar bool tensor."""
        with colocate_with(self.handle):
            return variable_initialized(self.handle)

    def assign(self, value: Any, name: str | None = None) -> Tensor:
        """Replace the value; yields the new one."""
        return self._write(assign_variable, value, name)

    def assign_add(self, delta: Any, name: str | None = None) -> Tensor:
        """Add ``delta``; yields the new value."""
        return self._write(assign_add_variable, delta, name)

    def assign_sub(self, delta: Any, name: str | None = None) -> Tensor:
        """Subtract ``delta``; yields the new value."""
        return self._write(assign_sub_variable, delta, name)

    def scatter_add(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """Add rows ``updates`` to the rows ``indices``; yields the new value."""
        return self._scatter(scatter_add_variable, indices, updates, name)

    def scatter_sub(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """Subtract rows ``updates`` from the rows ``indices``; yields the new value."""
        return self._scatter(scatter_sub_variable, indices, updates, name)

    def scatter_update(self, indices: Any, updates: Any, name: str | None = None) -> Tensor:
        """Replace the rows ``indices`` by ``updates``; yields the new value."""
        return self._scatter(scatter_update_variable, indices, updates, name)

    def eval(self, session: Any = None) -> Any:
        """Fetch the value from ``session``, or from the default session."""
        return self.snapshot.eval(session=session)

    def _write(self, op: Callable[..., Tensor], value: Any, name: str | None) -> Tensor:
        update = convert_to_tensor(value, preferred_dtype=self.dtype)
        with colocate_with(self.handle):
            return op(self.handle, update, name=name)

    def _scatter(
        self, op: Callable[..., Tensor], indices: Any, updates: Any, name: str | None
    ) -> Tensor:
        rows = convert_to_tensor(indices)
        values = convert_to_tensor(updates, preferred_dtype=self.dtype)
        with colocate_with(self.handle):
            return op(self.handle, rows, values, name=name)

    def _as_tensor(self) -> Tensor:
        return self.value()

    def _as_graph_element(self) -> Tensor:
        return self.snapshot

    def __repr__(self) -> str:
        return f"<Variable {self.name!r} {self.dtype}{self.shape}>"


def _variable(ref: Any) -> Variable:
    if not isinstance(ref, Variable):
        raise GraphError(f"expected a Variable to assign to, got {ref!r}")
    return ref


def assign(
    ref: Variable,
    value: Any,
    validate_shape: bool | None = None,
    use_locking: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """Replace the value of a variable.

    Args:
        ref: The variable.
        value: The new value, of its dtype and shape.
        validate_shape: False to allow another shape, for variables made so.
        use_locking: Ignored; every write is atomic.
        name: The name of the operation.

    Returns:
        The new value.
    """
    del use_locking
    variable = _variable(ref)
    if validate_shape is False:
        update = convert_to_tensor(value, preferred_dtype=variable.dtype)
        with colocate_with(variable.handle):
            return assign_variable(variable.handle, update, False, name=name)
    return variable.assign(value, name)


def assign_add(
    ref: Variable, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """Add to a variable, as one atomic change, locking or not; yields the new value."""
    del use_locking
    return _variable(ref).assign_add(value, name)


def assign_sub(
    ref: Variable, value: Any, use_locking: bool | None = None, name: str | None = None
) -> Tensor:
    """Subtract from a variable, as one atomic change, locking or not; yields the new value."""
    del use_locking
    return _variable(ref).assign_sub(value, name)


def scatter_add(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Add rows to the rows ``indices`` of a variable; yields the new value."""
    return _variable(ref).scatter_add(indices, updates, name)


def scatter_sub(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Subtract rows from the rows ``indices`` of a variable; yields the new value."""
    return _variable(ref).scatter_sub(indices, updates, name)


def scatter_update(ref: Variable, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Replace the rows ``indices`` of a variable; yields the new value."""
    return _variable(ref).scatter_update(indices, updates, name)


def is_variable_initialized(variable: Variable) -> Tensor:
    """Return whether a variable has a value, as a scalar bool tensor."""
    return _variable(variable).is_initialized()


def global_variables() -> list[Variable]:
    """Return all variables of the default graph, in the order in which they were made."""
    return list(get_default_graph().variables)


def trainable_variables() -> list[Variable]:
    """Return the variables of the default graph that optimizers change by default."""
    return [v for v in get_default_graph().variables if v.trainable]


def variables_initializer(var_list: Sequence[Variable], name: str | None = "init") -> Operation:
    """Return an operation that initializes the variables ``var_list``."""
    return group(*(v.initializer for v in var_list), name=name)


def global_variables_initializer() -> Operation:
    """Return an operation that initializes all variables that the default graph has now."""
    return variables_initializer(global_variables())
