"""Random tensors that are functions of a seed: the same one draws the same numbers, every time."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.naming import names_result
from headrace.graph.scopes import name_scope
from headrace.graph.spec import TensorSpec, as_shape
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.elementwise import add, multiply
from headrace.ops.kinds import Index, Integer, Real
from headrace.ops.random import check_bounds, shape_vector
from headrace.ops.sampling import multinomial_spec

_DRAWN = "random numbers do not depend on the inputs smoothly"


def _check_seed(seed: TensorSpec) -> None:
    if seed.rank not in (None, 1) or (seed.rank == 1 and seed.shape[0] not in (2, None)):
        raise ShapeError(f"seed must be two integers, got shape {seed.shape}")


def _drawn(shape: TensorSpec, seed: TensorSpec, dtype: DType) -> TensorSpec:
    _check_seed(seed)
    if not dtype.is_floating:
        raise DTypeError(f"dtype must be floating, got {dtype}")
    return TensorSpec(dtype, as_shape(shape))


@op("StatelessRandomUniform", host_inputs=["shape", "seed"], public="", no_gradient=_DRAWN)
def _stateless_uniform(shape: Index, seed: Index, dtype: DType) -> Spec:
    """Numbers uniform in [0, 1), settled by a seed.

    Args:
        shape: [rank], the shape.
        seed: [2], the seed.
        dtype: A floating dtype.

    Returns:
        ``shape``, ``dtype``.
    """
    return _drawn(shape, seed, dtype)


@op("StatelessRandomNormal", host_inputs=["shape", "seed"], public="", no_gradient=_DRAWN)
def _stateless_normal(shape: Index, seed: Index, dtype: DType) -> Spec:
    """Numbers from the standard normal distribution, settled by a seed.

    Args:
        shape: [rank], the shape.
        seed: [2], the seed.
        dtype: A floating dtype.

    Returns:
        ``shape``, ``dtype``.
    """
    return _drawn(shape, seed, dtype)


@op("StatelessTruncatedNormal", host_inputs=["shape", "seed"], public="", no_gradient=_DRAWN)
def _stateless_truncated_normal(shape: Index, seed: Index, dtype: DType) -> Spec:
    """Numbers from the standard normal distribution, cut off at two deviations, by a seed.

    Args:
        shape: [rank], the shape.
        seed: [2], the seed.
        dtype: A floating dtype.

    Returns:
        ``shape``, ``dtype``.
    """
    return _drawn(shape, seed, dtype)


@op(
    "StatelessRandomUniformInt",
    host_inputs=["shape", "seed", "minval", "maxval"],
    public="",
    no_gradient=_DRAWN,
)
def _stateless_uniform_int(shape: Index, seed: Index, minval: Integer, maxval: Integer) -> Spec:
    """Integers uniform in [minval, maxval), settled by a seed.

    Args:
        shape: [rank], the shape.
        seed: [2], the seed.
        minval: [], the lowest.
        maxval: [], one more than the highest; must be above ``minval`` when it runs.

    Returns:
        ``shape``, the dtype of ``minval``.
    """
    _check_seed(seed)
    check_bounds(minval, maxval)
    return TensorSpec(minval.dtype, as_shape(shape))


@op("StatelessMultinomial", host_inputs=["num_samples", "seed"], public="", no_gradient=_DRAWN)
def _stateless_multinomial(
    logits: Real, num_samples: Index, seed: Index, output_dtype: DType
) -> Spec:
    """Classes, with probabilities proportional to the exponentials of logits, settled by a seed.

    Args:
        logits: [batch, classes]; classes whose logit is NaN or infinite are never drawn, and a row
            must have others when it runs.
        num_samples: [], how many to draw of each row.
        seed: [2], the seed.
        output_dtype: int32 or int64.

    Returns:
        [batch, num_samples], ``output_dtype``.
    """
    _check_seed(seed)
    return multinomial_spec(logits, num_samples, output_dtype)


@names_result
def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Draw numbers uniform in [minval, maxval) that a seed settles.

    Args:
        shape: The shape: a list or an integer tensor.
        seed: [2], integers.
        minval: The lower bound, included; a scalar for integers.
        maxval: The upper bound, excluded; 1 if None, required for integers.
        dtype: A floating or integer dtype.
        name: The name of the operations.

    Returns:
        ``shape``, ``dtype``.

    Raises:
        AttributeValueError: for integers without ``maxval``.
        ShapeError: if the seed is no vector of two.
    """
    kind = as_dtype(dtype)
    with name_scope(name, "stateless_random_uniform"):
        if kind.is_integer:
            if maxval is None or minval is None:
                raise AttributeValueError("stateless_uniform: integers need minval and maxval")
            low, high = convert_to_tensor(minval, kind), convert_to_tensor(maxval, kind)
            return _stateless_uniform_int(shape_vector(shape), seed, low, high)
        unit = _stateless_uniform(shape_vector(shape), seed, kind)
        low = convert_to_tensor(0 if minval is None else minval, kind)
        high = convert_to_tensor(1 if maxval is None else maxval, kind)
        return add(multiply(unit, high - low), low)


@names_result
def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Draw numbers from a normal distribution that a seed settles.

    Args:
        shape: The shape: a list or an integer tensor.
        seed: [2], integers.
        mean: The mean; broadcasts against ``shape``.
        stddev: The standard deviation; broadcasts against ``shape``.
        dtype: A floating dtype.
        name: The name of the operations.

    Returns:
        ``shape``, ``dtype``.

    Raises:
        ShapeError: if the seed is no vector of two.
    """
    with name_scope(name, "stateless_random_normal"):
        drawn = _stateless_normal(shape_vector(shape), seed, as_dtype(dtype))
        return add(multiply(drawn, stddev), mean)


@names_result
def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Draw from a normal distribution, cut off at two standard deviations, settled by a seed.

    Args:
        shape: The shape: a list or an integer tensor.
        seed: [2], integers.
        mean: The mean of the distribution that is cut off.
        stddev: Its standard deviation.
        dtype: A floating dtype.
        name: The name of the operations.

    Returns:
        ``shape``, ``dtype``.

    Raises:
        ShapeError: if the seed is no vector of two.
    """
    with name_scope(name, "stateless_truncated_normal"):
        drawn = _stateless_truncated_normal(shape_vector(shape), seed, as_dtype(dtype))
        return add(multiply(drawn, stddev), mean)


def stateless_multinomial(
    logits: Any,
    num_samples: Any,
    seed: Any,
    output_dtype: Any = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Draw classes with given logarithms of probabilities; a seed settles which.

    Args:
        logits: [batch, classes], real numbers; classes whose logit is NaN or infinite are never
            drawn.
        num_samples: How many to draw of each row.
        seed: [2], integers.
        output_dtype: int32 or int64.
        name: The name of the operations.

    Returns:
        [batch, num_samples], ``output_dtype``.

    Raises:
        ShapeError: if ``logits`` has not 2 dimensions, or the seed is no vector of two.
    """
    with name_scope(name, "stateless_multinomial"):
        return _stateless_multinomial(logits, num_samples, seed, as_dtype(output_dtype))


def stateless_categorical(
    logits: Any,
    num_samples: Any,
    seed: Any,
    dtype: Any = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Draw classes with given logarithms of probabilities; a seed settles which.

    Args:
        logits: [batch, classes], real numbers; classes whose logit is NaN or infinite are never
            drawn.
        num_samples: How many to draw of each row.
        seed: [2], integers.
        dtype: int32 or int64.
        name: The name of the operations.

    Returns:
        [batch, num_samples], ``dtype``.

    Raises:
        ShapeError: if ``logits`` has not 2 dimensions, or the seed is no vector of two.
    """
    with name_scope(name, "stateless_categorical"):
        return _stateless_multinomial(logits, num_samples, seed, as_dtype(dtype))
