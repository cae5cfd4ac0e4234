"""Tensors: the edges of a graph, with Python's operators on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, final

import numpy as np

from headrace.dtypes import DType
from headrace.errors import GraphError, SymbolicTensorError, shown
from headrace.graph.default_session import default_session
from headrace.graph.schema import OPERATORS, call_op
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor_shape import TensorShape, as_tensor_shape
from headrace.shapes import Shape

if TYPE_CHECKING:
    from headrace.graph.graph import Graph
    from headrace.graph.operation import Operation


class TensorOperators:
    """Python's operators, for whatever converts to a tensor."""

    __slots__ = ()

    __array_priority__ = 1000

    def __add__(self, other: Any) -> Tensor:
        return _result(call_op("Add", self, other, name="add"))

    def __radd__(self, other: Any) -> Tensor:
        return _result(call_op("Add", other, self, name="add"))

    def __sub__(self, other: Any) -> Tensor:
        return _result(call_op("Sub", self, other, name="sub"))

    def __rsub__(self, other: Any) -> Tensor:
        return _result(call_op("Sub", other, self, name="sub"))

    def __mul__(self, other: Any) -> Tensor:
        if getattr(other, "_multiplies", False):
            # A sparse tensor, which multiplies from either side.
            return NotImplemented
        return _result(call_op("Mul", self, other, name="mul"))

    def __rmul__(self, other: Any) -> Tensor:
        return _result(call_op("Mul", other, self, name="mul"))

    def __truediv__(self, other: Any) -> Tensor:
        return _result(OPERATORS["truediv"](self, other, name="truediv"))

    def __rtruediv__(self, other: Any) -> Tensor:
        return _result(OPERATORS["truediv"](other, self, name="truediv"))

    def __div__(self, other: Any) -> Tensor:
        return _result(OPERATORS["div"](self, other))

    def __rdiv__(self, other: Any) -> Tensor:
        return _result(OPERATORS["div"](other, self))

    def __floordiv__(self, other: Any) -> Tensor:
        return _result(call_op("FloorDiv", self, other, name="floordiv"))

    def __rfloordiv__(self, other: Any) -> Tensor:
        return _result(call_op("FloorDiv", other, self, name="floordiv"))

    def __mod__(self, other: Any) -> Tensor:
        return _result(call_op("FloorMod", self, other, name="mod"))

    def __rmod__(self, other: Any) -> Tensor:
        return _result(call_op("FloorMod", other, self, name="mod"))

    def __pow__(self, other: Any) -> Tensor:
        return _result(call_op("Pow", self, other, name="pow"))

    def __rpow__(self, other: Any) -> Tensor:
        return _result(call_op("Pow", other, self, name="pow"))

    def __matmul__(self, other: Any) -> Tensor:
        return _result(call_op("MatMul", self, other, name="matmul"))

    def __rmatmul__(self, other: Any) -> Tensor:
        return _result(call_op("MatMul", other, self, name="matmul"))

    def __neg__(self) -> Tensor:
        return _result(call_op("Neg", self))

    def __abs__(self) -> Tensor:
        return _result(OPERATORS["abs"](self))

    def __lt__(self, other: Any) -> Tensor:
        return _result(call_op("Less", self, other))

    def __le__(self, other: Any) -> Tensor:
        return _result(call_op("LessEqual", self, other))

    def __gt__(self, other: Any) -> Tensor:
        return _result(call_op("Greater", self, other))

    def __ge__(self, other: Any) -> Tensor:
        return _result(call_op("GreaterEqual", self, other))

    def __and__(self, other: Any) -> Tensor:
        return _result(OPERATORS["and"](self, other, name="and"))

    def __rand__(self, other: Any) -> Tensor:
        return _result(OPERATORS["and"](other, self, name="and"))

    def __or__(self, other: Any) -> Tensor:
        return _result(OPERATORS["or"](self, other, name="or"))

    def __ror__(self, other: Any) -> Tensor:
        return _result(OPERATORS["or"](other, self, name="or"))

    def __xor__(self, other: Any) -> Tensor:
        return _result(OPERATORS["xor"](self, other, name="xor"))

    def __rxor__(self, other: Any) -> Tensor:
        return _result(OPERATORS["xor"](other, self, name="xor"))

    def __invert__(self) -> Tensor:
        return _result(OPERATORS["invert"](self))

    def __getitem__(self, key: Any) -> Tensor:
        return _result(OPERATORS["getitem"](self, key))

    def __bool__(self) -> NoReturn:
        raise SymbolicTensorError(
            f"{shown(self)} has no truth value while the graph is built: its value exists only "
            "inside a "
            "step. Fetch it with session.run, or compute with it (hr.where, hr.cond)"
        )

    __nonzero__ = __bool__  # Classes that take over what tensors do read Python 2's name, too.

    def __iter__(self) -> Iterator[NoReturn]:
        raise SymbolicTensorError(
            f"{shown(self)} cannot be iterated over while the graph is built. Index it (t[0], "
            "t[1]), "
            "take it apart with hr.unstack, loop over it with hr.map_fn, or fetch it with "
            "session.run and iterate over the array"
        )

    def __float__(self) -> NoReturn:
        raise SymbolicTensorError(f"{shown(self)} is no number while the graph is built. {_FETCH}")

    def __int__(self) -> NoReturn:
        raise SymbolicTensorError(f"{shown(self)} is no number while the graph is built. {_FETCH}")

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise SymbolicTensorError(
            f"{shown(self)} does not change: its elements cannot be assigned to. Build a new "
            "tensor "
            "with hr.where, hr.concat or hr.tensor_scatter_update, or assign to an hr.Variable"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if ufunc in (np.equal, np.not_equal):
            # As between tensors, where equality is identity.
            return ufunc is np.not_equal
        # An operator with a NumPy array on its left; the others have no tensors to compute with.
        operator = _OPERATORS_OF_ARRAYS.get(ufunc) if method == "__call__" else None
        if operator is not None and len(inputs) == 2 and isinstance(inputs[1], TensorOperators):
            return _result(getattr(inputs[1], operator)(inputs[0]))
        raise SymbolicTensorError(
            f"numpy.{ufunc.__name__} computes with values, got {shown(self)}, which has none "
            "while the "
            "graph is built. Use a function of Headrace, as hr.sin for numpy.sin"
        )

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise SymbolicTensorError(
            f"{shown(self)} is a node of a graph and holds no values: NumPy cannot take it. Use "
            "Headrace's functions on it, or fetch it with session.run first"
        )


_OPERATORS_OF_ARRAYS = {
    np.add: "__radd__",
    np.subtract: "__rsub__",
    np.multiply: "__rmul__",
    np.true_divide: "__rtruediv__",
    np.floor_divide: "__rfloordiv__",
    np.remainder: "__rmod__",
    np.power: "__rpow__",
    np.matmul: "__rmatmul__",
    np.bitwise_and: "__rand__",
    np.bitwise_or: "__ror__",
    np.bitwise_xor: "__rxor__",
    np.less: "__gt__",
    np.less_equal: "__ge__",
    np.greater: "__lt__",
    np.greater_equal: "__le__",
}

_FETCH = "Fetch it with session.run, or convert it with hr.cast"


@final
class Tensor(TensorOperators):
    """Output ``index`` of an operation.

    Attributes:
        op: The operation that yields it.
        index: Which of the operation's outputs it is.
        spec: What is known of it before anything runs.
    """

    # With a dictionary: layers and libraries note things of their own on tensors.
    __slots__ = ("__dict__", "__weakref__", "index", "op", "spec")

    # What classes of other libraries take over to be used as tensors are; they change the set.
    OVERLOADABLE_OPERATORS: ClassVar[set[str]] = {
        "__abs__", "__add__", "__and__", "__div__", "__eq__", "__floordiv__", "__ge__",
        "__getitem__", "__gt__", "__invert__", "__le__", "__lt__", "__matmul__", "__mod__",
        "__mul__", "__ne__", "__neg__", "__or__", "__pow__", "__radd__", "__rand__", "__rdiv__",
        "__rfloordiv__", "__rmatmul__", "__rmod__", "__rmul__", "__ror__", "__rpow__", "__rsub__",
        "__rtruediv__", "__rxor__", "__sub__", "__truediv__", "__xor__",
    }  # fmt: skip

    op: Operation
    index: int
    spec: TensorSpec

    def __init__(self, op: Operation, index: int, spec: TensorSpec) -> None:
        self.op = op
        self.index = index
        self.spec = spec

    def __len__(self) -> NoReturn:
        raise SymbolicTensorError(
            f"{shown(self)} has no len() while the graph is built. Its static shape is t.shape, "
            "and "
            "hr.shape(t) computes the shape in a step"
        )

    @property
    def graph(self) -> Graph:
        """The graph that owns it."""
        return self.op.graph

    @property
    def name(self) -> str:
        """``"operation:index"``."""
        return f"{self.op.name}:{self.index}"

    @property
    def value_index(self) -> int:
        """Which of the operation's outputs it is."""
        return self.index

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.spec.dtype

    @property
    def shape(self) -> TensorShape:
        """The static shape; of a variable's handle, which stands for it, that of the variable."""
        spec = self.spec
        return as_tensor_shape(spec.shape if spec.content is None else spec.content.shape)

    def get_shape(self) -> TensorShape:
        """Return the static shape."""
        return self.shape

    def set_shape(self, shape: Any) -> None:
        """State what is known of the shape besides; nothing checks it when the graph runs.

        Args:
            shape: A shape, or a list of sizes and Nones.

        Raises:
            ShapeError: if it contradicts what is known.
        """
        self.spec = self.spec.sharpened(Shape(shape))

    @property
    def device(self) -> str:
        """The device asked for its operation."""
        return self.op.device

    def eval(self, feed_dict: Mapping[Any, Any] | None = None, session: Any = None) -> Any:
        """Fetch this tensor from ``session``, or from the default session."""
        return (session if session is not None else default_session()).run(self, feed_dict)

    def assign(self, value: Any, name: str | None = None) -> Tensor:
        """Replace the part of a variable that indexing it gave, as in ``v[2:4].assign(x)``.

        What a change of a variable returned stands for the variable after it, as it does for
        ``assign_add``, ``assign_sub`` and ``read_value``: ``v.assign(x).assign_add(y)``.

        Args:
            value: The new part, of the same shape.
            name: The name of the operation.

        Returns:
            The new value of the whole variable.

        Raises:
            GraphError: if this is neither a slice of a variable nor what a change of one returned.
        """
        return _result(OPERATORS["assign_slice"](self, value, name))

    def assign_add(self, delta: Any, name: str | None = None) -> Tensor:
        """Add to the variable of which this is the new value; yields the value after that.

        Args:
            delta: What to add.
            name: The name of the operation.

        Raises:
            GraphError: if this is not what a change of a variable returned.
        """
        return _result(OPERATORS["add_written"](self, delta, name=name))

    def assign_sub(self, delta: Any, name: str | None = None) -> Tensor:
        """Subtract from the variable of which this is the new value; yields the value after that.

        Args:
            delta: What to subtract.
            name: The name of the operation.

        Raises:
            GraphError: if this is not what a change of a variable returned.
        """
        return _result(OPERATORS["subtract_written"](self, delta, name=name))

    def read_value(self) -> Tensor:
        """Read the variable of which this is the new value, after the change.

        Raises:
            GraphError: if this is not what a change of a variable returned.
        """
        return _result(OPERATORS["read_written"](self))

    def consumers(self) -> list[Operation]:
        """Return the operations that take this tensor."""
        return [op for op in self.graph.operations if any(t is self for t in op.inputs)]

    def __reduce__(self) -> NoReturn:
        raise GraphError(
            f"{shown(self)} cannot be pickled or copied: it is part of a graph; use its name and "
            "graph.to_document()"
        )

    def __repr__(self) -> str:
        return f"<Tensor {self.name!r} {self.spec}>"


def _result(value: Any) -> Tensor:
    # A ragged tensor where an operand is one: it has all operators that tensors have.
    result: Tensor = value
    return result
