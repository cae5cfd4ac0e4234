"""Random samples of distributions that have parameters: gamma, Poisson, categorical."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.spec import TensorSpec, as_shape
from headrace.graph.tensor import Tensor
from headrace.ops.array import broadcast_dynamic_shape, broadcast_to
from headrace.ops.array import shape as shape_op
from headrace.ops.declare import Spec, op
from headrace.ops.elementwise import maximum
from headrace.ops.kinds import Floating, Index, Real
from headrace.ops.random import op_seeds, shape_vector
from headrace.shapes import Shape, broadcast

_DRAWN = "random numbers do not depend on the inputs smoothly"


@op("RandomGamma", host_inputs=["shape"], effects="draws", public="")
def _random_gamma(shape: Index, alpha: Floating, seeds: tuple[int, int] | None) -> Spec:
    """Numbers from gamma distributions of rate 1.

    The gradient for ``alpha`` is that of the sample at a fixed value of its distribution function
    (Figurnov, Mohamed, Mnih: Implicit reparameterization gradients, 2018).

    Args:
        shape: [rank], the shape of the samples of each distribution.
        alpha: [...], the shape parameters; NaN is drawn where one is negative.
        seeds: Graph and op seed; None for entropy.

    Returns:
        ``[*shape, ...]``, the dtype of ``alpha``.
    """
    return TensorSpec(alpha.dtype, as_shape(shape).concatenate(alpha.shape))


@op(
    "RandomGammaGrad",
    public="",
    no_gradient="the derivative of the distribution function by its parameter has no simple one",
)
def random_gamma_grad(alpha: Floating, sample: Floating) -> Spec:
    """Derivatives of samples of gamma distributions by the parameter ``alpha``.

    Args:
        alpha: [...], the parameters.
        sample: [...], what was drawn; both broadcast.

    Returns:
        The broadcast shape, the dtype of ``alpha``.
    """
    return TensorSpec(alpha.dtype, broadcast(alpha.shape, sample.shape))


@op("RandomPoisson", host_inputs=["shape"], effects="draws", public="", no_gradient=_DRAWN)
def _random_poisson(shape: Index, rate: Real, dtype: DType, seeds: tuple[int, int] | None) -> Spec:
    """Numbers from Poisson distributions.

    Args:
        shape: [rank], the shape of the samples of each distribution.
        rate: [...], the means; where one is negative, NaN is drawn, or integers are refused when
            it runs.
        dtype: A floating or integer dtype.
        seeds: Graph and op seed; None for entropy.

    Returns:
        ``[*shape, ...]``, ``dtype``.
    """
    if not (dtype.is_floating or dtype.is_integer):
        raise DTypeError(f"dtype must be floating or integer, got {dtype}")
    return TensorSpec(dtype, as_shape(shape).concatenate(rate.shape))


@op("Multinomial", host_inputs=["num_samples"], effects="draws", public="", no_gradient=_DRAWN)
def _multinomial(
    logits: Real, num_samples: Index, output_dtype: DType, seeds: tuple[int, int] | None
) -> Spec:
    """Classes, with probabilities that are proportional to the exponentials of logits.

    Args:
        logits: [batch, classes]; classes whose logit is NaN or infinite are never drawn, and a row
            must have others when it runs.
        num_samples: [], how many to draw of each row.
        output_dtype: int32 or int64.
        seeds: Graph and op seed; None for entropy.

    Returns:
        [batch, num_samples], ``output_dtype``.
    """
    return multinomial_spec(logits, num_samples, output_dtype)


def multinomial_spec(logits: TensorSpec, num_samples: TensorSpec, dtype: DType) -> TensorSpec:
    """Return the spec of drawn classes, and refuse what is no batch of logits."""
    if dtype not in (dtypes.int32, dtypes.int64):
        raise DTypeError(f"output_dtype must be int32 or int64, got {dtype}")
    if logits.rank not in (None, 2):
        raise ShapeError(f"logits must be [batch, classes], got shape {logits.shape}")
    if num_samples.rank not in (None, 0):
        raise ShapeError(f"num_samples must be a scalar, got shape {num_samples.shape}")
    count = None if num_samples.value is None else int(num_samples.value)
    if count is not None and count < 0:
        raise AttributeValueError(f"num_samples must be >= 0, got {count}")
    batch = None if logits.rank is None else logits.shape[0]
    return TensorSpec(dtype, Shape([batch, count]))


def random_gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw numbers from gamma distributions.

    Gradients flow to ``alpha`` and ``beta``. Samples are at least the smallest positive normal
    number of the dtype.

    Args:
        shape: The shape of the samples of each distribution: a list or an integer tensor.
        alpha: [...], the shape parameters.
        beta: [...], the rates (inverse scales); 1 if None. Broadcasts against ``alpha``.
        dtype: A floating dtype.
        seed: Seeds this op's stream, together with the graph's seed.
        name: The name of the operations.

    Returns:
        ``[*shape, ...]``, ``dtype``; the rest is the common shape of ``alpha`` and ``beta``.

    Raises:
        DTypeError: if ``dtype`` is not floating.
        ShapeError: if the parameters do not broadcast.
    """
    kind = as_dtype(dtype)
    if not kind.is_floating:
        raise DTypeError(f"random_gamma: dtype must be floating, got {kind}")
    with name_scope(name, "random_gamma"):
        a = convert_to_tensor(alpha, kind)
        if beta is None:
            drawn = _random_gamma(shape_vector(shape), a, op_seeds(seed))
        else:
            b = convert_to_tensor(beta, kind)
            common = broadcast(a.spec.shape, b.spec.shape)
            if common != a.spec.shape or not common.is_fully_defined():
                dims: Any = broadcast_dynamic_shape(shape_op(a), shape_op(b))
                a = broadcast_to(a, list(common.known) if common.is_fully_defined() else dims)
            drawn = _random_gamma(shape_vector(shape), a, op_seeds(seed)) / b
        return maximum(drawn, np.array(_smallest_normal(kind), kind.numpy))


def _smallest_normal(dtype: DType) -> float:
    """Return the smallest positive number of full precision."""
    return float(2.0 ** (2 - 2 ** (dtype.exponent - 1)))


def random_poisson(
    lam: Any,
    shape: Any,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw numbers from Poisson distributions.

    Args:
        lam: [...], the means, real numbers >= 0.
        shape: The shape of the samples of each distribution: a list or an integer tensor.
        dtype: A floating or integer dtype.
        seed: Seeds this op's stream, together with the graph's seed.
        name: The name of the operations.

    Returns:
        ``[*shape, ...]``, ``dtype``; the rest is the shape of ``lam``.

    Raises:
        DTypeError: if ``dtype`` is neither floating nor integer.
    """
    with name_scope(name, "random_poisson"):
        return _random_poisson(shape_vector(shape), lam, as_dtype(dtype), op_seeds(seed))


def multinomial(
    logits: Any,
    num_samples: Any,
    seed: int | None = None,
    name: str | None = None,
    output_dtype: Any = None,
) -> Tensor:
    """Draw classes with given logarithms of probabilities, up to a constant.

    Args:
        logits: [batch, classes], real numbers; classes whose logit is NaN or infinite are never
            drawn.
        num_samples: How many to draw of each row.
        seed: Seeds this op's stream, together with the graph's seed.
        name: The name of the operations.
        output_dtype: int32 or int64; int64 if None.

    Returns:
        [batch, num_samples], ``output_dtype``.

    Raises:
        ShapeError: if ``logits`` has not 2 dimensions.
    """
    with name_scope(name, "multinomial"):
        kind = dtypes.int64 if output_dtype is None else as_dtype(output_dtype)
        return _multinomial(logits, num_samples, kind, op_seeds(seed))


def categorical(
    logits: Any,
    num_samples: Any,
    dtype: Any = None,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw classes with given logarithms of probabilities, up to a constant.

    Args:
        logits: [batch, classes], real numbers; classes whose logit is NaN or infinite are never
            drawn.
        num_samples: How many to draw of each row.
        dtype: int32 or int64; int64 if None.
        seed: Seeds this op's stream, together with the graph's seed.
        name: The name of the operations.

    Returns:
        [batch, num_samples], ``dtype``.

    Raises:
        ShapeError: if ``logits`` has not 2 dimensions.
    """
    with name_scope(name, "categorical"):
        return multinomial(logits, num_samples, seed, None, dtype)
