"""Tables of vocabularies: strings or integers to numbers, and numbers to strings."""

from __future__ import annotations

from typing import Any, NamedTuple

from headrace import dtypes
from headrace.arguments import whole
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, shown, told
from headrace.graph.convert import convert_to_tensor
from headrace.graph.operation import Operation
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.arithmetic import where
from headrace.ops.array import size
from headrace.ops.constant import range as range_op
from headrace.ops.control import group
from headrace.ops.conversion import cast
from headrace.ops.elementwise import not_equal
from headrace.ops.tables import (
    KeyValueTensorInitializer,
    StaticHashTable,
    TableInitializer,
    TextFileIndex,
    TextFileInitializer,
    key_tensor,
    mapped,
)
from headrace.ops.text_convert import as_string
from headrace.ops.text_hash import string_to_hash_bucket_fast as hash_fast
from headrace.ops.text_hash import string_to_hash_bucket_strong as hash_strong


class FastHashSpec(NamedTuple):
    """Keys outside of a vocabulary go to buckets by ``string_to_hash_bucket_fast``."""

    hasher: str = "fasthash"
    key: Any = None


class StrongHashSpec(NamedTuple):
    """Keys outside of a vocabulary go to buckets by ``string_to_hash_bucket_strong``.

    Attributes:
        key: Two integers of 64 bits.
        hasher: The function's name.
    """

    key: Any
    hasher: str = "stronghash"


class StaticVocabularyTable:
    """Numbers strings or integers: those of a vocabulary by a table, all others by hashing.

    Attributes:
        initializer: The operation that fills the table of the vocabulary.
        key_dtype: Dtype of the keys.
        value_dtype: int64.
        name: The table's name.
    """

    def __init__(
        self,
        initializer: TableInitializer | None,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
        *,
        hasher_spec: FastHashSpec | StrongHashSpec = FastHashSpec(),  # noqa: B008
    ) -> None:
        """Make a table in the default graph, which ``hr.tables_initializer`` then knows.

        Args:
            initializer: The vocabulary, with values int64 that should be 0 to n - 1; None for an
                empty one.
            num_oov_buckets: How many numbers, from n on, the other keys share by their hashes.
            lookup_key_dtype: Dtype of the keys that are looked up, string or an integer; that of
                the vocabulary if None.
            name: The table's name.
            hasher_spec: The hash function.

        Raises:
            AttributeValueError: if there is no bucket.
            DTypeError: if the values are not int64, or keys do not fit the vocabulary.
        """
        if whole(num_oov_buckets, "num_oov_buckets") <= 0:
            raise AttributeValueError(
                f"num_oov_buckets must be positive, got {told(num_oov_buckets)}"
            )
        if initializer is not None and initializer.value_dtype != dtypes.int64:
            raise DTypeError(f"the values must be int64, got {initializer.value_dtype}")
        self.name = name or "string_to_index"
        self._buckets = num_oov_buckets
        self._hasher = hasher_spec
        self._table = None
        own = dtypes.string
        if initializer is not None:
            self._table = StaticHashTable(initializer, -1, name=name)
            own = initializer.key_dtype
            self.name = self._table.name
        self.key_dtype = own if lookup_key_dtype is None else as_dtype(lookup_key_dtype)
        self.value_dtype = dtypes.int64
        if self.key_dtype.is_integer != own.is_integer:
            raise DTypeError(f"keys {self.key_dtype} do not fit a vocabulary of {own}")
        if not (self.key_dtype.is_integer or self.key_dtype.kind == "string"):
            raise DTypeError(f"keys must be strings or integers, got {self.key_dtype}")

    @property
    def initializer(self) -> Operation:
        """The operation that fills the table of the vocabulary."""
        return group(name="init") if self._table is None else self._table.initializer

    init = initializer

    @property
    def resource_handle(self) -> Tensor | None:
        """The handle of the vocabulary's table, None where there is none."""
        return None if self._table is None else self._table.handle

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Return the numbers of keys.

        Args:
            keys: [...], of the key dtype; or a SparseTensor.
            name: The name of the scope.

        Returns:
            [...], int64: the value of keys in the vocabulary, else one of the numbers behind it. A
            SparseTensor where ``keys`` is one.

        Raises:
            DTypeError: if the keys have another dtype.
        """
        return mapped(self._find, keys, name or f"{self.name.rpartition('/')[2]}_Lookup")

    __getitem__ = lookup

    def size(self, name: str | None = None) -> Tensor:
        """Return how many numbers there are, buckets included, as a scalar int64 tensor."""
        with name_scope(name, "Size"):
            buckets = convert_to_tensor(self._buckets, dtypes.int64)
            return buckets if self._table is None else self._table.size() + buckets

    def _find(self, keys: Any, name: str) -> Tensor:
        tensor = key_tensor(keys, self.key_dtype)
        with name_scope(name):
            texts = tensor if tensor.dtype.kind == "string" else as_string(tensor)
            if isinstance(self._hasher, StrongHashSpec):
                bucket = hash_strong(texts, self._buckets, self._hasher.key)
            else:
                bucket = hash_fast(texts, self._buckets)
            if self._table is None:
                return bucket
            own = self._table.key_dtype
            found = self._table.lookup(tensor if tensor.dtype == own else cast(tensor, own))
            return where(not_equal(found, -1), found, bucket + self._table.size())


def _initialized(
    initializer: TableInitializer,
    num_oov_buckets: int,
    default_value: Any,
    hasher_spec: Any,
    key_dtype: DType,
    name: str | None,
) -> Any:
    """Return the table of a vocabulary, with buckets for other keys if there are any."""
    if whole(num_oov_buckets, "num_oov_buckets") < 0:
        raise AttributeValueError(f"num_oov_buckets must be >= 0, got {num_oov_buckets}")
    if hasher_spec is FastHashSpec:
        hasher_spec = FastHashSpec()
    if not isinstance(hasher_spec, FastHashSpec | StrongHashSpec):
        raise DTypeError(
            f"hasher_spec must be FastHashSpec or StrongHashSpec, got {shown(hasher_spec)}"
        )
    if num_oov_buckets:
        return StaticVocabularyTable(
            initializer, num_oov_buckets, key_dtype, name, hasher_spec=hasher_spec
        )
    return StaticHashTable(initializer, default_value, name)


def index_table_from_file(
    vocabulary_file: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    key_dtype: Any = dtypes.string,
    name: str | None = None,
    key_column_index: int = TextFileIndex.WHOLE_LINE,
    value_column_index: int = TextFileIndex.LINE_NUMBER,
    delimiter: str = "\t",
) -> Any:
    """Return a table that numbers strings by the lines of a file.

    Args:
        vocabulary_file: A path, read when ``hr.tables_initializer`` runs.
        num_oov_buckets: How many numbers strings outside of the file share by their hashes.
        vocab_size: How many lines to read, which must be there; all if None.
        default_value: The number of strings outside of the file, where there are no buckets.
        hasher_spec: ``FastHashSpec``, or a ``StrongHashSpec``.
        key_dtype: Dtype of the keys: string or an integer.
        name: The table's name.
        key_column_index: The column of the keys, or one of ``TextFileIndex``.
        value_column_index: The column of the numbers, or one of ``TextFileIndex``.
        delimiter: The character between columns.

    Returns:
        A table from ``key_dtype`` to int64.

    Raises:
        AttributeValueError: if there is no file, or a number is negative.
        DTypeError: if keys cannot have the dtype.
    """
    if vocabulary_file is None or (
        isinstance(vocabulary_file, str | bytes) and not vocabulary_file
    ):
        raise AttributeValueError("index_table_from_file needs the path of a file")
    keys = as_dtype(key_dtype)
    initializer = TextFileInitializer(
        vocabulary_file,
        dtypes.int64 if keys.is_integer else keys,
        key_column_index,
        dtypes.int64,
        value_column_index,
        vocab_size,
        delimiter,
    )
    return _initialized(initializer, num_oov_buckets, default_value, hasher_spec, keys, name)


def index_table_from_tensor(
    vocabulary_list: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = FastHashSpec,
    dtype: Any = dtypes.string,
    name: str | None = None,
) -> Any:
    """Return a table that numbers the elements of a vector by their places.

    Args:
        vocabulary_list: [n], strings or integers.
        num_oov_buckets: How many numbers other keys share by their hashes.
        default_value: The number of other keys, where there are no buckets.
        hasher_spec: ``FastHashSpec``, or a ``StrongHashSpec``.
        dtype: Dtype of the keys: string or an integer.
        name: The table's name.

    Returns:
        A table from strings or integers to int64. Without buckets, integers are int64.

    Raises:
        AttributeValueError: if there is no vocabulary, or a number is negative.
        DTypeError: if its elements do not have the dtype.
    """
    if vocabulary_list is None:
        raise AttributeValueError("index_table_from_tensor needs a vocabulary")
    wanted = as_dtype(dtype)
    keys = convert_to_tensor(vocabulary_list, preferred_dtype=wanted)
    if keys.dtype.is_integer != wanted.is_integer or keys.dtype.is_floating:
        raise DTypeError(f"the vocabulary is {keys.dtype}, expected {wanted}")
    with name_scope(name, "string_to_index"):
        if keys.dtype.is_integer:
            keys = cast(keys, dtypes.int64)
        numbers = range_op(size(keys, out_type=dtypes.int64))
        initializer = KeyValueTensorInitializer(keys, numbers)
    return _initialized(initializer, num_oov_buckets, default_value, hasher_spec, wanted, name)


def index_to_string_table_from_file(
    vocabulary_file: Any,
    vocab_size: int | None = None,
    default_value: Any = "UNK",
    name: str | None = None,
    key_column_index: int = TextFileIndex.LINE_NUMBER,
    value_column_index: int = TextFileIndex.WHOLE_LINE,
    delimiter: str = "\t",
) -> StaticHashTable:
    """Return a table of the lines of a file by their numbers.

    Args:
        vocabulary_file: A path, read when ``hr.tables_initializer`` runs.
        vocab_size: How many lines to read, which must be there; all if None.
        default_value: What other numbers are mapped to.
        name: The table's name.
        key_column_index: The column of the numbers, or one of ``TextFileIndex``.
        value_column_index: The column of the strings, or one of ``TextFileIndex``.
        delimiter: The character between columns.

    Returns:
        A table from int64 to string.

    Raises:
        AttributeValueError: if there is no file.
    """
    if isinstance(vocabulary_file, str | bytes) and not vocabulary_file:
        raise AttributeValueError("index_to_string_table_from_file needs the path of a file")
    initializer = TextFileInitializer(
        vocabulary_file,
        dtypes.int64,
        key_column_index,
        dtypes.string,
        value_column_index,
        vocab_size,
        delimiter,
    )
    return StaticHashTable(initializer, default_value, name or "index_to_string")


def index_to_string_table_from_tensor(
    vocabulary_list: Any, default_value: Any = "UNK", name: str | None = None
) -> StaticHashTable:
    """Return a table of the strings of a vector by their places.

    Args:
        vocabulary_list: [n], string.
        default_value: What other numbers are mapped to.
        name: The table's name.

    Returns:
        A table from int64 to string.

    Raises:
        AttributeValueError: if there is no vocabulary.
        DTypeError: if it does not hold strings.
    """
    if vocabulary_list is None:
        raise AttributeValueError("index_to_string_table_from_tensor needs a vocabulary")
    with name_scope(name, "index_to_string"):
        strings = convert_to_tensor(vocabulary_list, dtypes.string)
        numbers = range_op(size(strings, out_type=dtypes.int64))
        initializer = KeyValueTensorInitializer(numbers, strings)
    return StaticHashTable(initializer, default_value, name or "index_to_string")
