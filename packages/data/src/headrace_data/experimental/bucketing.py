"""Batches of sequences of about one length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError
from headrace.extend.arguments import items
from headrace_data import structure
from headrace_data.dataset import Dataset
from headrace_data.transformations.windowing import group_by_window


def bucket_by_sequence_length(
    element_length_func: Callable[..., Any],
    bucket_boundaries: Sequence[int],
    bucket_batch_sizes: Sequence[int],
    padded_shapes: Any = None,
    padding_values: Any = None,
    pad_to_bucket_boundary: bool = False,
    no_padding: bool = False,
    drop_remainder: bool = False,
) -> Callable[[Dataset], Any]:
    """Return a transformation into batches of elements of one bucket, which lengths make.

    Args:
        element_length_func: From an element to its length, [], int32 or int64.
        bucket_boundaries: Lengths at which buckets begin, growing; the first begins at zero.
        bucket_batch_sizes: How many elements a batch of each bucket has, one more than boundaries.
        padded_shapes: As for ``padded_batch``; the shapes of the elements if None.
        padding_values: As for ``padded_batch``.
        pad_to_bucket_boundary: Whether to pad what is not fixed to one less than where the next
            bucket begins, rather than to the longest of the batch. The last bucket then takes no
            elements.
        no_padding: Whether to join elements as they are.
        drop_remainder: Whether to leave out batches that are smaller.

    Raises:
        AttributeValueError: if there is not one more size than boundaries.
        DTypeError: if lengths are no whole numbers.
    """
    boundaries = items(bucket_boundaries, "bucket_boundaries")
    sizes = items(bucket_batch_sizes, "bucket_batch_sizes")
    if len(sizes) != len(boundaries) + 1:
        raise AttributeValueError(
            f"len(bucket_batch_sizes) must equal len(bucket_boundaries) + 1, got {len(sizes)} and "
            f"{len(boundaries)}"
        )

    def bucket(*element: Any) -> Any:
        found = hr.convert_to_tensor(element_length_func(*element))
        if not found.dtype.is_integer:
            raise DTypeError(f"`element_length_func` must return a whole number, got {found.dtype}")
        length = hr.cast(found, hr.int64)
        reached = hr.greater_equal(length, hr.constant(boundaries, hr.int64, [len(boundaries)]))
        return hr.reduce_sum(hr.cast(reached, hr.int64))

    def size(which: Any) -> Any:
        return hr.gather(hr.constant(sizes, hr.int64), which)

    def join(which: Any, group: Dataset) -> Dataset:
        count = size(which)
        if no_padding:
            return group.batch(count, drop_remainder)
        filler: Any = None
        if pad_to_bucket_boundary:
            check = hr.assert_less(
                which,
                hr.constant(len(boundaries), hr.int64),
                message="When pad_to_bucket_boundary=True, elements must have length < "
                "max(bucket_boundaries).",
            )
            with hr.control_dependencies([check]):
                filler = hr.gather(hr.constant(boundaries, hr.int64), hr.identity(which)) - 1
        shapes = padded_shapes if padded_shapes is not None else group.output_shapes
        return group.padded_batch(
            count, _filled(shapes, group.spec, filler), padding_values, drop_remainder
        )

    return lambda dataset: group_by_window(dataset, bucket, join, size)


def _filled(shapes: Any, element: Any, filler: Any) -> Any:
    """Return shapes in which ``filler`` stands for what is not fixed."""
    shapes = structure.like(element, shapes, "padded_shapes")
    if filler is None:
        return shapes
    return structure.map_structure(
        lambda shape: [filler if d is None else d for d in shape.as_list()], shapes
    )
