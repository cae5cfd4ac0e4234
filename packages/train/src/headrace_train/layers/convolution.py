"""Convolutions as layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as hr
from headrace.errors import AttributeValueError, told
from headrace.extend import Tensor
from headrace_train.layers.filters import Filters

_ZEROS = hr.zeros_initializer()

# What convolves, and the name of its operation, for each number of spatial axes.
_FUNCTIONS: dict[int, tuple[Callable[..., Tensor], str]] = {
    1: (hr.nn.conv1d, "conv1d"),
    2: (hr.nn.conv2d, "Conv2D"),
    3: (hr.nn.conv3d, "Conv3D"),
}


class _Convolution(Filters):
    """A convolution of some number of spatial axes."""

    def build(self, input_shape: Any) -> None:
        """Make the variables.

        Args:
            input_shape: The shape of the input.

        Raises:
            ShapeError: if its number of channels is not known.
        """
        channels = self.input_channels(input_shape)
        self.kernel = self.add_weight(
            "kernel",
            [*self.kernel_size, channels, self.filters],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.add_bias()
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Convolve, add the bias, apply the activation.

        Args:
            inputs: The input.

        Raises:
            AttributeValueError: if steps and distances are both above 1, as TensorFlow does.
        """
        if max(self.strides) > 1 and max(self.dilation_rate) > 1:
            raise AttributeValueError(
                f"layer {self.name!r}: strides or dilation_rate must be 1, got strides "
                f"{told(self.strides)} and dilation_rate {told(self.dilation_rate)}; "
                "hr.nn.convolution takes both"
            )
        padded, mode = self.padded(inputs)
        function, name = _FUNCTIONS[self.rank]
        outputs = function(
            padded,
            self.kernel,
            self.strides,
            mode,
            data_format=self.layout,
            dilations=self.dilation_rate,
            name=name,
        )
        return self.finished(outputs)


class Conv1D(_Convolution):
    """Convolves sequences with filters, adds a bias, and applies an activation.

    Attributes:
        kernel: The filters, made by the first call: [w, inputs, filters].
        bias: [filters], or None.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str | None = "channels_last",
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = _ZEROS,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        """Say what the layer computes.

        Args:
            filters: The number of channels of the output.
            kernel_size: The size of a filter: a number, or a list of one.
            strides: The steps of the windows, as ``kernel_size``.
            padding: "valid" or "same", in letters of either case, or "causal": at the beginning,
                so that no output depends on later inputs.
            data_format: "channels_last", also for None, or "channels_first".
            dilation_rate: Distances of the elements of a filter, as ``kernel_size``.
            activation: A function of the output, or its name in ``headrace.nn``; none if None.
            use_bias: Whether a number is added to each channel of the output.
            kernel_initializer: Makes the filters; that of the variable scope if None, else uniform
                (Glorot).
            bias_initializer: Makes the bias.
            kernel_regularizer: A function of the filters, whose result is added to the graph's
                regularization losses.
            bias_regularizer: The same of the bias.
            activity_regularizer: The same of the output, divided by the size of its first axis.
            kernel_constraint: What optimizers apply to the filters after each change.
            bias_constraint: The same for the bias.
            trainable: Whether optimizers change the variables by default.
            name: The layer's name, and that of its variable scope.
            **kwargs: ``dtype``, that of the variables.

        Raises:
            AttributeValueError: if a size, a padding or a name stands for nothing.
        """
        super().__init__(
            1,
            filters=filters,
            kernel_size=kernel_size,
            strides=strides,
            padding=padding,
            data_format=data_format,
            dilation_rate=dilation_rate,
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
            trainable=trainable,
            name=name,
            **kwargs,
        )


class Conv2D(_Convolution):
    """Convolves images with filters, adds a bias, and applies an activation.

    Attributes:
        kernel: The filters, made by the first call: [..., inputs, filters].
        bias: [filters], or None.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        data_format: str | None = "channels_last",
        dilation_rate: Any = (1, 1),
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = _ZEROS,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        """Say what the layer computes.

        Args:
            filters: The number of channels of the output.
            kernel_size: The size of a filter: one number, or two.
            strides: The steps of the windows, as ``kernel_size``.
            padding: "valid" or "same", in letters of either case.
            data_format: "channels_last", also for None, or "channels_first".
            dilation_rate: Distances of the elements of a filter, as ``kernel_size``.
            activation: A function of the output, or its name in ``headrace.nn``; none if None.
            use_bias: Whether a number is added to each channel of the output.
            kernel_initializer: Makes the filters; that of the variable scope if None, else uniform
                (Glorot).
            bias_initializer: Makes the bias.
            kernel_regularizer: A function of the filters, whose result is added to the graph's
                regularization losses.
            bias_regularizer: The same of the bias.
            activity_regularizer: The same of the output, divided by the size of its first axis.
            kernel_constraint: What optimizers apply to the filters after each change.
            bias_constraint: The same for the bias.
            trainable: Whether optimizers change the variables by default.
            name: The layer's name, and that of its variable scope.
            **kwargs: ``dtype``, that of the variables.

        Raises:
            AttributeValueError: if a size, a padding or a name stands for nothing.
        """
        super().__init__(
            2,
            filters=filters,
            kernel_size=kernel_size,
            strides=strides,
            padding=padding,
            data_format=data_format,
            dilation_rate=dilation_rate,
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
            trainable=trainable,
            name=name,
            **kwargs,
        )


class Conv3D(_Convolution):
    """Convolves volumes with filters, adds a bias, and applies an activation.

    Attributes:
        kernel: The filters, made by the first call: [..., inputs, filters].
        bias: [filters], or None.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1, 1),
        padding: str = "valid",
        data_format: str | None = "channels_last",
        dilation_rate: Any = (1, 1, 1),
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = _ZEROS,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        """Say what the layer computes.

        Args:
            filters: The number of channels of the output.
            kernel_size: The size of a filter: one number, or three.
            strides: The steps of the windows, as ``kernel_size``.
            padding: "valid" or "same", in letters of either case.
            data_format: "channels_last", also for None, or "channels_first".
            dilation_rate: Distances of the elements of a filter, as ``kernel_size``.
            activation: A function of the output, or its name in ``headrace.nn``; none if None.
            use_bias: Whether a number is added to each channel of the output.
            kernel_initializer: Makes the filters; that of the variable scope if None, else uniform
                (Glorot).
            bias_initializer: Makes the bias.
            kernel_regularizer: A function of the filters, whose result is added to the graph's
                regularization losses.
            bias_regularizer: The same of the bias.
            activity_regularizer: The same of the output, divided by the size of its first axis.
            kernel_constraint: What optimizers apply to the filters after each change.
            bias_constraint: The same for the bias.
            trainable: Whether optimizers change the variables by default.
            name: The layer's name, and that of its variable scope.
            **kwargs: ``dtype``, that of the variables.

        Raises:
            AttributeValueError: if a size, a padding or a name stands for nothing.
        """
        super().__init__(
            3,
            filters=filters,
            kernel_size=kernel_size,
            strides=strides,
            padding=padding,
            data_format=data_format,
            dilation_rate=dilation_rate,
            activation=activation,
            use_bias=use_bias,
            kernel_initializer=kernel_initializer,
            bias_initializer=bias_initializer,
            kernel_regularizer=kernel_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            kernel_constraint=kernel_constraint,
            bias_constraint=bias_constraint,
            trainable=trainable,
            name=name,
            **kwargs,
        )


def conv1d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = "channels_last",
    dilation_rate: Any = 1,
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """Convolve sequences with the filters of a layer.

    Args:
        inputs: [n, w, c], floating ([n, c, w] for "channels_first").
        filters: As for ``Conv1D``, and the following likewise.
        kernel_size: The size of a filter.
        strides: The steps of the windows.
        padding: What happens at the borders.
        data_format: Where the channels are.
        dilation_rate: Distances of the elements of a filter.
        activation: A function of the output.
        use_bias: Whether a number is added to each channel of the output.
        kernel_initializer: Makes the filters.
        bias_initializer: Makes the bias.
        kernel_regularizer: A function of the filters.
        bias_regularizer: A function of the bias.
        activity_regularizer: A function of the output.
        kernel_constraint: Applied to the filters after each change.
        bias_constraint: Applied to the bias after each change.
        trainable: Whether optimizers change the variables by default.
        name: The name of the layer.
        reuse: True to use the variables of the layer made before under ``name``, or
            ``AUTO_REUSE``.

    Returns:
        [n, ow, filters], the dtype of ``inputs``.
    """
    layer = Conv1D(
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilation_rate=dilation_rate,
        activation=activation,
        use_bias=use_bias,
        kernel_initializer=kernel_initializer,
        bias_initializer=bias_initializer,
        kernel_regularizer=kernel_regularizer,
        bias_regularizer=bias_regularizer,
        activity_regularizer=activity_regularizer,
        kernel_constraint=kernel_constraint,
        bias_constraint=bias_constraint,
        trainable=trainable,
        name=name,
        _scope=name,
        _reuse=reuse,
    )
    outputs: Tensor = layer(inputs)
    return outputs


def conv2d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = "channels_last",
    dilation_rate: Any = (1, 1),
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """Convolve images with the filters of a layer.

    Args:
        inputs: [n, h, w, c], floating ([n, c, h, w] for "channels_first").
        filters: As for ``Conv2D``, and the following likewise.
        kernel_size: The size of a filter.
        strides: The steps of the windows.
        padding: What happens at the borders.
        data_format: Where the channels are.
        dilation_rate: Distances of the elements of a filter.
        activation: A function of the output.
        use_bias: Whether a number is added to each channel of the output.
        kernel_initializer: Makes the filters.
        bias_initializer: Makes the bias.
        kernel_regularizer: A function of the filters.
        bias_regularizer: A function of the bias.
        activity_regularizer: A function of the output.
        kernel_constraint: Applied to the filters after each change.
        bias_constraint: Applied to the bias after each change.
        trainable: Whether optimizers change the variables by default.
        name: The name of the layer.
        reuse: True to use the variables of the layer made before under ``name``, or
            ``AUTO_REUSE``.

    Returns:
        [n, oh, ow, filters], the dtype of ``inputs``.
    """
    layer = Conv2D(
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilation_rate=dilation_rate,
        activation=activation,
        use_bias=use_bias,
        kernel_initializer=kernel_initializer,
        bias_initializer=bias_initializer,
        kernel_regularizer=kernel_regularizer,
        bias_regularizer=bias_regularizer,
        activity_regularizer=activity_regularizer,
        kernel_constraint=kernel_constraint,
        bias_constraint=bias_constraint,
        trainable=trainable,
        name=name,
        _scope=name,
        _reuse=reuse,
    )
    outputs: Tensor = layer(inputs)
    return outputs


def conv3d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1, 1),
    padding: str = "valid",
    data_format: str | None = "channels_last",
    dilation_rate: Any = (1, 1, 1),
    activation: Any = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """Convolve volumes with the filters of a layer.

    Args:
        inputs: [n, d, h, w, c], floating ([n, c, d, h, w] for "channels_first").
        filters: As for ``Conv3D``, and the following likewise.
        kernel_size: The size of a filter.
        strides: The steps of the windows.
        padding: What happens at the borders.
        data_format: Where the channels are.
        dilation_rate: Distances of the elements of a filter.
        activation: A function of the output.
        use_bias: Whether a number is added to each channel of the output.
        kernel_initializer: Makes the filters.
        bias_initializer: Makes the bias.
        kernel_regularizer: A function of the filters.
        bias_regularizer: A function of the bias.
        activity_regularizer: A function of the output.
        kernel_constraint: Applied to the filters after each change.
        bias_constraint: Applied to the bias after each change.
        trainable: Whether optimizers change the variables by default.
        name: The name of the layer.
        reuse: True to use the variables of the layer made before under ``name``, or
            ``AUTO_REUSE``.

    Returns:
        [n, od, oh, ow, filters], the dtype of ``inputs``.
    """
    layer = Conv3D(
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilation_rate=dilation_rate,
        activation=activation,
        use_bias=use_bias,
        kernel_initializer=kernel_initializer,
        bias_initializer=bias_initializer,
        kernel_regularizer=kernel_regularizer,
        bias_regularizer=bias_regularizer,
        activity_regularizer=activity_regularizer,
        kernel_constraint=kernel_constraint,
        bias_constraint=bias_constraint,
        trainable=trainable,
        name=name,
        _scope=name,
        _reuse=reuse,
    )
    outputs: Tensor = layer(inputs)
    return outputs
