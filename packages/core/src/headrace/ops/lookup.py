"""Lookup tables: resources that map keys to values. The classes are in ``tables.py``."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown, told
from headrace.graph.spec import TensorSpec
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, Resource, String
from headrace.shapes import SCALAR, Shape

_TABLE = "what is in a table belongs to other steps, and keys have no gradient"

# Of columns of a file: the number of the line, and all of it.
LINE_NUMBER = -1
WHOLE_LINE = -2


@op("LookupTable", effects="reads", public="", no_gradient=_TABLE)
def lookup_table(
    key_dtype: DType,
    value_dtype: DType,
    value_shape: Shape,
    kind: str,
    reserved: tuple[Any, ...],
    container: str,
    shared_name: str,
) -> Spec:
    """A handle to a table of a name in a container of the device.

    Args:
        key_dtype: Dtype of the keys: strings, integers or booleans.
        value_dtype: Dtype of the values.
        value_shape: Shape of each value.
        kind: "static" for a table that is initialized once and never changed, else "mutable".
        reserved: Keys that may not be used.
        container: The container; empty for the default one.
        shared_name: The table's name in the container.

    Returns:
        [], a resource handle.
    """
    if not (key_dtype.is_integer or key_dtype.is_bool or key_dtype.kind == "string"):
        raise DTypeError(f"keys of tables are strings, integers or booleans, not {key_dtype}")
    if value_dtype.kind == "resource":
        raise DTypeError("values of tables are no handles")
    if kind not in ("static", "mutable"):
        raise AttributeValueError(f"kind must be 'static' or 'mutable', got {shown(kind)}")
    if not value_shape.is_fully_defined():
        raise ShapeError(f"the shape of a table's values must be known, got {value_shape}")
    return TensorSpec(dtypes.resource, SCALAR)


@op("LookupTableFind", effects="reads", public="", no_gradient=_TABLE)
def table_find(handle: Resource, keys: Anything, default_value: Anything) -> Spec:
    """The values of keys.

    Args:
        handle: [], a table. A static one raises when it runs before it was initialized.
        keys: [...], of the table's key dtype.
        default_value: The value of keys that are not in the table, of its values' shape and dtype.

    Returns:
        [..., value shape], the values' dtype.
    """
    return TensorSpec(default_value.dtype, keys.shape.concatenate(default_value.shape))


def _pairs(keys: TensorSpec, values: TensorSpec) -> None:
    if keys.rank is None or values.rank is None:
        return
    if values.rank < keys.rank or not keys.shape.is_compatible_with(values.shape[: keys.rank]):
        raise ShapeError(f"there must be one value per key, got {keys.shape} and {values.shape}")


@op("LookupTableInitialize", effects="changes", public="", no_gradient=_TABLE)
def table_initialize(handle: Resource, keys: Anything, values: Anything) -> None:
    """Fill a static table; once more with the same content does nothing.

    Args:
        handle: [], a static table.
        keys: [n], of the table's key dtype. A key with two values raises when it runs.
        values: [n], of its value dtype.
    """
    _pairs(keys, values)


@op("LookupTableInitializeFromFile", effects="changes", public="", no_gradient=_TABLE)
def table_initialize_from_file(
    handle: Resource,
    filename: String,
    key_index: int,
    value_index: int,
    vocab_size: int,
    delimiter: str,
) -> None:
    """Fill a static table with the lines of a text file.

    Args:
        handle: [], a static table.
        filename: [], a path that the device's process can read.
        key_index: The column of the keys, -1 for the number of the line, -2 for the whole line.
        value_index: The column of the values, as the keys'.
        vocab_size: How many lines to read; -1 for all.
        delimiter: What separates columns.
    """
    if filename.rank not in (None, 0):
        raise ShapeError(f"filename must be a scalar, got shape {filename.shape}")
    if min(key_index, value_index) < WHOLE_LINE:
        raise AttributeValueError(
            f"a column is >= 0, -1 (number of the line) or -2 (whole line), got "
            f"{told(key_index)} and "
            f"{told(value_index)}"
        )
    if vocab_size < -1 or vocab_size == 0:
        raise AttributeValueError(
            f"vocab_size must be positive, or -1 for all, got {told(vocab_size)}"
        )
    if len(delimiter) != 1:
        raise AttributeValueError(f"delimiter must be one character, got {shown(delimiter, 40)}")


@op("LookupTableInsert", effects="changes", public="", no_gradient=_TABLE)
def table_insert(handle: Resource, keys: Anything, values: Anything) -> None:
    """Put values under keys of a mutable table, in place of those there.

    Args:
        handle: [], a mutable table.
        keys: [...], of the table's key dtype; of equal ones the last wins.
        values: [..., value shape], of its value dtype.
    """
    _pairs(keys, values)


@op("LookupTableRemove", effects="changes", public="", no_gradient=_TABLE)
def table_remove(handle: Resource, keys: Anything) -> None:
    """Remove keys from a mutable table; those that it does not have are ignored.

    Args:
        handle: [], a mutable table.
        keys: [...], of the table's key dtype.
    """


@op("LookupTableSize", effects="reads", public="", no_gradient=_TABLE)
def table_size(handle: Resource) -> Spec:
    """How many keys a table has.

    Args:
        handle: [], a table.

    Returns:
        [], int64.
    """
    return TensorSpec(dtypes.int64, SCALAR)


@op("LookupTableExport", effects="reads", public="", no_gradient=_TABLE)
def table_export(
    handle: Resource, key_dtype: DType, value_dtype: DType, value_shape: Shape
) -> tuple[Spec, Spec]:
    """All keys and values of a table, in the order in which they came.

    Args:
        handle: [], a table.
        key_dtype: Dtype of the keys.
        value_dtype: Dtype of the values.
        value_shape: Shape of each value.

    Returns:
        The keys [n], and the values [n, value shape].
    """
    rows = Shape([None])
    return TensorSpec(key_dtype, rows), TensorSpec(value_dtype, rows.concatenate(value_shape))


# What is saved of a table, in two tensors.
KEYS, VALUES = "keys", "values"


@op("LookupTableRestore", effects="changes", public="", no_gradient=_TABLE)
def table_restore(handle: Resource, part: Anything, what: str) -> None:
    """Give a mutable table one part of what was saved of it; with the other, it has that alone.

    A saver restores tensors one by one, in any order.

    Args:
        handle: [], a mutable table.
        part: Its keys [n], or its values [n, value shape].
        what: "keys" or "values". When it runs with both parts, and they do not fit together, it
            raises, and the table stays as it was.
    """
    if what not in (KEYS, VALUES):
        raise AttributeValueError(f"what must be 'keys' or 'values', got {shown(what)}")
