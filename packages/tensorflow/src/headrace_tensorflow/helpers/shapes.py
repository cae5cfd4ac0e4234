"""``ops.array_ops``: shapes as tensors, by the names that only modules of TensorFlow use."""

from __future__ import annotations

from typing import Any

import headrace as hr


def shape_internal(
    input: Any,
    name: str | None = None,
    optimize: bool = True,
    out_type: Any = hr.int32,
) -> hr.Tensor:
    """Return the shape of a tensor, known or not, as ``hr.shape`` does."""
    del optimize
    return hr.shape(input, name=name, out_type=out_type)


def size_internal(
    input: Any,
    name: str | None = None,
    optimize: bool = True,
    out_type: Any = hr.int32,
) -> hr.Tensor:
    """Return the number of elements of a tensor, as ``hr.size`` does."""
    del optimize
    return hr.size(input, name=name, out_type=out_type)


def rank_internal(
    input: Any,
    name: str | None = None,
    optimize: bool = True,
) -> hr.Tensor:
    """Return the number of axes of a tensor, as ``hr.rank`` does."""
    del optimize
    return hr.rank(input, name=name)
