"""Parts of tensors, as TensorFlow writes them: ``"10 20 0,5:-"``.

The extents of the whole tensor come first, separated by blanks, and then one part for each
dimension, separated by colons: ``first,count``, or ``-`` for all of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from headrace.errors import InvalidArgumentError, shown

_PART = re.compile(r"-|(\d{1,18}),(\d{1,18})")


@final
@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a tensor.

    Attributes:
        whole: The shape of the tensor; None where the part is all of a tensor of any shape.
        ranges: For each dimension the first index and the one after the last.
    """

    whole: tuple[int, ...] | None
    ranges: tuple[tuple[int, int], ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what TensorFlow writes; an empty text stands for all of a tensor.

        Raises:
            InvalidArgumentError: if it is none.
        """
        if not text:
            return cls(None, ())
        *extents, parts = text.split(" ")
        found = [_PART.fullmatch(part) for part in parts.split(":")]
        if not all(re.fullmatch(r"\d{1,18}", extent) for extent in extents) or not all(found):
            raise InvalidArgumentError(
                f"{shown(text)} is no slice of a tensor: expected extents and a range for each, as "
                "in '10 20 0,5:-'"
            )
        whole = tuple(map(int, extents))
        if len(whole) != len(found):
            raise InvalidArgumentError(
                f"the slice {shown(text)} has {len(found)} ranges for {len(whole)} extents"
            )
        ranges = []
        for extent, match in zip(whole, found, strict=True):
            assert match is not None
            first, count = (0, extent) if match[1] is None else (int(match[1]), int(match[2]))
            if first + count > extent:
                raise InvalidArgumentError(
                    f"the slice {shown(text)} takes {count} from {first} on, of {extent}"
                )
            ranges.append((first, first + count))
        return cls(whole, tuple(ranges))

    @property
    def shape(self) -> tuple[int, ...] | None:
        """The shape of the part; None where it is that of the tensor."""
        return None if self.whole is None else tuple(end - first for first, end in self.ranges)

    def of(self, tensor: NDArray[Any]) -> NDArray[Any]:
        """Return the part of a tensor."""
        if self.whole is None:
            return tensor
        return np.ascontiguousarray(tensor[tuple(slice(*one) for one in self.ranges)]).reshape(
            self.shape
        )


def joined(names: Sequence[str], slices: Sequence[Slice], tensors: Sequence[Any]) -> dict[str, Any]:
    """Return whole tensors by name, put together where their parts are given.

    Raises:
        InvalidArgumentError: if a name is given twice, or parts do not fit together.
    """
    whole: dict[str, Any] = {}
    parts: dict[str, list[tuple[Slice, Any]]] = {}
    for name, part, tensor in zip(names, slices, tensors, strict=True):
        if name in whole or (part.whole is None and name in parts):
            raise InvalidArgumentError(f"two tensors are saved under one name, {shown(name)}")
        if part.whole is None:
            whole[name] = tensor
        else:
            parts.setdefault(name, []).append((part, tensor))
    for name, given in parts.items():
        whole[name] = _put_together(name, given)
    return {name: whole[name] for name in dict.fromkeys(names)}


def _put_together(name: str, parts: Sequence[tuple[Slice, Any]]) -> NDArray[Any]:
    shape = parts[0][0].whole
    assert shape is not None
    arrays = [np.asarray(tensor) for _, tensor in parts]
    sizes = sum(array.size for array in arrays)
    if sizes != math.prod(shape):
        raise InvalidArgumentError(
            f"the parts of {shown(name)} have {sizes} of the {math.prod(shape)} elements of "
            f"shape {list(shape)}: save all of them together"
        )
    made: NDArray[Any] = np.empty(shape, arrays[0].dtype)
    filled = np.zeros(shape, bool)
    for (part, _), array in zip(parts, arrays, strict=True):
        place = tuple(slice(*one) for one in part.ranges)
        if part.whole != shape or array.shape != part.shape or array.dtype != made.dtype:
            raise InvalidArgumentError(
                f"a part of {shown(name)} is {array.dtype}{list(array.shape)} for "
                f"{part.shape} of {part.whole}, beside parts of {made.dtype}{list(shape)}"
            )
        if filled[place].any():
            raise InvalidArgumentError(f"two parts of {shown(name)} hold the same elements")
        made[place], filled[place] = array, True
    return made
