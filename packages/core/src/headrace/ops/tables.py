"""Lookup tables as programs see them: what fills them, and the kinds of tables."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, final

from headrace import dtypes
from headrace.arguments import whole
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown, told
from headrace.graph.collections import GraphKeys
from headrace.graph.convert import convert_to_tensor
from headrace.graph.operation import Operation
from headrace.graph.saveable import Saveable
from headrace.graph.scopes import (
    colocate_with,
    control_dependencies,
    current_scope,
    get_default_graph,
    name_scope,
)
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.tensor import Tensor
from headrace.ops.constant import constant
from headrace.ops.control import group
from headrace.ops.lookup import (
    KEYS,
    LINE_NUMBER,
    VALUES,
    WHOLE_LINE,
    lookup_table,
    table_export,
    table_find,
    table_initialize,
    table_initialize_from_file,
    table_insert,
    table_remove,
    table_restore,
    table_size,
)
from headrace.shapes import SCALAR


@final
class TextFileIndex:
    """Columns of a text file that are none: the whole line, and its number (from 0)."""

    WHOLE_LINE = WHOLE_LINE
    LINE_NUMBER = LINE_NUMBER


class TableInitializer:
    """What a static table is filled with.

    Attributes:
        key_dtype: Dtype of the keys.
        value_dtype: Dtype of the values.
    """

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self.key_dtype = as_dtype(key_dtype)
        self.value_dtype = as_dtype(value_dtype)

    def initialize(self, table: Any) -> Operation:
        """Return an operation that fills a table."""
        raise NotImplementedError


@final
class KeyValueTensorInitializer(TableInitializer):
    """Fills a table with keys and values."""

    def __init__(
        self,
        keys: Any,
        values: Any,
        key_dtype: Any = None,
        value_dtype: Any = None,
        name: str | None = None,
    ) -> None:
        """Take keys and values.

        Args:
            keys: [n], strings, integers or booleans.
            values: [n], any dtype.
            key_dtype: The dtype of the keys; their own if None.
            value_dtype: The dtype of the values; their own if None.
            name: The name of the scope.

        Raises:
            DTypeError: if they do not have the dtypes.
            ShapeError: if there is not one value per key.
        """
        with name_scope(name, "key_value_init"):
            self._keys = convert_to_tensor(keys, key_dtype, name="keys")
            self._values = convert_to_tensor(values, value_dtype, name="values")
        super().__init__(self._keys.dtype, self._values.dtype)
        if not self._keys.shape.is_compatible_with(self._values.shape):
            raise ShapeError(
                f"there must be one value per key, got {self._keys.spec.shape} and "
                f"{self._values.spec.shape}"
            )

    def initialize(self, table: Any) -> Operation:
        """Return an operation that fills a table."""
        return table_initialize(table.handle, self._keys, self._values, name="initialize")


@final
class TextFileInitializer(TableInitializer):
    """Fills a table with the lines of a text file."""

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
    ) -> None:
        """Take the name of a file, which is read when the initializer runs.

        Args:
            filename: [], string, a path that the process of the table's device can read.
            key_dtype: Dtype of the keys: string or integers for whole lines, int64 for numbers of
                lines.
            key_index: The column of the keys, or one of ``TextFileIndex``.
            value_dtype: Dtype of the values: string for whole lines, int64 for their numbers.
            value_index: The column of the values, or one of ``TextFileIndex``.
            vocab_size: How many lines to read, which must be there; all if None.
            delimiter: The character between columns.
            name: The name of the scope.

        Raises:
            AttributeValueError: if a column is negative, or the size not positive.
            DTypeError: if lines or their numbers are given another dtype.
        """
        super().__init__(key_dtype, value_dtype)
        for label, index, dtype in (
            ("key", key_index, self.key_dtype),
            ("value", value_index, self.value_dtype),
        ):
            wanted = {LINE_NUMBER: dtypes.int64, WHOLE_LINE: dtypes.string}.get(index)
            number = label == "key" and index == WHOLE_LINE and dtype.is_integer
            if wanted is not None and dtype != wanted and not number:
                raise DTypeError(f"{label}_dtype must be {wanted} for {label}_index {index}")
            if whole(index, f"{label}_index") < WHOLE_LINE:
                raise AttributeValueError(f"{label}_index must be a column >= 0, got {index}")
        if vocab_size is not None and whole(vocab_size, "vocab_size") <= 0:
            raise AttributeValueError(f"vocab_size must be positive, got {told(vocab_size)}")
        self._columns = key_index, value_index, -1 if vocab_size is None else vocab_size, delimiter
        with name_scope(name, "text_file_init"):
            self._filename = convert_to_tensor(filename, dtypes.string, name="filename")
        if not self._filename.shape.is_compatible_with(SCALAR):
            raise ShapeError(f"filename must be a scalar, got shape {self._filename.spec.shape}")

    def initialize(self, table: Any) -> Operation:
        """Return an operation that fills a table."""
        if self._filename.op.type == "Const":
            # Saved models take the file with them.
            table.handle.graph.add_to_collection(GraphKeys.ASSET_FILEPATHS, self._filename)
        return table_initialize_from_file(
            table.handle, self._filename, *self._columns, name="initialize"
        )


class Table:
    """What all tables in a container of a device have.

    Attributes:
        handle: The handle.
        key_dtype: Dtype of the keys.
        value_dtype: Dtype of the values.
        default_value: What keys that it does not have are mapped to.
        name: The table's name.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        kind: str,
        name: str | None,
        default_name: str,
        shared_name: str | None,
        reserved: Sequence[Any] = (),
    ) -> None:
        self.key_dtype: DType = as_dtype(key_dtype)
        self.value_dtype: DType = as_dtype(value_dtype)
        with control_dependencies(None), name_scope(name, default_name) as scope:
            self.name = scope[:-1] or default_name
            self.default_value = convert_to_tensor(
                default_value, self.value_dtype, name="default_value"
            )
            self.handle: Tensor = lookup_table(
                self.key_dtype,
                self.value_dtype,
                self.default_value.spec.shape,
                kind,
                tuple(reserved),
                current_scope().container,
                shared_name or self.name,
                name="handle",
            )

    @property
    def resource_handle(self) -> Tensor:
        """The handle."""
        return self.handle

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Return the values of keys.

        Args:
            keys: [...], of the table's key dtype; or a SparseTensor.
            name: The name of the operation.

        Returns:
            [...] and the shape of a value, the default value for keys that the table does not
            have. A SparseTensor where ``keys`` is one.

        Raises:
            DTypeError: if the keys have another dtype.
        """
        return mapped(self._find, keys, name or f"{self._short}_Lookup")

    __getitem__ = lookup

    def size(self, name: str | None = None) -> Tensor:
        """Return the number of keys, as a scalar int64 tensor."""
        with colocate_with(self.handle):
            return table_size(self.handle, name=name or f"{self._short}_Size")

    def export(self, name: str | None = None) -> tuple[Tensor, Tensor]:
        """Return all keys [n], and the values [n, ...], in the order in which they came."""
        with colocate_with(self.handle):
            return table_export(
                self.handle,
                self.key_dtype,
                self.value_dtype,
                self.default_value.spec.shape,
                name=name or f"{self._short}_export",
            )

    @property
    def _short(self) -> str:
        return self.name.rpartition("/")[2]

    def _find(self, keys: Any, name: str) -> Tensor:
        tensor = key_tensor(keys, self.key_dtype)
        with colocate_with(self.handle):
            return table_find(self.handle, tensor, self.default_value, name=name)

    def __repr__(self) -> str:
        kind = type(self).__name__
        return f"<{kind} {self.name!r} from {self.key_dtype} to {self.value_dtype}>"


def key_tensor(keys: Any, dtype: DType) -> Tensor:
    """Return keys as a tensor of a table's key dtype.

    Raises:
        DTypeError: if they have another one.
    """
    tensor = convert_to_tensor(keys, preferred_dtype=dtype)
    if tensor.dtype != dtype:
        raise DTypeError(f"keys must be {dtype}, as the table's are, got {tensor.dtype}")
    return tensor


def mapped(find: Callable[[Any, str], Tensor], keys: Any, name: str) -> Any:
    """Return the values of keys, or the sparse tensor of them where ``keys`` is one."""
    if not isinstance(keys, SparseTensor):
        return find(keys, name)
    return SparseTensor(keys.indices, find(keys.values, name), keys.dense_shape)


class StaticHashTable(Table):
    """A table that is filled once, by its initializer, and never changed.

    Attributes:
        initializer: The operation that fills it.
    """

    def __init__(
        self,
        initializer: TableInitializer,
        default_value: Any,
        name: str | None = None,
        *,
        shared_name: str | None = None,
    ) -> None:
        """Make a table in the default graph, which ``hr.tables_initializer`` then knows.

        Args:
            initializer: What it is filled with.
            default_value: [], what keys that it does not have are mapped to.
            name: The table's name; made unique.
            shared_name: Its name in its container; the table's own name if None.

        Raises:
            DTypeError: if the default value does not have the values' dtype.
            ShapeError: if it is no scalar.
        """
        if not isinstance(initializer, TableInitializer):
            raise DTypeError(f"expected an initializer of hr.lookup, got {shown(initializer)}")
        super().__init__(
            initializer.key_dtype,
            initializer.value_dtype,
            default_value,
            "static",
            name,
            "hash_table",
            shared_name,
        )
        if self.default_value.shape.rank != 0:
            raise ShapeError(f"default_value must be a scalar, got {self.default_value.spec.shape}")
        with (
            control_dependencies(None),
            name_scope(f"{self.name}/"),
            colocate_with(self.handle),
        ):
            self.initializer: Operation = initializer.initialize(self)
        get_default_graph().add_to_collection(GraphKeys.TABLE_INITIALIZERS, self.initializer)

    @property
    def init(self) -> Operation:
        """The operation that fills the table."""
        return self.initializer


@final
class HashTable(StaticHashTable):
    """A ``StaticHashTable`` with a name in its container as an argument of its own."""

    def __init__(
        self,
        initializer: TableInitializer,
        default_value: Any,
        shared_name: str | None = None,
        name: str | None = None,
    ) -> None:
        """Make a table; the arguments are those of ``StaticHashTable``, in another order."""
        super().__init__(initializer, default_value, name, shared_name=shared_name)


class _Mutable(Table):
    """A table that steps change."""

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Operation:
        """Return an operation that puts values under keys, in place of those there.

        Args:
            keys: [...], of the table's key dtype; of equal ones the last wins.
            values: [...] and the shape of a value.
            name: The name of the operation.

        Raises:
            DTypeError: if the keys have another dtype.
            ShapeError: if there is not one value per key.
        """
        tensor = key_tensor(keys, self.key_dtype)
        given = convert_to_tensor(values, self.value_dtype)
        wanted = tensor.spec.shape.concatenate(self.default_value.spec.shape)
        if not wanted.is_compatible_with(given.spec.shape):
            raise ShapeError(f"values must have shape {wanted}, got {given.spec.shape}")
        with colocate_with(self.handle):
            return table_insert(self.handle, tensor, given, name=name or f"{self._short}_insert")

    def remove(self, keys: Any, name: str | None = None) -> Operation:
        """Return an operation that removes keys; those that are not there are ignored.

        Args:
            keys: [...], of the table's key dtype.
            name: The name of the operation.

        Raises:
            DTypeError: if the keys have another dtype.
        """
        tensor = key_tensor(keys, self.key_dtype)
        with colocate_with(self.handle):
            return table_remove(self.handle, tensor, name=name or f"{self._short}_remove")

    erase = remove

    def _let_savers_save(self) -> None:
        """Let savers save the table, in two tensors, as TensorFlow's do."""
        with control_dependencies(None), name_scope(f"{self.name}/saved/"):
            exported = self.export("export")
            there = constant(True, name="is_there")
        for what, tensor in zip((KEYS, VALUES), exported, strict=True):
            restore = functools.partial(self._restored, what)
            saved = Saveable(f"{self.name}-{what}", tensor, there, restore)
            get_default_graph().add_to_collection(GraphKeys.SAVEABLE_OBJECTS, saved)

    def _restored(self, what: str, part: Tensor) -> Operation:
        with colocate_with(self.handle):
            return table_restore(self.handle, part, what, name=f"{self._short}_restore_{what}")


@final
class MutableHashTable(_Mutable):
    """A table that steps fill and change."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        shared_name: str | None = None,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
    ) -> None:
        """Make a table, which is empty at first.

        Args:
            key_dtype: Dtype of the keys: strings, integers or booleans.
            value_dtype: Dtype of the values.
            default_value: What keys that it does not have are mapped to; all values have its shape.
            shared_name: Its name in its container; the table's own name if None.
            name: The table's name; made unique.
            checkpoint: Whether savers save it, as two tensors: the keys under the table's name and
                ``-keys``, and the values.

        Raises:
            DTypeError: if keys cannot have the dtype, or the default value does not have its own.
        """
        super().__init__(
            key_dtype, value_dtype, default_value, "mutable", name, "MutableHashTable", shared_name
        )
        if checkpoint:
            self._let_savers_save()


class MutableDenseHashTable(_Mutable):
    """A ``MutableHashTable`` with two keys that are reserved, and may not be used.

    TensorFlow's keeps its buckets in tensors, and needs these keys for that. Here the table is the
    same as the other, except that its export has the keys of the table alone.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        shared_name: str | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
    ) -> None:
        """Make a table, which is empty at first.

        Args:
            key_dtype: Dtype of the keys: strings, integers or booleans.
            value_dtype: Dtype of the values.
            default_value: What keys that it does not have are mapped to; all values have its shape.
            empty_key: A scalar that is no key.
            deleted_key: Another scalar that is no key.
            initial_num_buckets: Ignored; a power of two.
            shared_name: Its name in its container; the table's own name if None.
            name: The table's name; made unique.
            checkpoint: Whether savers save it, see ``MutableHashTable``.

        Raises:
            AttributeValueError: if the reserved keys are equal, or no constants.
        """
        if initial_num_buckets is not None and (
            (initial_num_buckets := whole(initial_num_buckets, "initial_num_buckets")) < 1
            or initial_num_buckets & (initial_num_buckets - 1)
        ):
            raise AttributeValueError(
                f"initial_num_buckets must be a power of two, got {told(initial_num_buckets)}"
            )
        reserved = [_reserved(key, as_dtype(key_dtype)) for key in (empty_key, deleted_key)]
        if reserved[0] == reserved[1]:
            raise AttributeValueError("empty_key and deleted_key must be different")
        super().__init__(
            key_dtype,
            value_dtype,
            default_value,
            "mutable",
            name,
            "MutableDenseHashTable",
            shared_name,
            reserved,
        )
        if checkpoint:
            self._let_savers_save()

    insert_or_assign = _Mutable.insert


def _reserved(key: Any, dtype: DType) -> Any:
    value = convert_to_tensor(key, dtype).spec.value
    if value is None or value.size != 1:
        raise AttributeValueError("empty_key and deleted_key must be constant scalars")
    return value.item()


def tables_initializer(name: str = "init_all_tables") -> Operation:
    """Return an operation that initializes all tables that the default graph has now.

    Args:
        name: The name of the operation.
    """
    found = get_default_graph().get_collection(GraphKeys.TABLE_INITIALIZERS)
    return group(*found, name=name)


initialize_all_tables = tables_initializer
