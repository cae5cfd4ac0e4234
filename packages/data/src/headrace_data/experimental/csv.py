"""Files of comma-separated values, a column for each component."""

from __future__ import annotations

import csv
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from headrace import Tensor
from headrace.errors import (
    AttributeValueError,
    DatasetError,
    DTypeError,
    InvalidArgumentError,
    shown,
)
from headrace.extend.arguments import items
from headrace_data.build import scalar, static
from headrace_data.dataset import Dataset
from headrace_data.experimental.files import file_names, in_turns, repeated
from headrace_data.experimental.transformations import ignore_errors as without_errors
from headrace_data.sources.records import csv_records
from headrace_data.transformations.mapping import map_
from headrace_io.streams import error_of_system

_DTYPES = (hr.float32, hr.float64, hr.int32, hr.int64, hr.string)


class CsvDataset(Dataset):
    """A data set of the records of files of comma-separated values, as tuples of columns."""

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: Any = None,
        buffer_size: Any = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
    ) -> None:
        """Read files.

        Args:
            filenames: [] or [n], names of files.
            record_defaults: For each column its dtype, where each field must have a value, or the
                value of empty fields, a list or tensor of one.
            compression_type: [], ``""``, ``"ZLIB"`` or ``"GZIP"``.
            buffer_size: [], how many bytes are read at once, positive; without effect.
            header: Whether the first line of each file is left out.
            field_delim: The character between fields.
            use_quote_delim: Whether fields may stand in double quotes, in which lines do not end.
            na_value: A text that means the same as an empty field.
            select_cols: The numbers of the columns to take, growing; all if None.

        Raises:
            InvalidArgumentError: if ``buffer_size`` is not positive.
        """
        _check_buffer(buffer_size)
        defaults = [_default(given) for given in items(record_defaults, "record_defaults")]
        names = hr.reshape(hr.convert_to_tensor(filenames, hr.string), [-1])

        one = len(defaults) == 1 and select_cols is None and use_quote_delim

        def columns(line: Any) -> Any:
            if one:
                # A line without anything has no fields for decode_csv.
                line = hr.where(hr.equal(line, ""), '""', line)
            return tuple(
                hr.decode_csv(
                    line,
                    defaults,
                    field_delim=field_delim,
                    use_quote_delim=use_quote_delim,
                    na_value=na_value,
                    select_cols=None if select_cols is None else items(select_cols, "select_cols"),
                )
            )

        records = csv_records(names, compression_type, field_delim, use_quote_delim, header)
        made = map_(records, columns, None)
        super().__init__(made.variant, made.spec, made.inputs)


def _check_buffer(size: Any) -> None:
    known = None if size is None else static(scalar(size, hr.int64, "buffer_size"))
    if known is not None and known < 1:
        raise InvalidArgumentError(f"buffer_size should be positive, got {known}")


def _default(given: Any) -> Any:
    """Return a column's default as ``decode_csv`` takes it."""
    if isinstance(given, Tensor):
        return given
    try:
        dtype = hr.as_dtype(given)
    except DTypeError:
        return given
    if dtype not in _DTYPES:
        raise DTypeError(f"a column is one of {', '.join(map(str, _DTYPES))}, got {dtype}")
    return hr.constant([], dtype)


def make_csv_dataset(
    file_pattern: Any,
    batch_size: Any,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: Any = 10000,
    shuffle_seed: Any = None,
    prefetch_buffer_size: Any = None,
    num_parallel_reads: Any = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: Any = None,
    ignore_errors: bool = False,
) -> Dataset:
    """Return a data set of batches of the records of files, as dicts of columns.

    Args:
        file_pattern: A pattern of names of files, or several.
        batch_size: [], how many records make a batch.
        column_names: The names of all columns; those in the first line of the files if None.
        column_defaults: As for ``CsvDataset``, for the columns that are taken; found in the first
            records if None.
        label_name: The column that stands beside the others, as in ``(features, label)``.
        select_columns: Names or numbers of the columns to take; all if None.
        field_delim: The character between fields.
        use_quote_delim: Whether fields may stand in double quotes.
        na_value: A text that means the same as an empty field.
        header: Whether the first line of each file holds the names.
        num_epochs: How often each record comes; endlessly if None.
        shuffle: Whether files and records come in another order.
        shuffle_buffer_size: How many records wait to be chosen from.
        shuffle_seed: The seed of the order.
        prefetch_buffer_size: How many batches are taken ahead; one if None.
        num_parallel_reads: How many files are read in turns; one if None.
        sloppy: Whether records may come in the order in which they are read.
        num_rows_for_inference: How many records are looked at for the dtypes; all if None.
        compression_type: [], ``""``, ``"ZLIB"`` or ``"GZIP"``.
        ignore_errors: Whether to leave out records that cannot be read.

    Raises:
        AttributeValueError: if names are not known, not unique or not there, or no files match.
    """
    files = file_names(file_pattern)
    looked = _Look(field_delim, use_quote_delim, na_value, header)
    if column_names is None:
        if not header:
            raise AttributeValueError("Cannot infer column names without a header line.")
        column_names = looked.names(files)
    names = items(column_names, "column_names")
    if len(names) != len(set(names)):
        raise AttributeValueError("Cannot have duplicate column names.")
    chosen = None if select_columns is None else _numbers(select_columns, names)
    if column_defaults is None:
        taken = list(range(len(names))) if chosen is None else chosen
        column_defaults = looked.defaults(files, len(names), taken, num_rows_for_inference)
    if chosen is not None:
        if len(column_defaults) != len(chosen):
            raise AttributeValueError(
                "If specified, column_defaults and select_columns must have same length."
            )
        names = [names[i] for i in chosen]
    elif len(column_defaults) != len(names):
        raise AttributeValueError(
            f"column_defaults must be one for each of {len(names)} columns, got "
            f"{len(column_defaults)}"
        )
    if label_name is not None and label_name not in names:
        raise AttributeValueError("`label_name` provided must be one of the columns.")

    def read(name: Any) -> Any:
        found: Any = CsvDataset(
            name,
            column_defaults,
            compression_type,
            header=header,
            field_delim=field_delim,
            use_quote_delim=use_quote_delim,
            na_value=na_value,
            select_cols=chosen,
        )
        return found.apply(without_errors()) if ignore_errors else found

    def named(*columns: Any) -> Any:
        features = OrderedDict(zip(names, columns, strict=True))
        if label_name is None:
            return features
        return features, features.pop(label_name)

    names_of_files = Dataset.from_tensor_slices(hr.convert_to_tensor(files, hr.string))
    if shuffle:
        names_of_files = names_of_files.shuffle(len(files), shuffle_seed)
    records = in_turns(names_of_files, read, num_parallel_reads, sloppy)
    records = repeated(records, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    batches = records.batch(batch_size, num_epochs is None).map(named)
    return batches.prefetch(1 if prefetch_buffer_size is None else prefetch_buffer_size)


def _numbers(columns: Sequence[Any], names: list[str]) -> list[int]:
    """Return the numbers of columns, sorted.

    Raises:
        AttributeValueError: if there is none of a name, or one is given twice.
    """
    found = []
    for column in columns:
        if isinstance(column, int):
            if not 0 <= column < len(names):
                raise AttributeValueError(f"Columns must be valid names or indices, got {column}")
            found.append(column)
        elif column in names:
            found.append(names.index(column))
        else:
            raise AttributeValueError(f"there is no column {shown(column)}; there are {names}")
    if len(found) != len(set(found)):
        raise AttributeValueError("select_columns contains duplicate columns")
    return sorted(found)


class _Look:
    """Looks into files while the graph is built: for names of columns and their dtypes."""

    def __init__(self, delimiter: str, quotes: bool, empty: str, header: bool) -> None:
        self._empty, self._header = empty, header
        self._format: dict[str, Any] = {
            "delimiter": delimiter,
            "quoting": csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE,
        }

    def names(self, files: list[str]) -> list[str]:
        """Return the names in the first line, which is the same in all files."""
        first: list[str] | None = None
        for name in files:
            try:
                with Path(name).open(newline="", encoding="utf-8") as file:
                    found = next(csv.reader(file, **self._format), [])
            except OSError as error:
                raise error_of_system(error, f"cannot read {shown(name)}") from error
            except (ValueError, csv.Error) as error:
                raise DatasetError(f"{shown(name)} is no file of such lines: {error}") from error
            if first is not None and found != first:
                raise AttributeValueError(
                    "All input files should have same column names in the header row. File "
                    f"{name} has different column names."
                )
            first = found
        return first or []

    def _records(self, files: list[str], width: int, most: int | None) -> Iterator[list[str]]:
        count = 0
        for name in files:
            with Path(name).open(newline="", encoding="utf-8") as file:
                records = csv.reader(file, **self._format)
                if self._header:
                    next(records, None)
                for record in records:
                    if most is not None and count >= most:
                        return
                    if len(record) != width:
                        raise AttributeValueError(
                            "Problem inferring types: CSV row has different number of fields than "
                            "expected."
                        )
                    count += 1
                    yield record

    def defaults(
        self, files: list[str], width: int, columns: list[int], most: int | None
    ) -> list[Any]:
        """Return for each column a default of the dtype that its first values have."""
        kinds: list[int] = [-1] * len(columns)
        for record in self._records(files, width, most):
            for place, column in enumerate(columns):
                text = record[column]
                if text not in ("", self._empty):
                    kinds[place] = max(kinds[place], _kind(text))
        return [_DEFAULTS[kind] for kind in kinds]


# From narrow to wide; a column without any value is one of texts.
_DEFAULTS: list[Any] = [[0], [np.int64(0)], [0.0], [np.float64(0.0)], [""]]


def _kind(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        pass
    else:
        if -(2**31) <= number < 2**31:
            return 0
        if -(2**63) <= number < 2**63:
            return 1
    try:
        value = np.float64(text)
    except ValueError:
        return 4
    with np.errstate(over="ignore"):
        if np.float32(value) < np.inf:
            return 2
    # What is too large, or no number, stays a text.
    return 3 if value < np.inf else 4
