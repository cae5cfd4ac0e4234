"""Specifications of features: what a program asks of examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import headrace as hr
from headrace import DType, Shape, SparseTensor, Tensor
from headrace.errors import ArgumentTypeError, AttributeValueError, DTypeError, shown
from headrace.extend.arguments import mapping

# The dtypes of the three kinds of features: FloatList, Int64List and BytesList.
KINDS = (hr.float32, hr.int64, hr.string)


class FixedLenFeature(NamedTuple):
    """A feature with the same number of values in each example, which becomes a dense tensor.

    Attributes:
        shape: The shape of the values of one example.
        dtype: ``hr.float32``, ``hr.int64`` or ``hr.string``.
        default_value: The values of an example that lacks the feature, of ``shape``. None if each
            must have it.
    """

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values, which becomes a sparse tensor.

    Attributes:
        dtype: ``hr.float32``, ``hr.int64`` or ``hr.string``.
    """

    dtype: Any


class FixedLenSequenceFeature(NamedTuple):
    """A feature that is a sequence of items of one shape, padded to the longest of a batch.

    Attributes:
        shape: The shape of an item.
        dtype: ``hr.float32``, ``hr.int64`` or ``hr.string``.
        allow_missing: Whether an example may lack the feature, and is taken for one with an empty
            sequence. ``parse_example`` requires it.
        default_value: A scalar to pad with; 0, or the empty string, if None.
    """

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class SparseFeature(NamedTuple):
    """A sparse tensor that stands in two or more features: its indices, and its values.

    Attributes:
        index_key: The name of the feature with the indices; for a tensor of more dimensions a
            list of names.
        value_key: The name of the feature with the values.
        dtype: That of the values.
        size: The length of the dimension, or a list of these.
        already_sorted: Whether the values stand in the order of their indices.
    """

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


class Wanted(NamedTuple):
    """Features by what becomes of them, as ops take them.

    Attributes:
        sparse_keys: The names of those that become sparse tensors, and of parts of such.
        sparse_types: Their dtypes.
        dense_keys: The names of those that become dense tensors.
        dense_types: Their dtypes.
        dense_shapes: The shapes of their values; of sequences with an unknown first dimension.
        dense_defaults: Their defaults, or what to pad with; empty where there is none.
        allowed_missing: The names of sequences that an example may lack.
    """

    sparse_keys: tuple[str, ...]
    sparse_types: tuple[DType, ...]
    dense_keys: tuple[str, ...]
    dense_types: tuple[DType, ...]
    dense_shapes: tuple[Shape, ...]
    dense_defaults: tuple[Tensor, ...]
    allowed_missing: tuple[str, ...]


def wanted(features: Mapping[str, Any], kinds: Sequence[type], *, lists: bool = False) -> Wanted:
    """Sort descriptions of features.

    Args:
        features: The descriptions, by name.
        kinds: Which kinds of descriptions are taken.
        lists: Whether they are of lists of features, one for each step, as sequences have.

    Raises:
        AttributeValueError: if a description is none, or lacks something.
        DTypeError: if a dtype is none of features.
    """
    sparse: dict[str, DType] = {}
    dense: list[tuple[str, DType, Shape, Tensor]] = []
    allowed = []
    if not isinstance(features, Mapping):
        raise ArgumentTypeError(
            f"features must be a dict of features by key, got {shown(features)}"
        )
    for key in sorted(mapping(features, "features")):
        feature: Any = features[key]
        if type(feature) not in kinds:
            taken = ", ".join(kind.__name__ for kind in kinds)
            raise AttributeValueError(
                f"feature {shown(key)} must be one of {taken}, got {shown(feature)}"
            )
        dtype = _dtype(key, feature.dtype)
        if isinstance(feature, VarLenFeature):
            _add_sparse(sparse, key, dtype)
        elif isinstance(feature, SparseFeature):
            if not feature.index_key or not feature.value_key:
                raise AttributeValueError(
                    f"feature {key!r}: a SparseFeature needs index_key and value_key, got {feature}"
                )
            for index_key in sorted(_index_keys(feature)):
                _add_sparse(sparse, index_key, hr.int64)
            _add_sparse(sparse, feature.value_key, dtype)
        elif isinstance(feature, FixedLenFeature):
            shape = _shape(key, feature.shape)
            dense.append((key, dtype, shape, _default(key, feature.default_value, dtype, shape)))
        else:
            shape = _shape(key, feature.shape)
            if lists:
                _check_list(key, feature)
            elif not feature.allow_missing:
                raise AttributeValueError(
                    f"feature {key!r}: parse_example takes a FixedLenSequenceFeature with "
                    "allow_missing=True only"
                )
            else:
                shape = Shape([None]).concatenate(shape)
            if feature.allow_missing:
                allowed.append(key)
            dense.append((key, dtype, shape, _padding(key, feature.default_value, dtype)))
    both = sparse.keys() & {key for key, *_ in dense}
    if both:
        raise AttributeValueError(f"features are asked for as dense and as sparse: {sorted(both)}")
    keys, types, shapes, defaults = zip(*dense, strict=True) if dense else ((), (), (), ())
    return Wanted(
        tuple(sparse), tuple(sparse.values()), keys, types, shapes, defaults, tuple(allowed)
    )


def merge_sparse(features: Mapping[str, Any], parsed: dict[str, Any]) -> dict[str, Any]:
    """Return what was asked for: sparse features made of their parts, and the others.

    Args:
        features: The descriptions.
        parsed: What was parsed, parts of sparse features among it.
    """
    made = dict(parsed)
    for key in sorted(features):
        feature = features[key]
        if isinstance(feature, SparseFeature):
            one = isinstance(feature.index_key, str)
            ids = [parsed[index_key] for index_key in _index_keys(feature)]
            values = parsed[feature.value_key]
            message = f"feature {key!r}: there must be as many indices as values, in every example"
            alike = [hr.assert_equal(part.indices, values.indices, message=message) for part in ids]
            with hr.control_dependencies(alike):
                values = SparseTensor(
                    values.indices, hr.identity(values.values), values.dense_shape
                )
            merged: SparseTensor = hr.sparse_merge(
                ids[0] if one else ids,
                values,
                vocab_size=feature.size,
                already_sorted=feature.already_sorted,
            )
            made[key] = merged
    return {key: made[key] for key in made if key in features}


def _index_keys(feature: SparseFeature) -> list[str]:
    keys = feature.index_key
    return [keys] if isinstance(keys, str) else list(keys)


def _add_sparse(sparse: dict[str, DType], key: str, dtype: DType) -> None:
    known = sparse.setdefault(key, dtype)
    if known != dtype:
        raise AttributeValueError(f"feature {key!r} is asked for as {known} and as {dtype}")


def _dtype(key: str, dtype: Any) -> DType:
    if dtype is None:
        raise AttributeValueError(f"feature {key!r} needs a dtype")
    found = hr.as_dtype(dtype)
    if found not in KINDS:
        raise DTypeError(
            f"feature {key!r} must be {', '.join(map(str, KINDS))}, the kinds that examples have; "
            f"got {found}"
        )
    return found


def _shape(key: str, given: Any) -> Shape:
    if given is None:
        raise AttributeValueError(f"feature {key!r} needs a shape")
    shape = Shape(given)
    if not shape.is_fully_defined():
        raise AttributeValueError(
            f"feature {key!r}: all dimensions must be known, got {shape}; a sequence of any length "
            "is a FixedLenSequenceFeature"
        )
    return shape


def _default(key: str, value: Any, dtype: DType, shape: Shape) -> Tensor:
    if value is None:
        return hr.constant([], dtype)
    tensor = value if isinstance(value, Tensor) else hr.convert_to_tensor(value, dtype)
    if not isinstance(value, Tensor):
        count, given = shape.num_elements(), tensor.spec.shape.num_elements()
        if count != given:
            raise AttributeValueError(
                f"feature {key!r}: the default value must have shape {shape}, got "
                f"{tensor.spec.shape}"
            )
        tensor = hr.reshape(tensor, shape)
    return tensor


def _padding(key: str, value: Any, dtype: DType) -> Tensor:
    if value is None:
        return hr.constant("" if dtype == hr.string else 0, dtype)
    tensor = hr.convert_to_tensor(value, dtype)
    if tensor.spec.shape.num_elements() not in (None, 1):
        raise AttributeValueError(
            f"feature {key!r}: what to pad with must be a scalar, got shape {tensor.spec.shape}"
        )
    return hr.reshape(tensor, [])


def _check_list(key: str, feature: FixedLenSequenceFeature) -> None:
    if feature.default_value is not None:
        raise AttributeValueError(
            f"feature {key!r}: steps of sequences have no default value, got "
            f"{feature.default_value!r}"
        )
