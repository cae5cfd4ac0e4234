"""Partitioned variables: one tensor that is kept in several variables, each a range of an axis.

The parts are variables like any others: a device function may put each on another task, optimizers
change each for itself, and checkpoints know them all under the name of the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from headrace.dtypes import DType
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.scopes import init_scope, name_scope
from headrace.graph.tensor import Tensor, TensorOperators
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.array import concat, identity
from headrace.ops.joining import split
from headrace.ops.variable import Variable
from headrace.shapes import Shape


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """Which part of a whole an initializer makes, where it has an argument ``partition_info``.

    Attributes:
        full_shape: The shape of the whole.
        var_offset: At which index of each axis the part begins.
    """

    full_shape: list[int]
    var_offset: list[int]

    def single_slice_dim(self, shape: Sequence[int]) -> int | None:
        """Return the axis along which a part of a shape is one of several; None for the whole."""
        pairs = enumerate(zip(shape, self.full_shape, strict=True))
        divided = [axis for axis, (part, whole) in pairs if part != whole]
        return divided[0] if divided else None

    def single_offset(self, shape: Sequence[int]) -> int:
        """Return where along that axis the part begins; 0 for the whole."""
        axis = self.single_slice_dim(shape)
        return 0 if axis is None else self.var_offset[axis]


class Part(NamedTuple):
    """A part of a shape.

    Attributes:
        offset: At which index of each axis it begins.
        shape: How long it is along each.
    """

    offset: list[int]
    shape: list[int]


def parts_of(shape: Sequence[int], partitions: Sequence[int]) -> list[Part]:
    """Return the parts of a shape; the first ones are longer by 1 where they do not divide evenly.

    Args:
        shape: The shape of the whole.
        partitions: The number of parts for each axis, as ``check_partitions`` accepts it.
    """
    axis = divided_axis(partitions)
    count = partitions[axis]
    each, more = divmod(shape[axis], count)
    found, begin = [], 0
    for number in range(count):
        length = each + (number < more)
        part = Part([0] * len(shape), list(shape))
        part.offset[axis], part.shape[axis] = begin, length
        found.append(part)
        begin += length
    return found


def divided_axis(partitions: Sequence[int]) -> int:
    """Return the axis that is divided, the first if none is."""
    return next((axis for axis, count in enumerate(partitions) if count > 1), 0)


def check_partitions(partitions: Any, shape: Shape, name: str) -> list[int]:
    """Return what a partitioner returned, if it divides a shape.

    Raises:
        AttributeValueError: if it is something else.
    """
    if not isinstance(partitions, list | tuple) or not all(
        isinstance(count, int) and count >= 1 for count in partitions
    ):
        raise AttributeValueError(
            f"variable {name!r}: a partitioner must return a positive number of parts for each "
            f"axis, got {shown(partitions)}"
        )
    dims = shape.known
    if len(partitions) != len(dims):
        raise AttributeValueError(
            f"variable {name!r}: the partitioner returned {len(partitions)} numbers for shape "
            f"{shape}, expected one for each axis, got {shown(list(partitions))}"
        )
    if sum(count > 1 for count in partitions) > 1:
        raise AttributeValueError(
            f"variable {name!r} can be divided along one axis only, the partitioner asks for "
            f"{shown(list(partitions))} parts"
        )
    axis = divided_axis(partitions)
    if partitions[axis] > max(dims[axis], 1):
        raise AttributeValueError(
            f"variable {name!r}: {shown(partitions[axis])} parts of axis {axis}, which has "
            f"{dims[axis]} indices: take fewer parts"
        )
    return list(partitions)


@final
class PartitionedVariable(TensorOperators):
    """A tensor that is kept in several variables, which follow each other along one axis.

    Used where a tensor is expected, the parts are read and joined; functions such as
    ``hr.nn.embedding_lookup`` and iteration take the parts as they are.

    Attributes:
        name: The name of the whole; the parts are ``name/part_0`` and so on.
        shape: The shape of the whole.
        dtype: The dtype.
        partitions: The number of parts for each axis.
    """

    __slots__ = ("__dict__", "__weakref__", "_parts", "dtype", "name", "partitions", "shape")

    def __init__(
        self,
        name: str,
        shape: Any,
        dtype: DType,
        variable_list: Sequence[Variable],
        partitions: Sequence[int],
    ) -> None:
        """Join variables that say which part of the whole they are.

        Args:
            name: The name of the whole.
            shape: Its shape.
            dtype: The dtype of all.
            variable_list: The parts.
            partitions: The number of parts for each axis.

        Raises:
            DTypeError: if the parts or the partitions are no list.
            AttributeValueError: if there are no parts, or a variable is no part of this whole.
        """
        if not isinstance(variable_list, list | tuple):
            raise DTypeError(
                f"variable_list must be a list of variables, got {shown(variable_list)}"
            )
        if not isinstance(partitions, list | tuple):
            raise DTypeError(f"partitions must be a list of integers, got {shown(partitions)}")
        if not variable_list:
            raise AttributeValueError("a partitioned variable needs at least one part")
        dims = list(Shape(shape).known)
        found = []
        for variable in variable_list:
            info = variable.save_slice_info
            if info is None or info.full_shape != dims:
                said = "does not say so" if info is None else f"is one of {info.full_shape}"
                raise AttributeValueError(
                    f"{variable!r} must be a part of a variable of shape {dims}, but {said}"
                )
            found.append((info.var_offset, variable))
        self.partitions = check_partitions(partitions, Shape(shape), name)
        self.name = name
        self.shape = TensorShape(shape)
        self.dtype = dtype
        self._parts = [variable for _, variable in sorted(found, key=lambda pair: pair[0])]

    # Tensors have neither parts nor a truth value; a partitioned variable has both.
    def __iter__(self) -> Iterator[Variable]:  # type: ignore[override]
        """Iterate over the parts, in order."""
        return iter(self._parts)

    def __len__(self) -> int:
        """Return the number of parts."""
        return len(self._parts)

    def __bool__(self) -> bool:  # type: ignore[override]
        """Return True: there are parts."""
        return True

    def get_shape(self) -> TensorShape:
        """Return the shape of the whole."""
        return self.shape

    def as_tensor(self) -> Tensor:
        """Return the parts joined, read without regard to the control dependencies in force."""
        with init_scope():
            return self._joined()

    def _joined(self) -> Tensor:
        with name_scope(None):
            if len(self._parts) == 1:
                return identity(self._parts[0], name=self.name)
            axis = divided_axis(self.partitions)
            with name_scope(f"{self.name}/ConcatPartitions/"):
                joined = concat([part.value() for part in self._parts], axis)
            return identity(joined, name=self.name)

    def _as_tensor(self) -> Tensor:
        return self.as_tensor()

    def assign(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Any]:
        """Replace the value.

        Args:
            value: The whole, a list of values of the parts, or a partitioned variable.
            use_locking: As for ``Variable.assign``.
            name: The name of each operation.
            read_value: Return tensors; operations if false.

        Returns:
            For each part what yields its new value.
        """
        return self._each(lambda v, x: v.assign(x, use_locking, name, read_value), value)

    def assign_add(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Any]:
        """Add a value; arguments and result as of ``assign``."""
        return self._each(lambda v, x: v.assign_add(x, use_locking, name, read_value), value)

    def assign_sub(
        self,
        value: Any,
        use_locking: bool = False,
        name: str | None = None,
        read_value: bool = True,
    ) -> list[Any]:
        """Subtract a value; arguments and result as of ``assign``."""
        return self._each(lambda v, x: v.assign_sub(x, use_locking, name, read_value), value)

    def _each(self, change: Callable[[Variable, Any], Any], value: Any) -> list[Any]:
        values: Sequence[Any]
        if isinstance(value, list | PartitionedVariable):
            values = list(value)
            if len(values) != len(self._parts):
                raise ShapeError(
                    f"{shown(self)} has {len(self._parts)} parts, got {len(values)} values for them"
                )
        else:
            axis = divided_axis(self.partitions)
            sizes = [part.shape.known[axis] for part in self._parts]
            values = split(value, sizes, axis)
        return [change(part, x) for part, x in zip(self._parts, values, strict=True)]

    def __repr__(self) -> str:
        """Return name, dtype, shape and partitions."""
        what = f"{self.dtype}{self.shape.plain}, {len(self._parts)} parts"
        return f"<PartitionedVariable {self.name!r} {what}>"
