"""What all layers with filters share: their arguments, bias, activation and padding."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace.errors import AttributeValueError, ShapeError, shown, told
from headrace.extend import Shape, Tensor
from headrace_train.layers.arguments import (
    activation_function,
    channels_place,
    checked_function,
    initializer,
    layout,
    padding_mode,
    sizes,
)
from headrace_train.layers.base import Layer
from headrace_train.layers.input_spec import InputSpec


class Filters(Layer):
    """A layer with filters that move over one, two or three spatial axes.

    Attributes:
        rank: The number of spatial axes.
        kernel: The filters, made by the first call.
        bias: [filters], or None.
    """

    def __init__(
        self,
        rank: int,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = "channels_last",
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            trainable=trainable,
            name=name,
            activity_regularizer=checked_function(activity_regularizer, "activity_regularizer"),
            **kwargs,
        )
        self.rank = rank
        try:
            self.filters = int(filters)
        except (TypeError, ValueError, OverflowError):
            raise AttributeValueError(f"filters must be an integer, got {shown(filters)}") from None
        if self.filters < 0:
            raise AttributeValueError(f"filters must be at least 0, got {told(filters)}")
        self.kernel_size = sizes(kernel_size, rank, "kernel_size")
        self.strides = sizes(strides, rank, "strides")
        self.padding = padding_mode(padding, causal=rank == 1)
        self.data_format = channels_place(data_format)
        self.dilation_rate = sizes(dilation_rate, rank, "dilation_rate")
        self.activation = activation_function(activation)
        self.use_bias = use_bias
        self.kernel_initializer = initializer(kernel_initializer)
        self.bias_initializer = initializer(bias_initializer)
        self.kernel_regularizer = checked_function(kernel_regularizer, "kernel_regularizer")
        self.bias_regularizer = checked_function(bias_regularizer, "bias_regularizer")
        self.kernel_constraint = checked_function(kernel_constraint, "kernel_constraint")
        self.bias_constraint = checked_function(bias_constraint, "bias_constraint")
        self.kernel: Any = None
        self.bias: Any = None
        self.input_spec = InputSpec(ndim=rank + 2)

    @property
    def layout(self) -> str:
        """The name that ``headrace.nn`` has for the layout of the inputs."""
        return layout(self.data_format, self.rank)

    @property
    def channel_axis(self) -> int:
        """The axis of the channels."""
        return 1 if self.data_format == "channels_first" else -1

    def input_channels(self, input_shape: Any) -> int:
        """Return the number of channels of the input, which later inputs must have, too.

        Args:
            input_shape: The shape of the input.

        Raises:
            ShapeError: if it has another rank, or the number is not known.
        """
        shape = Shape(input_shape).with_rank(self.rank + 2)
        channels: int | None = shape[self.channel_axis]
        if channels is None:
            raise ShapeError(
                f"layer {self.name!r} needs to know the number of channels of its input, got "
                f"shape {shape} with {self.data_format!r}; use set_shape"
            )
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={self.channel_axis: channels})
        return channels

    def add_bias(self) -> None:
        """Make the bias, where there is one."""
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                [self.filters],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )

    def padded(self, inputs: Any) -> tuple[Any, str]:
        """Return the input, padded for "causal", and the padding that is left to do."""
        if self.padding != "causal":
            return inputs, self.padding.upper()
        before = self.dilation_rate[0] * (self.kernel_size[0] - 1)
        line, other = [before, 0], [0, 0]
        last = self.data_format == "channels_last"
        return hr.pad(inputs, [other, line, other] if last else [other, other, line]), "VALID"

    def finished(self, outputs: Tensor) -> Any:
        """Return the output with the bias added and the activation applied."""
        if self.bias is not None:
            outputs = hr.nn.bias_add(outputs, self.bias, self.layout, name="BiasAdd")
        return self._activated(outputs)

    def _activated(self, outputs: Tensor) -> Any:
        """Return the output with the activation applied."""
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> hr.TensorShape:
        """Return the static shape of the output.

        Args:
            input_shape: The shape of the input.
        """
        shape = Shape(input_shape).with_rank(self.rank + 2).as_list()
        first = self.data_format == "channels_first"
        places = shape[2:] if first else shape[1:-1]
        found = [None if size is None else self._length(size, i) for i, size in enumerate(places)]
        return hr.TensorShape(
            [shape[0], self.filters, *found] if first else [shape[0], *found, self.filters]
        )

    def _length(self, size: int, axis: int) -> int:
        """Return the size of the output along a spatial axis."""
        reach = (self.kernel_size[axis] - 1) * self.dilation_rate[axis] + 1
        kept = size - reach + 1 if self.padding == "valid" else size
        return -(-kept // self.strides[axis])
