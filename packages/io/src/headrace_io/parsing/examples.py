"""Parsing examples, as programs call it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import headrace as hr
from headrace import SparseTensor, Tensor
from headrace.errors import AttributeValueError, shown
from headrace_io.ops.parsing import parse_example_op, parse_sequence_example_op
from headrace_io.parsing.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    SparseFeature,
    VarLenFeature,
    Wanted,
    merge_sparse,
    wanted,
)

_OF_EXAMPLES = (FixedLenFeature, FixedLenSequenceFeature, SparseFeature, VarLenFeature)
_OF_CONTEXTS = (FixedLenFeature, VarLenFeature)
_OF_LISTS = (FixedLenSequenceFeature, VarLenFeature)


def parse_example(
    serialized: Any,
    features: Mapping[str, Any],
    name: str | None = None,
    example_names: Any = None,
) -> dict[str, Any]:
    """Parse a batch of serialized ``Example`` messages.

    Args:
        serialized: [n], strings.
        features: For each feature to take a ``FixedLenFeature``, ``VarLenFeature``,
            ``SparseFeature`` or ``FixedLenSequenceFeature``, by name.
        name: The name of the operations.
        example_names: [n], strings by which errors call the examples; they are numbered if None.

    Returns:
        For each feature a tensor [n, ...], or a sparse one of two dimensions. Running it raises
        ``InvalidArgumentError`` if a string is no example, or a feature is missing, of another
        kind or of another size.

    Raises:
        AttributeValueError: if a description is none.
        DTypeError: if a dtype is none of features.
    """
    return _parsed(serialized, features, name, example_names, single=False)


def parse_single_example(
    serialized: Any,
    features: Mapping[str, Any],
    name: str | None = None,
    example_names: Any = None,
) -> dict[str, Any]:
    """Parse a serialized ``Example`` message.

    A batch is parsed faster by ``parse_example`` than one by one.

    Args:
        serialized: [], a string.
        features: As for ``parse_example``.
        name: The name of the operations.
        example_names: [], a string by which errors call the example.

    Returns:
        As ``parse_example``, without the dimension of the batch.

    Raises:
        AttributeValueError: as ``parse_example``.
        DTypeError: as ``parse_example``.
    """
    return _parsed(serialized, features, name, example_names, single=True)


def _parsed(
    serialized: Any, features: Mapping[str, Any], name: str | None, names: Any, *, single: bool
) -> dict[str, Any]:
    if not features:
        raise AttributeValueError(f"there must be features to parse, got {shown(features)}")
    label = name or ("ParseSingleExample" if single else "ParseExample")
    with hr.name_scope(label):
        asked = wanted(features, _OF_EXAMPLES)
        outputs = parse_example_op(
            hr.convert_to_tensor(serialized, hr.string),
            _names(names),
            asked.dense_defaults,
            sparse_keys=asked.sparse_keys,
            sparse_types=asked.sparse_types,
            dense_keys=asked.dense_keys,
            dense_types=asked.dense_types,
            dense_shapes=asked.dense_shapes,
            single=single,
            name=label,
        )
        return merge_sparse(features, _by_name(asked, list(outputs)))


def parse_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Tensor]]:
    """Parse a batch of serialized ``SequenceExample`` messages.

    Args:
        serialized: [n], strings.
        context_features: For each feature of the context a ``FixedLenFeature`` or
            ``VarLenFeature``, by name.
        sequence_features: For each list of features a ``FixedLenSequenceFeature`` or
            ``VarLenFeature``, by name.
        example_names: [n], strings by which errors call the examples; they are numbered if None.
        name: The name of the operations.

    Returns:
        The features of the context, as ``parse_example`` returns them; for each list a tensor
        [n, longest, ...], filled up with zeros or empty strings, or a sparse one of three
        dimensions; and for each dense one of these the numbers of steps, [n], int64. Running it
        raises ``InvalidArgumentError`` as ``parse_example``.

    Raises:
        AttributeValueError: if a description is none.
        DTypeError: if a dtype is none of features.
    """
    return _parsed_sequences(
        serialized, context_features, sequence_features, example_names, name, single=False
    )


def parse_single_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parse a serialized ``SequenceExample`` message.

    Args:
        serialized: [], a string.
        context_features: As for ``parse_sequence_example``.
        sequence_features: As for ``parse_sequence_example``.
        example_name: [], a string by which errors call the example.
        name: The name of the operations.

    Returns:
        The features of the context, and the lists, as ``parse_sequence_example`` returns them,
        without the dimension of the batch.

    Raises:
        AttributeValueError: if a description is none.
        DTypeError: if a dtype is none of features.
    """
    context, lists, _ = _parsed_sequences(
        serialized, context_features, sequence_features, example_name, name, single=True
    )
    return context, lists


def _parsed_sequences(
    serialized: Any,
    context_features: Mapping[str, Any] | None,
    sequence_features: Mapping[str, Any] | None,
    names: Any,
    name: str | None,
    *,
    single: bool,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Tensor]]:
    if not (context_features or sequence_features):
        raise AttributeValueError("there must be features or lists of features to parse")
    label = name or ("ParseSingleSequenceExample" if single else "ParseSequenceExample")
    with hr.name_scope(label):
        asked = wanted(context_features or {}, _OF_CONTEXTS)
        lists = wanted(sequence_features or {}, _OF_LISTS, lists=True)
        outputs = list(
            parse_sequence_example_op(
                hr.convert_to_tensor(serialized, hr.string),
                _names(names),
                asked.dense_defaults,
                sparse_keys=asked.sparse_keys,
                sparse_types=asked.sparse_types,
                dense_keys=asked.dense_keys,
                dense_types=asked.dense_types,
                dense_shapes=asked.dense_shapes,
                list_sparse_keys=lists.sparse_keys,
                list_sparse_types=lists.sparse_types,
                list_dense_keys=lists.dense_keys,
                list_dense_types=lists.dense_types,
                list_dense_shapes=lists.dense_shapes,
                allowed_missing=lists.allowed_missing,
                single=single,
                name=label,
            )
        )
        count = 3 * len(asked.sparse_keys) + len(asked.dense_keys)
        lengths = outputs[len(outputs) - len(lists.dense_keys) :]
        return (
            _by_name(asked, outputs[:count]),
            _by_name(lists, outputs[count : len(outputs) - len(lists.dense_keys)]),
            dict(zip(lists.dense_keys, lengths, strict=True)),
        )


def _names(names: Any) -> Tensor:
    given = [] if names is None else names
    tensor: Tensor = hr.convert_to_tensor(given, hr.string)
    return tensor


def _by_name(asked: Wanted, outputs: Sequence[Tensor]) -> dict[str, Any]:
    """Return the outputs of a parsing op by the names of their features."""
    count = len(asked.sparse_keys)
    parts = zip(outputs[:count], outputs[count : 2 * count], outputs[2 * count :], strict=False)
    found: dict[str, Any] = {
        key: SparseTensor(indices, values, shape)
        for key, (indices, values, shape) in zip(asked.sparse_keys, parts, strict=False)
    }
    found.update(zip(asked.dense_keys, outputs[3 * count :], strict=True))
    return found
