"""Random tensors, drawn from counter-based streams.

Each op node draws from a stream of its own, keyed by the graph's and the op's seed, and advances
it by one with every step in a session. Without seeds the key comes from the system's entropy.
"""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.arguments import real
from headrace.dtypes import DType, as_dtype
from headrace.errors import ArgumentTypeError, AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.naming import names_result
from headrace.graph.scopes import get_default_graph, name_scope
from headrace.graph.spec import TensorSpec, as_shape
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.array import shape as shape_op
from headrace.ops.conversion import cast
from headrace.ops.declare import Spec, op
from headrace.ops.elementwise import add, less, multiply
from headrace.ops.gather import gather
from headrace.ops.identity import identity
from headrace.ops.kinds import Index, Integer
from headrace.shapes import Shape

# The graph's seed where only the op has one: any fixed number serves.
DEFAULT_GRAPH_SEED = 87654321
_DRAWN = "random numbers do not depend on the inputs smoothly"


def set_random_seed(seed: int | None) -> None:
    """Set the seed of the default graph, which seeds all its random ops.

    Args:
        seed: Any integer; None to draw from the system's entropy.
    """
    get_default_graph().seed = seed


def op_seeds(seed: int | None) -> tuple[int, int] | None:
    """Return the (graph, op) seeds of a random op made now, None where neither is set."""
    graph = get_default_graph()
    if graph.seed is None and seed is None:
        return None
    if graph.seed is None:
        return DEFAULT_GRAPH_SEED, _whole(seed)
    return graph.seed, len(graph) if seed is None else _whole(seed)


def _whole(seed: Any) -> int:
    try:
        return int(seed)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentTypeError(f"seed must be an integer or None, got {shown(seed)}") from None


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """Return the seeds that an op made now would have, as TensorFlow has them.

    Args:
        op_seed: The seed of the op, None if it has none of its own.

    Returns:
        The graph's and the op's seed; None for both where neither is set.
    """
    seeds = op_seeds(op_seed)
    if seeds is None:
        return None, None
    graph_seed, seed = (number % (2**31 - 1) for number in seeds)
    return (0, 2**31 - 1) if (graph_seed, seed) == (0, 0) else (graph_seed, seed)


def _drawn(shape: TensorSpec, dtype: DType) -> TensorSpec:
    return TensorSpec(dtype, as_shape(shape))


@op("RandomUniform", host_inputs=["shape"], effects="draws", public="", no_gradient=_DRAWN)
def _random_uniform(shape: Index, dtype: DType, seeds: tuple[int, int] | None) -> Spec:
    """Numbers uniform in [0, 1).

    Args:
        shape: [rank], the shape.
        dtype: A floating dtype.
        seeds: Graph and op seed; None for entropy.

    Returns:
        ``shape``, ``dtype``.
    """
    return _drawn(shape, _floating(dtype))


@op(
    "RandomUniformInt",
    host_inputs=["shape", "minval", "maxval"],
    effects="draws",
    public="",
    no_gradient=_DRAWN,
)
def _random_uniform_int(
    shape: Index, minval: Integer, maxval: Integer, seeds: tuple[int, int] | None
) -> Spec:
    """Integers uniform in [minval, maxval).

    Args:
        shape: [rank], the shape.
        minval: [], the lowest.
        maxval: [], one more than the highest; must be above ``minval`` when it runs.
        seeds: Graph and op seed; None for entropy.

    Returns:
        ``shape``, the dtype of ``minval``.
    """
    check_bounds(minval, maxval)
    return _drawn(shape, minval.dtype)


def check_bounds(minval: TensorSpec, maxval: TensorSpec) -> None:
    """Refuse bounds of random integers that are known to be no scalars."""
    for bound, label in ((minval, "minval"), (maxval, "maxval")):
        if bound.rank not in (None, 0):
            raise ShapeError(f"{label} must be a scalar for integers, got shape {bound.shape}")


@op("RandomStandardNormal", host_inputs=["shape"], effects="draws", public="", no_gradient=_DRAWN)
def _random_normal(shape: Index, dtype: DType, seeds: tuple[int, int] | None) -> Spec:
    """Numbers from the standard normal distribution.

    Args:
        shape: [rank], the shape.
        dtype: A floating dtype.
        seeds: Graph and op seed; None for entropy.

    Returns:
        ``shape``, ``dtype``.
    """
    return _drawn(shape, _floating(dtype))


@op("TruncatedNormal", host_inputs=["shape"], effects="draws", public="", no_gradient=_DRAWN)
def _truncated_normal(shape: Index, dtype: DType, seeds: tuple[int, int] | None) -> Spec:
    """Numbers from the standard normal distribution, cut off at two standard deviations.

    Args:
        shape: [rank], the shape.
        dtype: A floating dtype.
        seeds: Graph and op seed; None for entropy.

    Returns:
        ``shape``, ``dtype``.
    """
    return _drawn(shape, _floating(dtype))


@op("RandomPermutation", host_inputs=["size"], effects="draws", public="", no_gradient=_DRAWN)
def _random_permutation(size: Index, seeds: tuple[int, int] | None) -> Spec:
    """The numbers below ``size``, in random order.

    Args:
        size: [], how many.
        seeds: Graph and op seed; None for entropy.

    Returns:
        [size], int64.
    """
    if size.rank not in (None, 0):
        raise ShapeError(f"size must be a scalar, got shape {size.shape}")
    return TensorSpec(dtypes.int64, Shape([None if size.value is None else int(size.value)]))


def _floating(dtype: DType) -> DType:
    if not dtype.is_floating:
        raise DTypeError(f"dtype must be floating, got {dtype}")
    return dtype


@names_result
def random_uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw numbers uniform in [minval, maxval).

    Args:
        shape: The shape: a list or an integer tensor.
        minval: [], the lower bound, included.
        maxval: [], the upper bound, excluded; 1 if None, required for integers.
        dtype: A floating or integer dtype.
        seed: Seeds this op's stream, together with the graph's seed.
        name: The name of the operations.
    """
    kind = as_dtype(dtype)
    with name_scope(name, "random_uniform", [shape, minval, maxval]):
        if kind.is_integer:
            if maxval is None:
                raise AttributeValueError("random_uniform: integers need maxval")
            low, high = convert_to_tensor(minval, kind), convert_to_tensor(maxval, kind)
            return _random_uniform_int(shape_vector(shape), low, high, op_seeds(seed))
        unit = _random_uniform(shape_vector(shape), kind, op_seeds(seed))
        top = 1 if maxval is None else maxval
        if isinstance(minval, int | float) and isinstance(top, int | float):
            minval, top = real(minval, "minval"), real(top, "maxval")
            return unit if (minval, top) == (0, 1) else unit * (top - minval) + minval
        low, high = convert_to_tensor(minval, kind), convert_to_tensor(top, kind)
        return unit * (high - low) + low


@names_result
def random_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw numbers from a normal distribution.

    Args:
        shape: The shape: a list or an integer tensor.
        mean: The mean; broadcasts against ``shape``.
        stddev: The standard deviation; broadcasts against ``shape``.
        dtype: A floating dtype.
        seed: Seeds this op's stream, together with the graph's seed.
        name: The name of the operations.
    """
    with name_scope(name, "random_normal"):
        drawn = _random_normal(shape_vector(shape), as_dtype(dtype), op_seeds(seed))
        return add(multiply(drawn, stddev), mean)


@names_result
def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw from a normal distribution, values beyond two standard deviations drawn anew.

    Args:
        shape: The shape: a list or an integer tensor.
        mean: The mean of the distribution that is cut off.
        stddev: Its standard deviation.
        dtype: A floating dtype.
        seed: Seeds this op's stream, together with the graph's seed.
        name: The name of the operations.
    """
    with name_scope(name, "truncated_normal"):
        drawn = _truncated_normal(shape_vector(shape), as_dtype(dtype), op_seeds(seed))
        return add(multiply(drawn, stddev), mean)


@names_result
def random_shuffle(value: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """Put a tensor's slices along its first axis into random order.

    Args:
        value: [n, ...], any dtype; a scalar stays as it is.
        seed: Seeds this op's stream, together with the graph's seed.
        name: The name of the operations.

    Returns:
        The shape and dtype of ``value``.
    """
    with name_scope(name, "RandomShuffle", [value]):
        tensor = convert_to_tensor(value)
        if tensor.shape.rank == 0:
            return identity(tensor)
        known = None if tensor.shape.rank is None else tensor.spec.shape[0]
        size = shape_op(tensor)[0] if known is None else known
        return gather(tensor, _random_permutation(size, op_seeds(seed)))


def bernoulli(
    shape: Any,
    probs: Any = 0.5,
    dtype: Any = dtypes.int32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Draw zeros and ones.

    TensorFlow has no such function; the arguments are those of the others here.

    Args:
        shape: The shape: a list or an integer tensor.
        probs: The probability of a one; broadcasts against ``shape``.
        dtype: The dtype of the result, numeric or bool.
        seed: Seeds this op's stream, together with the graph's seed.
        name: The name of the operations.

    Returns:
        ``shape``, ``dtype``.
    """
    with name_scope(name, "random_bernoulli"):
        chances = convert_to_tensor(probs, None, None, dtypes.float32)
        if chances.dtype.is_integer:
            chances = cast(chances, dtypes.float32)
        unit = random_uniform(shape, dtype=chances.dtype, seed=seed)
        drawn: Tensor = cast(less(unit, chances), dtype)
        return drawn


def shape_vector(shape: Any) -> Any:
    """Return the argument ``shape`` of random functions as ops take it."""
    if isinstance(shape, Shape | TensorShape):
        return list(shape.known)
    return [shape] if isinstance(shape, int) else shape
