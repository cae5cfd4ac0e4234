"""Rows that a query of an SQLite database yields."""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import DTypeError, InvalidArgumentError, UnknownError, shown
from headrace_data import structure
from headrace_data.build import make, scalar
from headrace_data.dataset import Dataset
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.stream import DatasetValue, Element, State, Stream, stream


class SqlDataset(Dataset):
    """A data set of the rows that a query yields, as tuples of columns."""

    def __init__(
        self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any
    ) -> None:
        """Ask a query.

        Args:
            driver_name: [], ``"sqlite"``.
            data_source_name: [], the name of the file of the database.
            query: [], what to ask.
            output_types: A tuple of the dtypes of the columns.

        Raises:
            DTypeError: if a column has a dtype that databases do not have.
        """
        types = structure.map_structure(hr.as_dtype, output_types)
        for dtype in structure.leaves(types):
            if not (dtype.is_integer or dtype.is_bool or dtype == hr.float64 or dtype == hr.string):
                raise DTypeError(f"a column is of integers, float64, bool or string, got {dtype}")
        element = structure.from_legacy(types, structure.map_structure(lambda _: [], types))
        names = ("driver_name", "data_source_name", "query")
        given = [
            scalar(value, hr.string, name)
            for name, value in zip(names, (driver_name, data_source_name, query), strict=True)
        ]
        settings = {"types": tuple(d.name for d in structure.leaves(types))}
        made = make("sql", element, arguments=given, settings=settings)
        super().__init__(made.variant, element)


@stream("sql")
class SqlStream(Stream):
    """The rows of a query."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._rows: Any = None
        self._database: Any = None
        self._taken = 0
        self._types = [hr.as_dtype(name) for name in value.settings["types"]]

    def _text(self, place: int) -> str:
        return bytes(np.asarray(self.value.arguments[place])[()]).decode()

    @classmethod
    def check(cls, value: DatasetValue) -> None:
        """Refuse other databases."""
        driver = bytes(np.asarray(value.arguments[0])[()]).decode()
        if driver != "sqlite":
            raise InvalidArgumentError(
                f"the only driver of databases is 'sqlite', got {shown(driver)}"
            )

    def next(self) -> Element | None:
        """Return the next row.

        Raises:
            UnknownError: if the database refuses.
            InvalidArgumentError: if rows have another number of columns.
        """
        try:
            if self._rows is None:
                # Threads of a pipeline take elements one after the other.
                self._database = sqlite3.connect(self._text(1), check_same_thread=False)
                self._rows = self._database.execute(self._text(2))
                self._check_columns()
                for _ in range(self._taken):
                    next(self._rows, None)
            row = next(self._rows, None)
        except sqlite3.Error as error:
            raise UnknownError(f"{self._text(2)!r} failed: {error}") from None
        if row is None:
            return None
        self._taken += 1
        return tuple(_array(value, d) for value, d in zip(row, self._types, strict=True))

    def _check_columns(self) -> None:
        count = len(self._rows.description or ())
        if count != len(self._types):
            self.close()
            raise InvalidArgumentError(
                f"The number of columns in query ({count}) must match the number of elements "
                f"in output_types ({len(self._types)})."
            )

    def save(self) -> State:
        """Return how many rows were taken."""
        return self._taken

    def restore(self, state: State) -> None:
        """Pass over so many."""
        self._taken = state

    def close(self) -> None:
        """Close the database."""
        if self._database is not None:
            self._database.close()
            self._rows = self._database = None


def _array(value: Any, dtype: hr.DType) -> Any:
    if dtype.kind == "string":
        text = "" if value is None else value
        return np.array(text if isinstance(text, bytes) else str(text).encode(), object)
    return np.array(0 if value is None else value).astype(dtype.numpy)
