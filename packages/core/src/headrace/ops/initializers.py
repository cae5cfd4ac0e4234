"""Initializers: objects that make the initial value of a variable of a given shape.

References:
    D. Sussillo, L. Abbott, Random walk initialization for training very deep feedforward networks,
    2014, https://arxiv.org/abs/1412.6558
    X. Glorot, Y. Bengio, Understanding the difficulty of training deep feedforward neural
    networks, AISTATS 2010, https://proceedings.mlr.press/v9/glorot10a.html
    K. He, X. Zhang, S. Ren, J. Sun, Delving deep into rectifiers, 2015,
    https://arxiv.org/abs/1502.01852
    A. M. Saxe, J. L. McClelland, S. Ganguli, Exact solutions to the nonlinear dynamics of learning
    in deep linear neural networks, 2013, https://arxiv.org/abs/1312.6120
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.arguments import real
from headrace.dtypes import DType, as_dtype
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    ShapeError,
    shown,
    told,
)
from headrace.graph.convert import is_python_literal
from headrace.graph.tensor import Tensor
from headrace.ops.array import reshape
from headrace.ops.complex import sign
from headrace.ops.constant import constant, eye, ones, zeros
from headrace.ops.decompositions import qr
from headrace.ops.indexing import slice_
from headrace.ops.linalg import diagonal_of, swap_last_axes
from headrace.ops.random import random_normal, random_uniform, truncated_normal
from headrace.shapes import Shape

# The standard deviation of a standard normal distribution that is cut off at two of them.
_KEPT_DEVIATION = 0.87962566103423978


class Initializer:
    """Makes initial values: called with a shape, returns a tensor."""

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Return the initial value.

        Args:
            shape: Its shape.
            dtype: Its dtype; that of the initializer if None.
            partition_info: The part of a larger variable that this is, where it is one.
        """
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """Return the arguments with which an equal initializer is made."""
        parameters = inspect.signature(type(self).__init__).parameters
        config = {}
        for name in list(parameters)[1:]:
            if hasattr(self, name):
                value = getattr(self, name)
                config[name] = value.name if isinstance(value, DType) else value
        return config

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Return an initializer made with the arguments of another's ``get_config``."""
        known = inspect.signature(cls.__init__).parameters
        return cls(**{name: value for name, value in config.items() if name in known})


def _floating(dtype: Any) -> DType:
    kind = as_dtype(dtype)
    if not kind.is_floating:
        raise DTypeError(f"an initializer of random numbers needs a floating dtype, got {kind}")
    return kind


class zeros_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Makes zeros.

    Args:
        dtype: The dtype where a call names none.
    """

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Return zeros."""
        return zeros(shape, self.dtype if dtype is None else dtype)


class ones_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Makes ones.

    Args:
        dtype: The dtype where a call names none.
    """

    def __init__(self, dtype: Any = dtypes.float32) -> None:
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Return ones."""
        return ones(shape, self.dtype if dtype is None else dtype)


class constant_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Makes values that are given.

    Args:
        value: A number, or an array or nested list whose elements fill the shape in row-major
            order, the last one repeated as often as needed.
        dtype: The dtype where a call names none.
        verify_shape: Whether the value must have the very shape that is asked for.

    Raises:
        DTypeError: if the value is a tensor, or of a type that has no elements.
    """

    def __init__(
        self, value: Any = 0, dtype: Any = dtypes.float32, verify_shape: bool = False
    ) -> None:
        if not (np.isscalar(value) or isinstance(value, list | tuple | np.ndarray)):
            raise DTypeError(
                "constant_initializer: value must be a number, a list or an array, got "
                f"{shown(value)}"
            )
        self.value = value
        self.dtype = as_dtype(dtype)
        self._verify_shape = bool(verify_shape)

    def __call__(
        self,
        shape: Any,
        dtype: Any = None,
        partition_info: Any = None,
        verify_shape: bool | None = None,
    ) -> Tensor:
        """Return the value in a shape."""
        kind = self.dtype if dtype is None else as_dtype(dtype)
        wanted = Shape(shape).known
        array = np.asarray(self.value)
        if self._verify_shape if verify_shape is None else verify_shape:
            if array.shape != wanted:
                raise ArgumentTypeError(
                    f"constant_initializer: the value has shape {list(array.shape)}, expected "
                    f"{list(wanted)}"
                )
            return constant(self.value, kind)
        count = math.prod(wanted)
        if array.size > count:
            raise ShapeError(
                f"constant_initializer: {array.size} values for shape {list(wanted)}, which takes "
                f"{count}"
            )
        flat = array.reshape(-1)
        if count and not flat.size:
            raise ShapeError(f"constant_initializer: no values for shape {list(wanted)}")
        if flat.size < count:
            flat = np.concatenate([flat, np.repeat(flat[-1:], count - flat.size)])
        given = flat.reshape(wanted)
        return constant(given.tolist() if is_python_literal(self.value) else given, kind, wanted)


class random_uniform_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Draws numbers uniform in [minval, maxval).

    Args:
        minval: The lower bound.
        maxval: The upper bound; 1 if None, for a floating dtype.
        seed: Seeds the draw.
        dtype: The dtype where a call names none.
    """

    def __init__(
        self,
        minval: Any = 0,
        maxval: Any = None,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        self.minval = minval
        self.maxval = maxval
        self.seed = seed
        self.dtype = as_dtype(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Draw the numbers."""
        kind = self.dtype if dtype is None else dtype
        return random_uniform(shape, self.minval, self.maxval, kind, self.seed)


class random_normal_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Draws numbers from a normal distribution.

    Args:
        mean: The mean.
        stddev: The standard deviation.
        seed: Seeds the draw.
        dtype: The floating dtype where a call names none.
    """

    def __init__(
        self,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        self.mean = mean
        self.stddev = stddev
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Draw the numbers."""
        kind = self.dtype if dtype is None else dtype
        return random_normal(shape, self.mean, self.stddev, kind, self.seed)


class truncated_normal_initializer(random_normal_initializer):  # noqa: N801 - TensorFlow's name
    """Draws numbers from a normal distribution, cut off at two standard deviations.

    Args:
        mean: The mean.
        stddev: The standard deviation of the distribution that is cut off.
        seed: Seeds the draw.
        dtype: The floating dtype where a call names none.
    """

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Draw the numbers."""
        kind = self.dtype if dtype is None else dtype
        return truncated_normal(shape, self.mean, self.stddev, kind, self.seed)


class uniform_unit_scaling_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Draws uniform numbers that keep the scale of the inputs of a layer.

    They are in ``[-limit, limit)``, where ``limit`` is ``factor * sqrt(3 / inputs)`` and ``inputs``
    the product of all dimensions but the last.

    Args:
        factor: Multiplies the limit.
        seed: Seeds the draw.
        dtype: The floating dtype where a call names none.
    """

    def __init__(
        self, factor: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.factor = factor
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Draw the numbers."""
        kind = self.dtype if dtype is None else dtype
        dims = Shape(shape).known
        inputs = max(1.0, float(math.prod(_whole(dims, partition_info)[:-1])))
        limit = math.sqrt(3.0 / inputs) * self.factor
        return random_uniform(dims, -limit, limit, kind, self.seed)


class variance_scaling_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Draws numbers whose variance is settled by the sizes of a layer.

    The variance is ``scale / n``, where ``n`` is the number of inputs, of outputs, or their mean.
    Of a shape ``[..., inputs, outputs]`` the leading dimensions, a kernel's, multiply both.

    Args:
        scale: A positive number.
        mode: "fan_in", "fan_out" or "fan_avg".
        distribution: "normal" or "truncated_normal", a normal one cut off at two standard
            deviations; "untruncated_normal"; or "uniform".
        seed: Seeds the draw.
        dtype: The floating dtype where a call names none.

    Raises:
        AttributeValueError: if an argument is none of these.
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: int | None = None,
        dtype: Any = dtypes.float32,
    ) -> None:
        if not real(scale, "scale") > 0:
            raise AttributeValueError(f"scale must be positive, got {told(scale)}")
        if mode not in ("fan_in", "fan_out", "fan_avg"):
            raise AttributeValueError(f"mode must be fan_in, fan_out or fan_avg, got {shown(mode)}")
        known = ("normal", "uniform", "truncated_normal", "untruncated_normal")
        if told(distribution).lower() not in known:
            raise AttributeValueError(
                f"distribution must be one of {', '.join(known)}, got {shown(distribution)}"
            )
        self.scale = scale
        self.mode = mode
        self.distribution = str(distribution).lower()
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Draw the numbers."""
        kind = self.dtype if dtype is None else dtype
        dims = Shape(shape).known
        fan_in, fan_out = _fans(_whole(dims, partition_info))
        fan = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, fan)
        if self.distribution == "uniform":
            limit = math.sqrt(3.0 * variance)
            return random_uniform(dims, -limit, limit, kind, self.seed)
        if self.distribution == "untruncated_normal":
            return random_normal(dims, 0.0, math.sqrt(variance), kind, self.seed)
        deviation = math.sqrt(variance) / _KEPT_DEVIATION
        return truncated_normal(dims, 0.0, deviation, kind, self.seed)


def _whole(dims: tuple[int, ...], partition_info: Any) -> tuple[int, ...]:
    """Return the shape that settles the scale of numbers: of a part that of the whole."""
    return dims if partition_info is None else tuple(partition_info.full_shape)


def _fans(dims: tuple[int, ...]) -> tuple[float, float]:
    """Return the numbers of inputs and outputs of a layer with weights of a shape."""
    if any(dim >= 1 << 63 for dim in dims):
        raise ShapeError(f"no array has the shape {shown(list(dims))}")
    if len(dims) < 1:
        return 1.0, 1.0
    if len(dims) == 1:
        return float(dims[0]), float(dims[0])
    field = float(math.prod(dims[:-2]))
    return dims[-2] * field, dims[-1] * field


class glorot_uniform_initializer(variance_scaling_initializer):  # noqa: N801 - TensorFlow's name
    """Draws uniform numbers of variance ``2 / (inputs + outputs)`` (Glorot and Bengio).

    Args:
        seed: Seeds the draw.
        dtype: The floating dtype where a call names none.
    """

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, dtype)


class glorot_normal_initializer(variance_scaling_initializer):  # noqa: N801 - TensorFlow's name
    """Draws cut-off normal numbers of variance ``2 / (inputs + outputs)`` (Glorot and Bengio).

    Args:
        seed: Seeds the draw.
        dtype: The floating dtype where a call names none.
    """

    def __init__(self, seed: int | None = None, dtype: Any = dtypes.float32) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, dtype)


class orthogonal_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Makes matrices with orthonormal rows or columns, whichever are fewer, from normal numbers.

    Shapes of more than two dimensions are matrices whose rows are all axes but the last.

    Args:
        gain: Multiplies the result.
        seed: Seeds the draw.
        dtype: The floating dtype where a call names none.
    """

    def __init__(
        self, gain: float = 1.0, seed: int | None = None, dtype: Any = dtypes.float32
    ) -> None:
        self.gain = gain
        self.seed = seed
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Draw the matrix."""
        kind = self.dtype if dtype is None else as_dtype(dtype)
        dims = Shape(shape).known
        if len(dims) < 2:
            raise ShapeError(
                "orthogonal_initializer: the shape must have at least 2 dimensions, got "
                f"{list(dims)}"
            )
        rows, columns = math.prod(dims[:-1]), dims[-1]
        drawn = random_normal([max(rows, columns), min(rows, columns)], dtype=kind, seed=self.seed)
        q, r = qr(drawn)
        # The signs of the diagonal of r make the matrices uniform among all orthogonal ones.
        q = q * sign(diagonal_of(r))
        if rows < columns:
            q = swap_last_axes(q)
        return reshape(q, dims) * self.gain


class identity_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Makes a matrix with a number on its diagonal, zeros elsewhere.

    Args:
        gain: The number.
        dtype: The floating dtype where a call names none.
    """

    def __init__(self, gain: float = 1.0, dtype: Any = dtypes.float32) -> None:
        self.gain = gain
        self.dtype = _floating(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        """Return the matrix."""
        kind = self.dtype if dtype is None else as_dtype(dtype)
        dims = Shape(shape).known
        if len(dims) != 2:
            raise ShapeError(
                f"identity initializer: the shape must have 2 dimensions, got {list(dims)}"
            )
        rows, columns = _whole(dims, partition_info)
        matrix = eye(rows, columns, dtype=kind)
        if partition_info is not None:
            matrix = slice_(matrix, partition_info.var_offset, dims)
        return matrix * self.gain


def lecun_normal(seed: int | None = None) -> variance_scaling_initializer:
    """Return an initializer that draws cut-off normal numbers of variance ``1 / inputs``."""
    return variance_scaling_initializer(1.0, "fan_in", "truncated_normal", seed)


def lecun_uniform(seed: int | None = None) -> variance_scaling_initializer:
    """Return an initializer that draws uniform numbers of variance ``1 / inputs``."""
    return variance_scaling_initializer(1.0, "fan_in", "uniform", seed)


def he_normal(seed: int | None = None) -> variance_scaling_initializer:
    """Return an initializer that draws cut-off normal numbers of variance ``2 / inputs``."""
    return variance_scaling_initializer(2.0, "fan_in", "truncated_normal", seed)


def he_uniform(seed: int | None = None) -> variance_scaling_initializer:
    """Return an initializer that draws uniform numbers of variance ``2 / inputs``."""
    return variance_scaling_initializer(2.0, "fan_in", "uniform", seed)
