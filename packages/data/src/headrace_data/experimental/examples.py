"""Files of examples: batches of parsed ones, and writing a data set to a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, shown
from headrace.extend.arguments import items
from headrace_data import structure
from headrace_data.dataset import Dataset
from headrace_data.experimental.files import in_turns, repeated
from headrace_data.sources.records import TFRecordDataset
from headrace_io.records import TFRecordOptions
from headrace_io.records import TFRecordWriter as Writer


def parse_example_dataset(features: Any, num_parallel_calls: Any = 1) -> Callable[[Dataset], Any]:
    """Return a transformation of batches of serialized examples into dicts of tensors.

    Args:
        features: From names to ``FixedLenFeature``, ``VarLenFeature`` and so on.
        num_parallel_calls: [], how many batches are parsed at once.

    Raises:
        AttributeValueError: if there are no features.
    """
    if features is None:
        raise AttributeValueError("parse_example_dataset needs features, got None")

    def apply(dataset: Dataset) -> Any:
        spec = dataset.spec
        if (
            not isinstance(spec, structure.TensorComponent)
            or spec.dtype != hr.string
            or not spec.shape.is_compatible_with([None])
        ):
            raise DTypeError(
                "Input dataset should be a dataset of vectors of strings, got "
                f"{shown(dataset.element_spec)}"
            )
        return dataset.map(lambda batch: hr.parse_example(batch, features), num_parallel_calls)

    return apply


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: Any,
    features: Any,
    reader: Callable[..., Any] = TFRecordDataset,
    label_key: str | None = None,
    reader_args: Sequence[Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: Any = 10000,
    shuffle_seed: Any = None,
    prefetch_buffer_size: Any = None,
    reader_num_threads: Any = None,
    parser_num_threads: Any = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Return a data set of batches of examples that files hold, as dicts of tensors.

    Args:
        file_pattern: A pattern of names of files, or several.
        batch_size: [], how many examples make a batch.
        features: From names to ``FixedLenFeature``, ``VarLenFeature`` and so on.
        reader: From a name to a data set of serialized examples, or of pairs whose second is one.
        label_key: The feature that stands beside the others, as in ``(features, label)``.
        reader_args: Further arguments of ``reader``.
        num_epochs: How often each example comes; endlessly if None.
        shuffle: Whether files and examples come in another order.
        shuffle_buffer_size: How many examples wait to be chosen from.
        shuffle_seed: The seed of the order.
        prefetch_buffer_size: How many batches are taken ahead; one if None.
        reader_num_threads: How many files are read in turns; one if None.
        parser_num_threads: How many batches are parsed at once; two if None.
        sloppy_ordering: Whether records may come in the order in which they are read.
        drop_final_batch: Whether to leave out a last batch that is smaller.

    Raises:
        AttributeValueError: if ``label_key`` is none of the features.
    """
    if label_key is not None and label_key not in features:
        raise AttributeValueError(
            f"The `label_key` provided ({shown(label_key)}) must be one of the `features` keys."
        )
    files = Dataset.list_files(file_pattern, shuffle, shuffle_seed)
    further = items(reader_args or (), "reader_args")
    records = in_turns(
        files, lambda name: reader(name, *further), reader_num_threads, sloppy_ordering
    )
    if structure.is_nested(records.spec):
        records = records.map(lambda _, value: value)
    records = repeated(records, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    batches = records.batch(batch_size, drop_final_batch or num_epochs is None)
    threads = 2 if parser_num_threads is None else parser_num_threads
    parsed = batches.apply(parse_example_dataset(features, threads))
    if label_key is not None:
        parsed = parsed.map(lambda example: _beside(example, label_key))
    return parsed.prefetch(1 if prefetch_buffer_size is None else prefetch_buffer_size)


def _beside(example: Any, label: str) -> Any:
    rest = dict(example)
    return rest, rest.pop(label)


@final
class TFRecordWriter:
    """Writes a data set of strings to a file of records."""

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        """Name the file.

        Args:
            filename: [], its name.
            compression_type: ``""``, ``"ZLIB"`` or ``"GZIP"``; none if None.
        """
        self._filename = hr.convert_to_tensor(filename, hr.string, name="filename")
        kind = "" if compression_type is None else compression_type
        self._compression = hr.convert_to_tensor(kind, hr.string, name="compression_type")

    def write(self, dataset: Dataset) -> Any:
        """Return an operation that writes the elements of a data set.

        Args:
            dataset: A data set of strings, [].

        Raises:
            DTypeError: if it is something else.
        """
        if not isinstance(dataset, Dataset):
            raise DTypeError(f"`dataset` must be a data set, got {shown(dataset)}")
        spec = dataset.spec
        if (
            not isinstance(spec, structure.TensorComponent)
            or spec.dtype != hr.string
            or not spec.shape.is_compatible_with([])
        ):
            raise DTypeError(
                "`dataset` must produce scalar `DT_STRING` tensors whereas it produces "
                f"{shown(dataset.element_spec)}"
            )
        written = _Written()
        filename, compression = self._filename, self._compression
        started = hr.py_func(written.start, [filename, compression], hr.int64)
        ended = dataset.reduce(
            started, lambda count, record: hr.py_func(written.add, [count, record], hr.int64)
        )
        return hr.py_func(written.finish, [ended], hr.int64).op


class _Written:
    """The file under way, of which there is one at a time."""

    def __init__(self) -> None:
        self._writer: Writer | None = None

    def start(self, filename: bytes, compression: bytes) -> int:
        if self._writer is not None:
            self._writer.close()
        options = TFRecordOptions(compression_type=compression.decode())
        self._writer = Writer(filename.decode(), options)
        return 0

    def add(self, count: int, record: bytes) -> int:
        assert self._writer is not None
        self._writer.write(record)
        return count + 1

    def finish(self, count: int) -> int:
        assert self._writer is not None
        self._writer.close()
        self._writer = None
        return count
