"""Pooling as layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import headrace as hr
from headrace.extend import Shape, Tensor
from headrace_train.layers.arguments import channels_place, layout, padding_mode, sizes
from headrace_train.layers.base import Layer
from headrace_train.layers.input_spec import InputSpec


class _Pooling(Layer):
    """One number of each window of one, two or three spatial axes."""

    _rank: ClassVar[int]
    _function: ClassVar[Callable[..., Any]]
    _operation: ClassVar[str]

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str | None = "channels_last",
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.pool_size = sizes(pool_size, self._rank, "pool_size")
        self.strides = sizes(strides, self._rank, "strides")
        self.padding = padding_mode(padding)
        self.data_format = channels_place(data_format)
        self.input_spec = InputSpec(ndim=self._rank + 2)

    def call(self, inputs: Any) -> Any:
        """Pool.

        Args:
            inputs: The input.
        """
        return self._function(
            inputs,
            self.pool_size,
            self.strides,
            self.padding.upper(),
            layout(self.data_format, self._rank),
            name=self._operation,
        )

    def compute_output_shape(self, input_shape: Any) -> hr.TensorShape:
        """Return the static shape of the output.

        Args:
            input_shape: The shape of the input.
        """
        shape = Shape(input_shape).with_rank(self._rank + 2).as_list()
        start = 2 if self.data_format == "channels_first" else 1
        for i, (window, step) in enumerate(zip(self.pool_size, self.strides, strict=True)):
            size = shape[start + i]
            if size is not None:
                kept = size - window + 1 if self.padding == "valid" else size
                shape[start + i] = -(-kept // step)
        return hr.TensorShape(shape)


class AveragePooling1D(_Pooling):
    """Takes the mean of each window of sequences; padding does not count."""

    _rank = 1
    _function = staticmethod(hr.nn.avg_pool1d)
    # In TensorFlow a row of an image is pooled; its last operation takes the row out.
    _operation = "Squeeze"

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str | None = "channels_last",
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        """Say which windows there are.

        Args:
            pool_size: The size of a window: a number, or a list of one.
            strides: The steps, as ``pool_size``.
            padding: "valid" or "same", in letters of either case.
            data_format: "channels_last", also for None, or "channels_first".
            name: The layer's name.
            **kwargs: Further arguments of ``Layer``.

        Raises:
            AttributeValueError: if a size or a padding is none.
        """
        super().__init__(pool_size, strides, padding, data_format, name, **kwargs)


class AveragePooling2D(_Pooling):
    """Takes the mean of each window of images; padding does not count."""

    _rank = 2
    _function = staticmethod(hr.nn.avg_pool)
    _operation = "AvgPool"

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str | None = "channels_last",
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        """Say which windows there are.

        Args:
            pool_size: The size of a window: one number, or two.
            strides: The steps, as ``pool_size``.
            padding: "valid" or "same", in letters of either case.
            data_format: "channels_last", also for None, or "channels_first".
            name: The layer's name.
            **kwargs: Further arguments of ``Layer``.

        Raises:
            AttributeValueError: if a size or a padding is none.
        """
        super().__init__(pool_size, strides, padding, data_format, name, **kwargs)


class AveragePooling3D(_Pooling):
    """Takes the mean of each window of volumes; padding does not count."""

    _rank = 3
    _function = staticmethod(hr.nn.avg_pool3d)
    _operation = "AvgPool3D"

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str | None = "channels_last",
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        """Say which windows there are.

        Args:
            pool_size: The size of a window: one number, or three.
            strides: The steps, as ``pool_size``.
            padding: "valid" or "same", in letters of either case.
            data_format: "channels_last", also for None, or "channels_first".
            name: The layer's name.
            **kwargs: Further arguments of ``Layer``.

        Raises:
            AttributeValueError: if a size or a padding is none.
        """
        super().__init__(pool_size, strides, padding, data_format, name, **kwargs)


class MaxPooling1D(_Pooling):
    """Takes the maximum of each window of sequences."""

    _rank = 1
    _function = staticmethod(hr.nn.max_pool1d)
    _operation = "Squeeze"

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str | None = "channels_last",
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        """Say which windows there are.

        Args:
            pool_size: The size of a window: a number, or a list of one.
            strides: The steps, as ``pool_size``.
            padding: "valid" or "same", in letters of either case.
            data_format: "channels_last", also for None, or "channels_first".
            name: The layer's name.
            **kwargs: Further arguments of ``Layer``.

        Raises:
            AttributeValueError: if a size or a padding is none.
        """
        super().__init__(pool_size, strides, padding, data_format, name, **kwargs)


class MaxPooling2D(_Pooling):
    """Takes the maximum of each window of images."""

    _rank = 2
    _function = staticmethod(hr.nn.max_pool)
    _operation = "MaxPool"

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str | None = "channels_last",
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        """Say which windows there are.

        Args:
            pool_size: The size of a window: one number, or two.
            strides: The steps, as ``pool_size``.
            padding: "valid" or "same", in letters of either case.
            data_format: "channels_last", also for None, or "channels_first".
            name: The layer's name.
            **kwargs: Further arguments of ``Layer``.

        Raises:
            AttributeValueError: if a size or a padding is none.
        """
        super().__init__(pool_size, strides, padding, data_format, name, **kwargs)


class MaxPooling3D(_Pooling):
    """Takes the maximum of each window of volumes."""

    _rank = 3
    _function = staticmethod(hr.nn.max_pool3d)
    _operation = "MaxPool3D"

    def __init__(
        self,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str | None = "channels_last",
        name: Any = None,
        **kwargs: Any,
    ) -> None:
        """Say which windows there are.

        Args:
            pool_size: The size of a window: one number, or three.
            strides: The steps, as ``pool_size``.
            padding: "valid" or "same", in letters of either case.
            data_format: "channels_last", also for None, or "channels_first".
            name: The layer's name.
            **kwargs: Further arguments of ``Layer``.

        Raises:
            AttributeValueError: if a size or a padding is none.
        """
        super().__init__(pool_size, strides, padding, data_format, name, **kwargs)


def average_pooling1d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str | None = "channels_last",
    name: str | None = None,
) -> Tensor:
    """Take the mean of each window of sequences; padding does not count.

    Args:
        inputs: [n, w, c], floating ([n, c, w] for "channels_first").
        pool_size: The size of a window: a number, or a list of one.
        strides: The steps, as ``pool_size``.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        name: The name of the layer.

    Returns:
        [n, ow, c], the dtype of ``inputs``.
    """
    outputs: Tensor = AveragePooling1D(pool_size, strides, padding, data_format, name)(inputs)
    return outputs


def average_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str | None = "channels_last",
    name: str | None = None,
) -> Tensor:
    """Take the mean of each window of images; padding does not count.

    Args:
        inputs: [n, h, w, c], floating ([n, c, h, w] for "channels_first").
        pool_size: The size of a window: one number, or two.
        strides: The steps, as ``pool_size``.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        name: The name of the layer.

    Returns:
        [n, oh, ow, c], the dtype of ``inputs``.
    """
    outputs: Tensor = AveragePooling2D(pool_size, strides, padding, data_format, name)(inputs)
    return outputs


def average_pooling3d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str | None = "channels_last",
    name: str | None = None,
) -> Tensor:
    """Take the mean of each window of volumes; padding does not count.

    Args:
        inputs: [n, d, h, w, c], floating ([n, c, d, h, w] for "channels_first").
        pool_size: The size of a window: one number, or three.
        strides: The steps, as ``pool_size``.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        name: The name of the layer.

    Returns:
        [n, od, oh, ow, c], the dtype of ``inputs``.
    """
    outputs: Tensor = AveragePooling3D(pool_size, strides, padding, data_format, name)(inputs)
    return outputs


def max_pooling1d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str | None = "channels_last",
    name: str | None = None,
) -> Tensor:
    """Take the maximum of each window of sequences.

    Args:
        inputs: [n, w, c], a real number ([n, c, w] for "channels_first").
        pool_size: The size of a window: a number, or a list of one.
        strides: The steps, as ``pool_size``.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        name: The name of the layer.

    Returns:
        [n, ow, c], the dtype of ``inputs``.
    """
    outputs: Tensor = MaxPooling1D(pool_size, strides, padding, data_format, name)(inputs)
    return outputs


def max_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str | None = "channels_last",
    name: str | None = None,
) -> Tensor:
    """Take the maximum of each window of images.

    Args:
        inputs: [n, h, w, c], a real number ([n, c, h, w] for "channels_first").
        pool_size: The size of a window: one number, or two.
        strides: The steps, as ``pool_size``.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        name: The name of the layer.

    Returns:
        [n, oh, ow, c], the dtype of ``inputs``.
    """
    outputs: Tensor = MaxPooling2D(pool_size, strides, padding, data_format, name)(inputs)
    return outputs


def max_pooling3d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str | None = "channels_last",
    name: str | None = None,
) -> Tensor:
    """Take the maximum of each window of volumes.

    Args:
        inputs: [n, d, h, w, c], a real number ([n, c, d, h, w] for "channels_first").
        pool_size: The size of a window: one number, or three.
        strides: The steps, as ``pool_size``.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        name: The name of the layer.

    Returns:
        [n, od, oh, ow, c], the dtype of ``inputs``.
    """
    outputs: Tensor = MaxPooling3D(pool_size, strides, padding, data_format, name)(inputs)
    return outputs
