"""The flattening of all axes but the first as a layer."""

from __future__ import annotations

import math
from typing import Any

import headrace as hr
from headrace.extend import Shape, Tensor
from headrace_train.layers.arguments import channels_place
from headrace_train.layers.base import Layer
from headrace_train.layers.input_spec import InputSpec


class Flatten(Layer):
    """Makes one axis of all but the first; vectors get an axis of size 1."""

    def __init__(self, data_format: str | None = None, **kwargs: Any) -> None:
        """Say where channels are.

        Args:
            data_format: "channels_last", also for None, or "channels_first": channels become the
                fastest axis either way.
            **kwargs: ``name``, and further arguments of ``Layer``.

        Raises:
            AttributeValueError: if it is something else.
        """
        super().__init__(**kwargs)
        self.data_format = channels_place(data_format)
        self.input_spec = InputSpec(min_ndim=1)

    def call(self, inputs: Any) -> Any:
        """Flatten.

        Args:
            inputs: [n, ...].

        Returns:
            [n, elements].
        """
        rank = inputs.shape.rank
        if self.data_format == "channels_first" and rank > 1:
            inputs = hr.transpose(inputs, [0, *range(2, rank), 1])
        first = inputs.spec.shape[0]
        outputs = hr.reshape(inputs, [hr.shape(inputs)[0] if first is None else first, -1])
        outputs.set_shape(self.compute_output_shape(inputs.shape))
        return outputs

    def compute_output_shape(self, input_shape: Any) -> hr.TensorShape:
        """Return the static shape of the output.

        Args:
            input_shape: The shape of the input.
        """
        first, *others = Shape(input_shape).as_list()
        known = [size for size in others if size is not None]
        return hr.TensorShape([first, math.prod(known) if len(known) == len(others) else None])


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """Make one axis of all but the first.

    Args:
        inputs: [n, ...].
        name: The name of the layer.
        data_format: "channels_last" or "channels_first", as for ``Flatten``.

    Returns:
        [n, elements].
    """
    outputs: Tensor = Flatten(data_format, name=name)(inputs)
    return outputs
