"""Transformations to be used with ``Dataset.apply``, and what goes with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as hr
from headrace.errors import AttributeValueError
from headrace.extend.arguments import whole
from headrace_data.dataset import Dataset
from headrace_data.transformations.distinct import unique as unique
from headrace_data.transformations.flattening import interleave
from headrace_data.transformations.mapping import ignore_errors as ignore_errors
from headrace_data.transformations.mapping import map_
from headrace_data.transformations.mapping import scan as scan
from headrace_data.transformations.reducing import single_element as get_single_element
from headrace_data.transformations.selecting import take_while as take_while_dataset
from headrace_data.transformations.sparsifying import dense_to_sparse
from headrace_data.transformations.vectorizing import batch
from headrace_data.transformations.windowing import group_by_window as group_dataset

Transformation = Callable[[Dataset], Any]

__all__ = ["get_single_element", "ignore_errors", "scan", "unique"]


def Counter(start: Any = 0, step: Any = 1, dtype: Any = hr.int64) -> Dataset:  # noqa: N802
    """Return a data set of numbers without end.

    Args:
        start: [], the first number.
        step: [], by how much they grow.
        dtype: Their dtype.
    """
    with hr.name_scope("counter"):
        first, by = hr.convert_to_tensor(start, dtype), hr.convert_to_tensor(step, dtype)
        endless = Dataset.from_tensors(0).repeat()
        return endless.apply(scan(first, lambda number, _: (number + by, number)))


def enumerate_dataset(start: Any = 0) -> Transformation:
    """Return a transformation into pairs of a number and an element.

    Args:
        start: [], the first number.
    """
    return lambda dataset: dataset.enumerate(start)


def unbatch() -> Transformation:
    """Return a transformation into the rows of the elements."""
    return lambda dataset: dataset.unbatch()


def take_while(predicate: Callable[..., Any]) -> Transformation:
    """Return a transformation that ends at the first element for which a function says False.

    Args:
        predicate: From an element to [], bool.
    """
    return lambda dataset: take_while_dataset(dataset, predicate)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Transformation:
    """Return a transformation that shuffles, differently in each repetition, and repeats.

    Args:
        buffer_size: [], how many elements the buffer holds.
        count: [], how often; endlessly if None or -1.
        seed: [], the seed of the order.
    """
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: int | None = None,
    drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """Return a transformation by a function of elements, whose results are batched.

    Args:
        map_func: From an element to a structure of tensors.
        batch_size: [], how many make a batch.
        num_parallel_batches: How many batches are under way at once; instead of the next.
        drop_remainder: [], whether to leave out a last batch that is smaller.
        num_parallel_calls: [], how many calls may run at once.

    Raises:
        AttributeValueError: if both numbers are given.
    """
    calls = num_parallel_calls
    if num_parallel_batches is not None:
        if num_parallel_calls is not None:
            raise AttributeValueError(
                "The `num_parallel_batches` and `num_parallel_calls` arguments are mutually "
                "exclusive"
            )
        size = batch_size if hr.is_tensor(batch_size) else whole(batch_size, "batch_size")
        calls = size * whole(num_parallel_batches, "num_parallel_batches")
    return lambda dataset: batch(map_(dataset, map_func, calls, False), batch_size, drop_remainder)


def map_and_batch_with_legacy_function(
    map_func: Callable[..., Any],
    batch_size: Any,
    num_parallel_batches: int | None = None,
    drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Transformation:
    """Return ``map_and_batch`` with the same arguments.

    Args:
        map_func: From an element to a structure of tensors.
        batch_size: [], how many make a batch.
        num_parallel_batches: How many batches are under way at once.
        drop_remainder: [], whether to leave out a last batch that is smaller.
        num_parallel_calls: [], how many calls may run at once.
    """
    return map_and_batch(
        map_func, batch_size, num_parallel_batches, drop_remainder, num_parallel_calls
    )


def dense_to_sparse_batch(batch_size: Any, row_shape: Any) -> Transformation:
    """Return a transformation of tensors of many shapes into sparse batches.

    Args:
        batch_size: [], how many make a batch.
        row_shape: The shape that a row of a batch has, at least as large as any element; -1 or
            None for the largest of the batch.

    Raises:
        DTypeError: if elements are not one tensor each.
        InvalidArgumentError: when it runs, if an element has another rank than the row.
        DataLossError: when it runs, if an element is larger than the row.
    """
    return lambda dataset: dense_to_sparse(dataset, batch_size, row_shape)


def parallel_interleave(
    map_func: Callable[..., Any],
    cycle_length: Any,
    block_length: Any = 1,
    sloppy: Any = False,
    buffer_output_elements: Any = None,
    prefetch_input_elements: Any = None,
) -> Transformation:
    """Return a transformation into the elements of data sets that a function makes, in turns.

    Args:
        map_func: From an element to a data set.
        cycle_length: [], how many data sets take turns, each with a thread.
        block_length: [], how many elements each gives in its turn.
        sloppy: [], bool, whether elements may come in the order in which they are ready, so that
            a slow data set does not hold up the others. A saved position resumes what was not
            delivered.
        buffer_output_elements: Taken and without effect.
        prefetch_input_elements: Taken and without effect.
    """
    del buffer_output_elements, prefetch_input_elements

    def apply(dataset: Dataset) -> Any:
        return interleave(dataset, map_func, cycle_length, block_length, cycle_length, sloppy)

    return apply


def group_by_window(
    key_func: Callable[..., Any],
    reduce_func: Callable[..., Any],
    window_size: Any = None,
    window_size_func: Callable[..., Any] | None = None,
) -> Transformation:
    """Return a transformation of groups of elements of one key.

    Args:
        key_func: From an element to its key, [], int64.
        reduce_func: From a key and a data set of a group to a data set, whose elements follow.
        window_size: [], how many elements of one key make a group.
        window_size_func: From a key to that number; instead of ``window_size``.

    Raises:
        AttributeValueError: if not exactly one of the two is given.
    """
    if (window_size is None) == (window_size_func is None):
        raise AttributeValueError(
            "exactly one of `window_size` and `window_size_func` must be given"
        )

    def constant(key: Any) -> Any:
        return hr.convert_to_tensor(window_size, hr.int64)

    sizes = window_size_func if window_size_func is not None else constant
    return lambda dataset: group_dataset(dataset, key_func, reduce_func, sizes)
