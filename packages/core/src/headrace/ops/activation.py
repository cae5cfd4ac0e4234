"""Activation functions of neural networks."""

from __future__ import annotations

import math
from typing import Any

from headrace import dtypes
from headrace.graph.convert import convert_to_tensor
from headrace.graph.dispatch import dispatched
from headrace.graph.naming import names_result
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat
from headrace.ops.conversion import cast
from headrace.ops.declare import Spec, op
from headrace.ops.elementwise import (
    greater,
    greater_equal,
    less,
    minimum,
    negative,
    real_abs,
    select,
)
from headrace.ops.kinds import Floating, Real
from headrace.ops.linalg import matmul
from headrace.ops.pointwise import like, pointwise
from headrace.ops.special import erf
from headrace.ops.transcendental import expm1, sigmoid, tanh


@pointwise("Relu", exact=True, expression=lambda s, x: s.where(x <= 0, 0, x), public="nn.relu")
def relu(features: Real) -> Spec:
    """``max(features, 0)``."""
    return like(features)


@op(
    "Softplus",
    nonnegative=True,
    expression=lambda s, x: s.maximum(x, 0) + s.log1p(s.exp(-abs(x))),
    elementwise=True,
    public="nn.softplus",
)
def softplus(features: Floating) -> Spec:
    """``log(1 + exp(features))``, without overflow.

    Args:
        features: [...], floating.

    Returns:
        [...], the dtype of ``features``.
    """
    return like(features)


@names_result
def relu6(features: Any, name: str | None = None) -> Tensor:
    """``min(max(features, 0), 6)``.

    Krizhevsky, Convolutional Deep Belief Networks on CIFAR-10, 2010.

    Args:
        features: [...], real.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``features``.
    """
    with name_scope(name, "Relu6"):
        x = convert_to_tensor(features)
        # The slope is 0 at both bends; a minimum would pass the gradient at 6.
        return select(greater_equal(x, 6), 6, relu(x))


@dispatched("features")
@names_result
def leaky_relu(features: Any, alpha: Any = 0.2, name: str | None = None) -> Tensor:
    """``features`` where positive, ``alpha * features`` elsewhere.

    Maas, Hannun, Ng, Rectifier Nonlinearities Improve Neural Network Acoustic Models, 2013.

    Args:
        features: [...], real; integers are converted to float32.
        alpha: [], the slope for negative values.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``features``, or float32.
    """
    with name_scope(name, "LeakyRelu"):
        x = convert_to_tensor(features)
        if x.dtype.is_integer:
            x = cast(x, dtypes.float32)
        positive = greater(x, 0)
        positive.op.graph.piecewise_constant.add(positive.op.index)
        return select(positive, x, x * alpha)


@dispatched("features")
@names_result
def elu(features: Any, name: str | None = None) -> Tensor:
    """``features`` where positive, ``exp(features) - 1`` elsewhere.

    Clevert, Unterthiner, Hochreiter, Fast and Accurate Deep Network Learning by Exponential
    Linear Units, 2016.

    Args:
        features: [...], floating.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``features``.
    """
    with name_scope(name, "Elu"):
        x = convert_to_tensor(features)
        # Without the minimum the branch that is not taken could overflow, and its gradient too.
        return select(less(x, 0), expm1(minimum(x, 0)), x)


# Klambauer, Unterthiner, Mayr, Hochreiter, Self-Normalizing Neural Networks, 2017, equation 14.
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805


@names_result
def selu(features: Any, name: str | None = None) -> Tensor:
    """``scale * features`` where positive, ``scale * alpha * (exp(features) - 1)`` elsewhere.

    Klambauer, Unterthiner, Mayr, Hochreiter, Self-Normalizing Neural Networks, 2017.

    Args:
        features: [...], floating.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``features``.
    """
    with name_scope(name, "Selu"):
        x = convert_to_tensor(features)
        below = expm1(minimum(x, 0)) * (_SELU_SCALE * _SELU_ALPHA)
        return select(less(x, 0), below, x * _SELU_SCALE)


def gelu(features: Any, approximate: bool = False, name: str | None = None) -> Tensor:
    """``features`` times the chance that a standard normal number is smaller.

    Hendrycks, Gimpel, Gaussian Error Linear Units, 2016.

    Args:
        features: [...], floating.
        approximate: Use the paper's approximation by a hyperbolic tangent.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``features``.
    """
    with name_scope(name, "Gelu"):
        x = convert_to_tensor(features)
        if approximate:
            inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
            return x * 0.5 * (tanh(inner) + 1.0)
        return x * 0.5 * (erf(x * math.sqrt(0.5)) + 1.0)


def swish(features: Any, beta: Any = 1.0, name: str | None = None) -> Tensor:
    """``features * sigmoid(beta * features)``, also known as SiLU where ``beta`` is 1.

    Ramachandran, Zoph, Le, Searching for Activation Functions, 2017.

    Args:
        features: [...], floating.
        beta: [], how sharp the bend is; the dtype of ``features``.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``features``.
    """
    with name_scope(name, "swish"):
        x = convert_to_tensor(features)
        plain = isinstance(beta, int | float) and beta == 1
        return x * sigmoid(x if plain else x * beta)


def crelu(features: Any, name: str | None = None, axis: int = -1) -> Tensor:
    """``relu(features)`` and ``relu(-features)``, joined along an axis.

    Shang, Sohn, Almeida, Lee, Understanding and Improving Convolutional Neural Networks via
    Concatenated Rectified Linear Units, 2016.

    Args:
        features: [...], real, at least one dimension.
        name: The name of the operations.
        axis: The axis that gets twice as long.

    Returns:
        The shape of ``features`` with ``axis`` doubled, its dtype.
    """
    with name_scope(name, "CRelu"):
        x = convert_to_tensor(features)
        return relu(concat([x, negative(x)], axis))


@names_result
def softsign(features: Any, name: str | None = None) -> Tensor:
    """``features / (1 + abs(features))``.

    Args:
        features: [...], floating.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``features``.
    """
    with name_scope(name, "Softsign"):
        x = convert_to_tensor(features)
        return x / (real_abs(x) + 1.0)


@names_result
def relu_layer(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """``relu(matmul(x, weights) + biases)``.

    Args:
        x: [n, inputs], floating.
        weights: [inputs, outputs], the dtype of ``x``.
        biases: [outputs], the dtype of ``x``.
        name: The name of the operations.

    Returns:
        [n, outputs], the dtype of ``x``.
    """
    with name_scope(name, "relu_layer"):
        return relu(matmul(x, weights) + biases)


@dispatched("x")
def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """``log(sigmoid(x))``, without overflow.

    Args:
        x: [...], floating.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``x``.
    """
    with name_scope(name, "LogSigmoid"):
        return negative(softplus(negative(x)))
