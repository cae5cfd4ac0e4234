"""``framework.constant_op``: constants whose values fill their shapes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import ShapeTypeError


def constant(value: Any, dtype: Any = None, shape: Any = None, name: str | None = None) -> Any:
    """Return a constant, whose value has as many elements as it, or is a number.

    The public ``constant`` repeats the last of too few elements.

    Args:
        value: An array, a number or nested lists.
        dtype: Its dtype; that of the value if None.
        shape: Its shape; that of the value if None.
        name: The name of the operation.

    Raises:
        ShapeTypeError: if the value has another number of elements; it is a ``TypeError``.
        ShapeError: if the shape is not fully known.
    """
    if shape is None:
        return hr.constant(value, dtype, name=name)
    found, wanted = np.shape(value), hr.TensorShape(shape)
    fits = found in ((), (1,)) or wanted.num_elements() in (0, math.prod(found))
    if wanted.is_fully_defined() and not fits:
        raise ShapeTypeError(f"a value of shape {list(found)} does not fill {wanted}")
    return hr.constant(value, dtype, wanted, name)
