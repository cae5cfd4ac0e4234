"""Convolutions, and their gradients, as oneDNN's primitives.

Activations stay as they are with the channels last: oneDNN computes with them as fast as with its
blocked layouts, and all other instructions understand them. Filters are reordered into what the
primitive wants; they are small. Activations with the channels first are reordered on the way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.extend.ops import padding_of, window_padding
from headrace.extend.records import dataclass
from headrace_cpu.onednn.library import (
    BIAS,
    DIFF_DST,
    DIFF_SRC,
    DIFF_WEIGHTS,
    DST,
    SRC,
    WEIGHTS,
    Library,
    dims,
)
from headrace_cpu.onednn.memory import Descriptor, Layout, permuted
from headrace_cpu.onednn.primitive import PostOp, Primitive, prepare

_TRAINING = 64
_DIRECT = 1


def activations_layout(shape: Sequence[int], data_format: str) -> Layout:
    """Return the layout of activations in the order n, c, and the spatial axes."""
    if data_format.startswith("NC"):
        return permuted(shape, range(len(shape)))
    return channels_last(shape)


def channels_last(shape: Sequence[int]) -> Layout:
    """Return the layout of activations [n, ..., c]."""
    rank = len(shape)
    return permuted(shape, (0, rank - 1, *range(1, rank - 1)))


def as_channels_last(layout: Layout) -> Layout:
    """Return the layout of activations of the same logical sizes whose channels are last."""
    n, c, *image = layout.sizes
    return channels_last((n, *image, c))


def filter_layout(shape: Sequence[int], groups: int) -> Layout:
    """Return the layout of a filter [..., in, out] in the order out, in, and the spatial axes.

    The outputs of several groups lie beside one another; oneDNN has an axis of groups in front.
    """
    *window, _, gives = shape
    plain = permuted(shape, (len(window) + 1, len(window), *range(len(window))))
    if groups == 1:
        return plain
    assert plain.strides is not None
    each = gives // groups
    return Layout((groups, each, *plain.sizes[1:]), (each, *plain.strides))


@dataclass(frozen=True, slots=True)
class Geometry:
    """What a convolution computes.

    Attributes:
        activations: How the activations lie.
        filter: How the filter lies.
        out: How the result lies.
        strides: By spatial axis.
        dilations: By spatial axis; 0 where oneDNN says 0 for neighbours.
        before: Padding in front.
        after: Padding behind.
    """

    activations: Layout
    filter: Layout
    out: Layout
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def flops(self) -> int:
        """Floating-point operations."""
        filter_ = math.prod(self.filter.sizes[len(self.filter.sizes) - len(self.strides) - 1 :])
        return 2 * math.prod(self.out.sizes) * filter_

    @property
    def bias(self) -> Layout:
        """How a bias lies."""
        return Layout((self.out.sizes[1],), (1,))

    @property
    def empty(self) -> bool:
        """Whether there is nothing to compute."""
        return not all(self.activations.sizes + self.filter.sizes + self.out.sizes)


def geometry(
    activations: Sequence[int], filter_: Sequence[int], out: Sequence[int], attrs: Mapping[str, Any]
) -> Geometry:
    """Return the geometry of a convolution with the attributes of ``Conv2D``.

    Args:
        activations: The shape of the activations.
        filter_: The shape of the filter, [..., in, out].
        out: The shape of the result.
        attrs: The attributes.
    """
    layout = activations_layout(activations, attrs["data_format"])
    groups = layout.sizes[1] // filter_[-2] if filter_[-2] else 1
    padding = [
        window_padding(
            size,
            filter_[axis],
            attrs["strides"][axis],
            attrs["dilations"][axis],
            padding_of(attrs["padding"], axis),
        )
        for axis, size in enumerate(layout.sizes[2:])
    ]
    return Geometry(
        activations=layout,
        filter=filter_layout(filter_, groups),
        out=activations_layout(out, attrs["data_format"]),
        strides=tuple(attrs["strides"]),
        dilations=tuple(step - 1 for step in attrs["dilations"]),
        before=tuple(front for _, front, _ in padding),
        after=tuple(back for _, _, back in padding),
    )


class Convolutions:
    """Makes the primitives of one convolution, for a number of threads each.

    Args:
        library: oneDNN.
        shape: What is computed.
    """

    def __init__(self, library: Library, shape: Geometry) -> None:
        self._library = library
        self._shape = shape

    def forward(
        self, threads: int, bias: bool = False, post_ops: tuple[PostOp, ...] = ()
    ) -> Primitive | None:
        """Return the convolution."""
        numbers = (SRC, WEIGHTS, DST, BIAS) if bias else (SRC, WEIGHTS, DST)
        return prepare(
            *(self._library, threads, ("convolution", self._shape, bias)),
            *(lambda attributes: self._forward(attributes, bias), numbers, post_ops),
        )

    def backward_data(self, threads: int) -> Primitive | None:
        """Return the gradient with respect to the activations."""

        def make(attributes: Any) -> Any:
            return self._with_hint(
                "dnnl_convolution_backward_data_primitive_desc_create",
                [self._images, self._filter, self._out],
                attributes,
            )

        return prepare(
            *(self._library, threads, ("convolution to activations", self._shape)),
            *(make, (DIFF_DST, WEIGHTS, DIFF_SRC)),
        )

    def backward_weights(self, threads: int) -> Primitive | None:
        """Return the gradient with respect to the filter."""

        def make(attributes: Any) -> Any:
            return self._with_hint(
                "dnnl_convolution_backward_weights_primitive_desc_create",
                [self._images, self._filter, None, self._out],
                attributes,
            )

        return prepare(
            *(self._library, threads, ("convolution to filter", self._shape)),
            *(make, (SRC, DIFF_DST, DIFF_WEIGHTS)),
        )

    @property
    def _images(self) -> Layout:
        return as_channels_last(self._shape.activations)

    @property
    def _filter(self) -> Layout:
        return self._shape.filter.any

    @property
    def _bias(self) -> Layout:
        return self._shape.bias

    @property
    def _out(self) -> Layout:
        return as_channels_last(self._shape.out)

    def _forward(self, attributes: Any, bias: bool) -> Any:
        layouts = [self._images, self._filter, self._bias if bias else None, self._out]
        return self._create(
            "dnnl_convolution_forward_primitive_desc_create",
            *(_TRAINING, layouts, attributes),
        )

    def _with_hint(self, name: str, layouts: Sequence[Layout | None], attributes: Any) -> Any:
        hint = self._forward(None, bias=False)
        try:
            return self._create(name, None, layouts, hint, attributes)
        finally:
            self._library.call("dnnl_primitive_desc_destroy", hint)

    def _create(
        self, name: str, kind: int | None, layouts: Sequence[Layout | None], *rest: Any
    ) -> Any:
        # They are read when they are handed over; until then they must live.
        held = [None if at is None else Descriptor.of(self._library, at) for at in layouts]
        shape = self._shape
        return self._library.create(
            *(name, self._library.engine, *(() if kind is None else (kind,)), _DIRECT),
            *(None if each is None else each.handle for each in held),
            *map(dims, (shape.strides, shape.dilations, shape.before, shape.after)),
            *rest,
        )
