"""Lookup tables: what handles of the lookup ops stand for."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import Any, final

import numpy as np

from headrace import DType, Shape
from headrace.errors import (
    DTypeError,
    ResourceError,
    ResourceMismatchError,
    ResourceNotFoundError,
    ResourceStateError,
    ShapeError,
    UninitializedError,
    shown,
    told,
)
from headrace.extend.files import open_regular

_NDArray = np.ndarray[Any, np.dtype[Any]]


@dataclass(slots=True, eq=False)
class Index:
    """What a table holds, as arrays, for kernels that look up many keys at once.

    Attributes:
        keys: [n], all keys.
        values: [n, ...], their values.
        slots: Where to look for a key, made by whoever looks; None at first.
    """

    keys: _NDArray
    values: _NDArray
    slots: _NDArray | None = None


@final
class LookupTable:
    """A mapping from keys to values, which threads may use at the same time.

    Keys are Python's values (bytes, numbers), values are rows of the table's value shape.
    """

    def __init__(
        self,
        name: str,
        key_dtype: DType,
        value_dtype: DType,
        value_shape: Shape,
        kind: str,
        reserved: Sequence[Any],
    ) -> None:
        self.name = name
        self.key_dtype = key_dtype
        self.value_dtype = value_dtype
        self.value_shape = value_shape.known
        self.kind = kind
        self.reserved = frozenset(reserved)
        self._lock = threading.Lock()
        self._rows: dict[Any, Any] = {}
        self._ready = kind != "static"
        self._index: Index | None = None
        # How many keys were looked up since the content changed.
        self._asked = 0
        # The parts of a saved table that have come, until both have.
        self._saved: dict[str, _NDArray] = {}

    def reset(self) -> None:
        """Forget everything."""
        with self._lock:
            self._rows, self._saved = {}, {}
            self._ready = self.kind != "static"
            self._changed()

    def initialize(self, keys: _NDArray, values: _NDArray) -> None:
        """Fill a static table.

        Raises:
            ResourceError: if it has other content already, or a key has two values.
        """
        found: dict[Any, Any] = {}
        for key, value in self._pairs(keys, values):
            if key in found and not _same(found[key], value):
                raise ResourceStateError(
                    f"table {self.name!r} has the value {shown(found[key], 60)} for the key "
                    f"{shown(key, 60)}, it cannot have {shown(value, 60)}, too"
                )
            found[key] = value
        with self._lock:
            if self._ready and not _equal(self._rows, found):
                raise ResourceStateError(
                    f"table {self.name!r} is initialized already, with other content; it keeps "
                    "what it has for as long as its session"
                )
            self._rows = found
            self._ready = True
            self._changed()

    def find(self, keys: _NDArray, default: _NDArray) -> _NDArray:
        """Return the values of keys, ``default`` for those that are not there.

        Raises:
            UninitializedError: if a static table was not filled.
        """
        listed = self._keys(keys)
        self._check_values(default, default.shape, self.value_shape)
        fallback = self._row(default)
        with self._lock:
            if not self._ready:
                raise UninitializedError(
                    f"table {self.name!r} is not initialized; run hr.tables_initializer() first"
                )
            rows = list(map(self._rows.get, listed, repeat(fallback)))
        return self._array(rows, keys.shape)

    def index(self, asked: int) -> Index | None:
        """Return the content as arrays, None where that is not worth it, or a key is refused.

        Args:
            asked: How many keys are looked up; an index is made when as many were as there are,
                since the content changed.
        """
        with self._lock:
            self._asked += asked
            if not self._ready or not self._rows or self.reserved:
                return None
            if self._index is None and self._asked >= len(self._rows):
                self._index = Index(*self._content())
            return self._index

    def insert(self, keys: _NDArray, values: _NDArray) -> None:
        """Put values under keys."""
        self._check_mutable("insert into")
        pairs = self._pairs(keys, values)
        with self._lock:
            self._rows.update(pairs)
            self._changed()

    def remove(self, keys: _NDArray) -> None:
        """Remove keys."""
        self._check_mutable("remove from")
        listed = self._keys(keys)
        with self._lock:
            for key in listed:
                self._rows.pop(key, None)
            self._changed()

    def restore(self, what: str, part: _NDArray) -> None:
        """Take the keys or the values of a saved table; with both, hold what it held alone.

        Raises:
            ShapeError: if there is not one value per key.
        """
        self._check_mutable("restore")
        with self._lock:
            self._saved[what] = part
            if len(self._saved) < 2:
                return
            saved, self._saved = self._saved, {}
        keys, values = saved["keys"], saved["values"]
        if self.reserved and keys.ndim == 2:
            # TensorFlow saves all buckets of such a table, [n, 1]: those of no key, too.
            keys = keys.reshape(-1)
            used = np.array([key not in self.reserved for key in keys.tolist()], bool)
            keys, values = keys[used], values[used]
        pairs = self._pairs(keys, values)
        with self._lock:
            self._rows = dict(pairs)
            self._changed()

    def size(self) -> int:
        """Return the number of keys.

        Raises:
            UninitializedError: if a static table was not filled.
        """
        with self._lock:
            if not self._ready:
                raise UninitializedError(
                    f"table {self.name!r} is not initialized; run hr.tables_initializer() first"
                )
            return len(self._rows)

    def export(self) -> tuple[_NDArray, _NDArray]:
        """Return all keys and values."""
        with self._lock:
            return self._content()

    def _content(self) -> tuple[_NDArray, _NDArray]:
        keys, rows = list(self._rows), list(self._rows.values())
        made = np.empty(len(keys), self.key_dtype.numpy)
        made[:] = keys
        return made, self._array(rows, (len(rows),))

    def _changed(self) -> None:
        self._index, self._asked = None, 0

    def _check_mutable(self, verb: str) -> None:
        if self.kind == "static":
            raise ResourceStateError(f"one cannot {verb} table {self.name!r}: it is static")

    def _keys(self, keys: _NDArray) -> list[Any]:
        if keys.dtype != self.key_dtype.numpy:
            raise DTypeError(f"table {self.name!r} has keys {self.key_dtype}, got {_dtype(keys)}")
        listed = keys.ravel().tolist()
        if self.reserved:
            used = self.reserved.intersection(listed)
            if used:
                raise ResourceMismatchError(
                    f"table {self.name!r} reserves {shown(min(used), 60)} as empty_key or "
                    "deleted_key; "
                    "it cannot be a key"
                )
        return listed

    def _pairs(self, keys: _NDArray, values: _NDArray) -> list[tuple[Any, Any]]:
        self._check_values(values, values.shape, (*keys.shape, *self.value_shape))
        listed = self._keys(keys)
        if not self.value_shape:
            return list(zip(listed, values.ravel().tolist(), strict=True))
        rows = values.reshape((len(listed), *self.value_shape)).copy()
        return list(zip(listed, rows, strict=True))

    def _row(self, value: _NDArray) -> Any:
        return value if self.value_shape else value.ravel().tolist()[0]

    def _check_values(
        self, values: _NDArray, shape: tuple[int, ...], expected: tuple[int, ...]
    ) -> None:
        if values.dtype != self.value_dtype.numpy:
            raise DTypeError(
                f"table {self.name!r} has values {self.value_dtype}, got {_dtype(values)}"
            )
        if shape != expected:
            raise ShapeError(
                f"table {self.name!r} expects values of shape {list(expected)}, got {list(shape)}"
            )

    def _array(self, rows: list[Any], shape: tuple[int, ...]) -> _NDArray:
        made = np.empty((len(rows), *self.value_shape), self.value_dtype.numpy)
        if rows and self.value_shape:
            np.stack(rows, out=made)
        elif rows:
            made[:] = rows
        return made.reshape((*shape, *self.value_shape))


def _dtype(array: _NDArray) -> str:
    return "string" if array.dtype == object else str(array.dtype)


def _same(left: Any, right: Any) -> bool:
    # A NaN is the same content as another.
    if isinstance(left, np.ndarray):
        return all(map(_same, left.ravel().tolist(), right.ravel().tolist()))
    return bool(left == right or (left != left and right != right))


def _equal(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)


def lines_of(path: str, limit: int) -> Iterable[tuple[int, bytes]]:
    """Yield the lines of a text file with their numbers, at most ``limit`` where it is not -1.

    Raises:
        ResourceError: if there is no such file, a line is empty, or there are fewer.
    """
    count = 0
    try:
        with open_regular(Path(path)) as file:
            for line in file:
                text = line.rstrip(b"\n").removesuffix(b"\r")
                if count == limit:
                    break
                if not text:
                    raise ResourceMismatchError(f"line {count + 1} of {shown(path)} is empty")
                yield count, text
                count += 1
    except ResourceError:
        raise
    except FileNotFoundError:
        raise ResourceNotFoundError(f"there is no file {path!r}") from None
    except (OSError, ValueError) as error:
        raise ResourceError(f"the file {path!r} cannot be read: {error}") from None
    if count < limit:
        raise ResourceMismatchError(f"the file {path!r} has {count} lines, expected {told(limit)}")
