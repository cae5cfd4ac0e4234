"""What is said of a model's inputs and outputs: records with the fields of TensorFlow's messages.

They are plain records, so that a saved model needs no Protocol Buffers. Wherever one is expected, a
message of the same name may stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

from headrace.arguments import items
from headrace.dtypes import as_dtype
from headrace.errors import GraphError, shown, told
from headrace.shapes import Shape


@final
@dataclass(frozen=True, slots=True)
class Dimension:
    """One size of a shape: ``size``, -1 where it is not known."""

    size: int


@final
@dataclass(frozen=True, slots=True)
class TensorShape:
    """A shape: ``dim`` has a ``Dimension`` for each axis, unless ``unknown_rank``."""

    dim: tuple[Dimension, ...] = ()
    unknown_rank: bool = False

    @classmethod
    def of(cls, shape: Shape) -> TensorShape:
        """Return the record of a shape."""
        # Plain sizes, also where the shape has dimensions as objects.
        sizes = Shape(shape).dims
        if sizes is None:
            return cls(unknown_rank=True)
        return cls(tuple(Dimension(-1 if size is None else size) for size in sizes))


@final
@dataclass(slots=True)
class CooSparse:
    """The names of the three tensors of a sparse one."""

    values_tensor_name: str
    indices_tensor_name: str
    dense_shape_tensor_name: str


@final
@dataclass(slots=True)
class TensorInfo:
    """A tensor of a model's graph.

    Attributes:
        name: Its name, empty for a sparse tensor.
        dtype: The number of its dtype, which ``hr.as_dtype`` takes; 0 where there is none.
        tensor_shape: Its shape.
        coo_sparse: The names of the parts of a sparse tensor, else None.
    """

    name: str = ""
    dtype: int = 0
    tensor_shape: TensorShape = TensorShape(unknown_rank=True)
    coo_sparse: CooSparse | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tensors that it takes: one, or for a sparse tensor three."""
        sparse = self.coo_sparse
        if sparse is None:
            return (self.name,) if self.name else ()
        return (
            sparse.indices_tensor_name,
            sparse.values_tensor_name,
            sparse.dense_shape_tensor_name,
        )

    @property
    def shape(self) -> Shape:
        """The shape as ``hr.Shape``."""
        return shape_of(self.tensor_shape)


@final
@dataclass(slots=True)
class AssetFileDef:
    """A file that a model needs.

    Attributes:
        tensor_info: The tensor that holds its path, by its name.
        filename: Its name in the model.
    """

    tensor_info: TensorInfo
    filename: str


@final
@dataclass(slots=True)
class SignatureDef:
    """What a model computes from what.

    Attributes:
        inputs: What is fed, by the names that callers use.
        outputs: What is computed, by the names that callers use.
        method_name: Which kind of request it answers, one of ``signature_constants``.
    """

    inputs: dict[str, TensorInfo] = field(default_factory=dict)
    outputs: dict[str, TensorInfo] = field(default_factory=dict)
    method_name: str = ""


def tensor_info(given: Any) -> TensorInfo:
    """Return a record of a tensor, from one or from a message of TensorFlow's form.

    Raises:
        GraphError: if it is neither.
    """
    if isinstance(given, TensorInfo):
        return given
    try:
        encoding = given.WhichOneof("encoding")
        sparse = None
        if encoding == "coo_sparse":
            parts = given.coo_sparse
            sparse = CooSparse(
                parts.values_tensor_name, parts.indices_tensor_name, parts.dense_shape_tensor_name
            )
        shape = TensorShape.of(shape_of(given.tensor_shape))
        return TensorInfo(given.name, int(given.dtype), shape, sparse)
    except (AttributeError, TypeError, ValueError) as error:
        raise GraphError(
            f"expected what hr.saved_model.build_tensor_info returns, got {shown(given)}"
        ) from error


def signature(given: Any) -> SignatureDef:
    """Return a record of a signature, from one or from a message of TensorFlow's form.

    Raises:
        GraphError: if it is neither.
    """
    if isinstance(given, SignatureDef):
        return given
    parts = [getattr(given, name, None) for name in ("inputs", "outputs", "method_name")]
    if not isinstance(parts[0], Mapping) or not isinstance(parts[1], Mapping):
        raise GraphError(
            f"expected what hr.saved_model.build_signature_def returns, got {shown(given)}"
        )
    return SignatureDef(infos(parts[0]), infos(parts[1]), str(parts[2]))


def infos(given: Mapping[str, Any]) -> dict[str, TensorInfo]:
    """Return records of tensors by name.

    Raises:
        GraphError: if they are no dict.
    """
    if not isinstance(given, Mapping):
        raise GraphError(f"expected a dict of tensors by name, got {shown(given)}")
    keys = items(given, "the dict of tensors")
    return {key if type(key) is str else told(key): tensor_info(given[key]) for key in keys}


def shape_of(given: Any) -> Shape:
    """Return the shape that a record or a message says."""
    if given.unknown_rank:
        return Shape(None)
    dims: Iterable[Any] = given.dim
    return Shape([None if dim.size < 0 else int(dim.size) for dim in dims])


def dtype_name(number: int) -> str:
    """Return the name of the dtype with a number, empty for 0."""
    return as_dtype(number).name if number else ""
