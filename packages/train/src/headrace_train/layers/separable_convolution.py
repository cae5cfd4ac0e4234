"""Separable convolutions as layers."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace.errors import AttributeValueError, told
from headrace.extend import Tensor
from headrace.extend.arguments import whole
from headrace_train.layers.arguments import checked_function, initializer
from headrace_train.layers.filters import Filters

_ZEROS = hr.zeros_initializer()


class _SeparableConvolution(Filters):
    """A convolution of each channel, then one over channels, of one or two spatial axes.

    References:
        F. Chollet, "Xception: Deep Learning with Depthwise Separable Convolutions", 2016,
        https://arxiv.org/abs/1610.02357
    """

    def __init__(
        self,
        rank: int,
        *,
        depth_multiplier: int = 1,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(rank, **kwargs)
        if whole(depth_multiplier, "depth_multiplier") < 1:
            raise AttributeValueError(
                f"depth_multiplier must be positive, got {told(depth_multiplier)}"
            )
        self.depth_multiplier = depth_multiplier
        self.depthwise_initializer = initializer(depthwise_initializer)
        self.pointwise_initializer = initializer(pointwise_initializer)
        self.depthwise_regularizer = checked_function(
            depthwise_regularizer, "depthwise_regularizer"
        )
        self.pointwise_regularizer = checked_function(
            pointwise_regularizer, "pointwise_regularizer"
        )
        self.depthwise_constraint = checked_function(depthwise_constraint, "depthwise_constraint")
        self.pointwise_constraint = checked_function(pointwise_constraint, "pointwise_constraint")
        self.depthwise_kernel: Any = None
        self.pointwise_kernel: Any = None

    def build(self, input_shape: Any) -> None:
        """Make the variables.

        Args:
            input_shape: The shape of the input.

        Raises:
            ShapeError: if its number of channels is not known.
        """
        channels = self.input_channels(input_shape)
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel",
            [*self.kernel_size, channels, self.depth_multiplier],
            initializer=self.depthwise_initializer,
            regularizer=self.depthwise_regularizer,
            constraint=self.depthwise_constraint,
        )
        self.pointwise_kernel = self.add_weight(
            "pointwise_kernel",
            [*(1 for _ in self.kernel_size), self.depth_multiplier * channels, self.filters],
            initializer=self.pointwise_initializer,
            regularizer=self.pointwise_regularizer,
            constraint=self.pointwise_constraint,
        )
        self.add_bias()
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Convolve, mix the channels, add the bias, apply the activation.

        Args:
            inputs: The input.
        """
        images, mode = self.padded(inputs)
        depthwise, pointwise = self.depthwise_kernel, self.pointwise_kernel
        strides, rates, layout = self.strides, self.dilation_rate, self.layout
        # Sequences are images of one row.
        row = 2 if self.data_format == "channels_first" else 1
        if self.rank == 1:
            images = hr.expand_dims(images, row)
            depthwise, pointwise = hr.expand_dims(depthwise, 0), hr.expand_dims(pointwise, 0)
            strides, rates = (1, *strides), (1, *rates)
            layout = "NCHW" if layout == "NCW" else "NHWC"
        outputs = hr.nn.separable_conv2d(
            images, depthwise, pointwise, strides, mode, rates, data_format=layout
        )
        if self.bias is not None:
            outputs = hr.nn.bias_add(outputs, self.bias, layout, name="BiasAdd")
        if self.rank == 1:
            outputs = hr.squeeze(outputs, [row], name="Squeeze")
        return self._activated(outputs)


class SeparableConv1D(_SeparableConvolution):
    """Convolves each channel of sequences on its own, then mixes the channels of each place.

    Attributes:
        depthwise_kernel: [..., inputs, depth_multiplier], made by the first call.
        pointwise_kernel: [..., inputs * depth_multiplier, filters], of size 1 in space.
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
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = _ZEROS,
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
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
            depth_multiplier: The number of filters for each channel in the first step.
            activation: A function of the output, or its name in ``headrace.nn``; none if None.
            use_bias: Whether a number is added to each channel of the output.
            depthwise_initializer: Makes the filters of the first step; that of the variable scope
                if None, else uniform (Glorot).
            pointwise_initializer: The same of the second step.
            bias_initializer: Makes the bias.
            depthwise_regularizer: A function of the filters of the first step, whose result is
                added to the graph's regularization losses.
            pointwise_regularizer: The same of the second step.
            bias_regularizer: The same of the bias.
            activity_regularizer: The same of the output, divided by the size of its first axis.
            depthwise_constraint: What optimizers apply to the filters of the first step.
            pointwise_constraint: The same of the second step.
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
            depth_multiplier=depth_multiplier,
            activation=activation,
            use_bias=use_bias,
            depthwise_initializer=depthwise_initializer,
            pointwise_initializer=pointwise_initializer,
            bias_initializer=bias_initializer,
            depthwise_regularizer=depthwise_regularizer,
            pointwise_regularizer=pointwise_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            depthwise_constraint=depthwise_constraint,
            pointwise_constraint=pointwise_constraint,
            bias_constraint=bias_constraint,
            trainable=trainable,
            name=name,
            **kwargs,
        )


class SeparableConv2D(_SeparableConvolution):
    """Convolves each channel of images on its own, then mixes the channels of each place.

    Attributes:
        depthwise_kernel: [..., inputs, depth_multiplier], made by the first call.
        pointwise_kernel: [..., inputs * depth_multiplier, filters], of size 1 in space.
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
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = _ZEROS,
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
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
            depth_multiplier: The number of filters for each channel in the first step.
            activation: A function of the output, or its name in ``headrace.nn``; none if None.
            use_bias: Whether a number is added to each channel of the output.
            depthwise_initializer: Makes the filters of the first step; that of the variable scope
                if None, else uniform (Glorot).
            pointwise_initializer: The same of the second step.
            bias_initializer: Makes the bias.
            depthwise_regularizer: A function of the filters of the first step, whose result is
                added to the graph's regularization losses.
            pointwise_regularizer: The same of the second step.
            bias_regularizer: The same of the bias.
            activity_regularizer: The same of the output, divided by the size of its first axis.
            depthwise_constraint: What optimizers apply to the filters of the first step.
            pointwise_constraint: The same of the second step.
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
            depth_multiplier=depth_multiplier,
            activation=activation,
            use_bias=use_bias,
            depthwise_initializer=depthwise_initializer,
            pointwise_initializer=pointwise_initializer,
            bias_initializer=bias_initializer,
            depthwise_regularizer=depthwise_regularizer,
            pointwise_regularizer=pointwise_regularizer,
            bias_regularizer=bias_regularizer,
            activity_regularizer=activity_regularizer,
            depthwise_constraint=depthwise_constraint,
            pointwise_constraint=pointwise_constraint,
            bias_constraint=bias_constraint,
            trainable=trainable,
            name=name,
            **kwargs,
        )


def separable_conv1d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str | None = "channels_last",
    dilation_rate: Any = 1,
    depth_multiplier: int = 1,
    activation: Any = None,
    use_bias: bool = True,
    depthwise_initializer: Any = None,
    pointwise_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    depthwise_regularizer: Any = None,
    pointwise_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    depthwise_constraint: Any = None,
    pointwise_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """Convolve each channel of sequences on its own, then mix the channels of each place.

    Args:
        inputs: [n, w, c], floating ([n, c, w] for "channels_first").
        filters: As for ``SeparableConv1D``, and the following likewise.
        kernel_size: The size of a filter.
        strides: The steps of the windows.
        padding: What happens at the borders.
        data_format: Where the channels are.
        dilation_rate: Distances of the elements of a filter.
        depth_multiplier: The number of filters for each channel in the first step.
        activation: A function of the output.
        use_bias: Whether a number is added to each channel of the output.
        depthwise_initializer: Makes the filters of the first step.
        pointwise_initializer: Makes those of the second step.
        bias_initializer: Makes the bias.
        depthwise_regularizer: A function of the filters of the first step.
        pointwise_regularizer: A function of those of the second step.
        bias_regularizer: A function of the bias.
        activity_regularizer: A function of the output.
        depthwise_constraint: Applied to the filters of the first step after each change.
        pointwise_constraint: Applied to those of the second step after each change.
        bias_constraint: Applied to the bias after each change.
        trainable: Whether optimizers change the variables by default.
        name: The name of the layer.
        reuse: True to use the variables of the layer made before under ``name``, or
            ``AUTO_REUSE``.

    Returns:
        [n, ow, filters], the dtype of ``inputs``.
    """
    layer = SeparableConv1D(
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilation_rate=dilation_rate,
        depth_multiplier=depth_multiplier,
        activation=activation,
        use_bias=use_bias,
        depthwise_initializer=depthwise_initializer,
        pointwise_initializer=pointwise_initializer,
        bias_initializer=bias_initializer,
        depthwise_regularizer=depthwise_regularizer,
        pointwise_regularizer=pointwise_regularizer,
        bias_regularizer=bias_regularizer,
        activity_regularizer=activity_regularizer,
        depthwise_constraint=depthwise_constraint,
        pointwise_constraint=pointwise_constraint,
        bias_constraint=bias_constraint,
        trainable=trainable,
        name=name,
        _scope=name,
        _reuse=reuse,
    )
    outputs: Tensor = layer(inputs)
    return outputs


def separable_conv2d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = "channels_last",
    dilation_rate: Any = (1, 1),
    depth_multiplier: int = 1,
    activation: Any = None,
    use_bias: bool = True,
    depthwise_initializer: Any = None,
    pointwise_initializer: Any = None,
    bias_initializer: Any = _ZEROS,
    depthwise_regularizer: Any = None,
    pointwise_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    depthwise_constraint: Any = None,
    pointwise_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """Convolve each channel of images on its own, then mix the channels of each place.

    Args:
        inputs: [n, h, w, c], floating ([n, c, h, w] for "channels_first").
        filters: As for ``SeparableConv2D``, and the following likewise.
        kernel_size: The size of a filter.
        strides: The steps of the windows.
        padding: What happens at the borders.
        data_format: Where the channels are.
        dilation_rate: Distances of the elements of a filter.
        depth_multiplier: The number of filters for each channel in the first step.
        activation: A function of the output.
        use_bias: Whether a number is added to each channel of the output.
        depthwise_initializer: Makes the filters of the first step.
        pointwise_initializer: Makes those of the second step.
        bias_initializer: Makes the bias.
        depthwise_regularizer: A function of the filters of the first step.
        pointwise_regularizer: A function of those of the second step.
        bias_regularizer: A function of the bias.
        activity_regularizer: A function of the output.
        depthwise_constraint: Applied to the filters of the first step after each change.
        pointwise_constraint: Applied to those of the second step after each change.
        bias_constraint: Applied to the bias after each change.
        trainable: Whether optimizers change the variables by default.
        name: The name of the layer.
        reuse: True to use the variables of the layer made before under ``name``, or
            ``AUTO_REUSE``.

    Returns:
        [n, oh, ow, filters], the dtype of ``inputs``.
    """
    layer = SeparableConv2D(
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_format=data_format,
        dilation_rate=dilation_rate,
        depth_multiplier=depth_multiplier,
        activation=activation,
        use_bias=use_bias,
        depthwise_initializer=depthwise_initializer,
        pointwise_initializer=pointwise_initializer,
        bias_initializer=bias_initializer,
        depthwise_regularizer=depthwise_regularizer,
        pointwise_regularizer=pointwise_regularizer,
        bias_regularizer=bias_regularizer,
        activity_regularizer=activity_regularizer,
        depthwise_constraint=depthwise_constraint,
        pointwise_constraint=pointwise_constraint,
        bias_constraint=bias_constraint,
        trainable=trainable,
        name=name,
        _scope=name,
        _reuse=reuse,
    )
    outputs: Tensor = layer(inputs)
    return outputs
