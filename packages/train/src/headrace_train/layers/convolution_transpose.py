"""The transposes of convolutions as layers."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace.extend import Tensor
from headrace_train.layers.filters import Filters

_ZEROS = hr.zeros_initializer()


class _ConvolutionTranspose(Filters):
    """The transpose of a convolution of two or three spatial axes."""

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
            [*self.kernel_size, self.filters, channels],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.add_bias()
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Apply the transpose, add the bias, apply the activation.

        Args:
            inputs: The input.
        """
        sizes = self.compute_output_shape(inputs.shape)
        target: Any = sizes.as_list()
        if not sizes.is_fully_defined():
            given = hr.shape(inputs)
            first = self.data_format == "channels_first"
            for axis, size in enumerate(target):
                if size is None and axis == 0:
                    target[axis] = given[axis]
                elif size is None:
                    target[axis] = self._length(given[axis], axis - (2 if first else 1))
            target = hr.stack(target)
        function = hr.nn.conv2d_transpose if self.rank == 2 else hr.nn.conv3d_transpose
        outputs = function(
            inputs,
            self.kernel,
            target,
            self.strides,
            self.padding.upper(),
            self.layout,
            name="conv2d_transpose" if self.rank == 2 else "conv3d_transpose",
        )
        outputs.set_shape(sizes)
        return self.finished(outputs)

    def _length(self, size: Any, axis: int) -> Any:
        """Return the size of the output along a spatial axis, a number or a tensor."""
        more = max(self.kernel_size[axis] - self.strides[axis], 0)
        grown = size * self.strides[axis]
        return grown + more if self.padding == "valid" else grown


class Conv2DTranspose(_ConvolutionTranspose):
    """Applies the transpose of a convolution of images: from small ones to large ones.

    Attributes:
        kernel: The filters, made by the first call: [..., filters, inputs].
        bias: [filters], or None.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1),
        padding: str = "valid",
        data_format: str | None = "channels_last",
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


class Conv3DTranspose(_ConvolutionTranspose):
    """Applies the transpose of a convolution of volumes: from small ones to large ones.

    Attributes:
        kernel: The filters, made by the first call: [..., filters, inputs].
        bias: [filters], or None.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = (1, 1, 1),
        padding: str = "valid",
        data_format: str | None = "channels_last",
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


def conv2d_transpose(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str | None = "channels_last",
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
    """Apply the transpose of a convolution of images: from small ones to large ones.

    Args:
        inputs: [n, h, w, c], floating ([n, c, h, w] for "channels_first").
        filters: As for ``Conv2DTranspose``, and the following likewise.
        kernel_size: The size of a filter.
        strides: The steps of the windows.
        padding: What happens at the borders.
        data_format: Where the channels are.
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
    layer = Conv2DTranspose(
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_format=data_format,
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


def conv3d_transpose(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1, 1),
    padding: str = "valid",
    data_format: str | None = "channels_last",
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
    """Apply the transpose of a convolution of volumes: from small ones to large ones.

    Args:
        inputs: [n, d, h, w, c], floating ([n, c, d, h, w] for "channels_first").
        filters: As for ``Conv3DTranspose``, and the following likewise.
        kernel_size: The size of a filter.
        strides: The steps of the windows.
        padding: What happens at the borders.
        data_format: Where the channels are.
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
    layer = Conv3DTranspose(
        filters=filters,
        kernel_size=kernel_size,
        strides=strides,
        padding=padding,
        data_format=data_format,
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
