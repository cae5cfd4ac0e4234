"""Random tensors, drawn from counter-based streams.

Each op node draws from a stream of its own, keyed by the graph's and the op's seed, and advances
it by one with every step in a session. Without seeds the key comes from the system's entropy.
"""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import DTypeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import get_default_graph, name_scope
from headrace.graph.spec import TensorSpec, as_shape
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.elementwise import add, multiply
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
        return DEFAULT_GRAPH_SEED, int(seed or 0)
    return graph.seed, len(graph) if seed is None else seed


def _drawn(shape: TensorSpec, dtype: DType) -> TensorSpec:
    return TensorSpec(dtype, as_shape(shape))


@op("RandomUniform", stateful=True, public="", no_gradient=_DRAWN)
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


@op("RandomUniformInt", stateful=True, public="", no_gradient=_DRAWN)
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
    return _drawn(shape, minval.dtype)


@op("RandomStandardNormal", stateful=True, public="", no_gradient=_DRAWN)
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


@op("TruncatedNormal", stateful=True, public="", no_gradient=_DRAWN)
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


def _floating(dtype: DType) -> DType:
    if not dtype.is_floating:
        raise DTypeError(f"dtype must be floating, got {dtype}")
    return dtype


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
    with name_scope(name, "random_uniform"):
        if kind.is_integer:
            if maxval is None:
                raise DTypeError("random_uniform: integers need maxval")
            low, high = convert_to_tensor(minval, kind), convert_to_tensor(maxval, kind)
            return _random_uniform_int(_vector(shape), low, high, op_seeds(seed))
        unit = _random_uniform(_vector(shape), kind, op_seeds(seed))
        top = 1 if maxval is None else maxval
        if isinstance(minval, int | float) and isinstance(top, int | float):
            return unit if (minval, top) == (0, 1) else unit * (top - minval) + minval
        low, high = convert_to_tensor(minval, kind), convert_to_tensor(top, kind)
        return unit * (high - low) + low


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
        drawn = _random_normal(_vector(shape), as_dtype(dtype), op_seeds(seed))
        return add(multiply(drawn, stddev), mean)


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
        drawn = _truncated_normal(_vector(shape), as_dtype(dtype), op_seeds(seed))
        return add(multiply(drawn, stddev), mean)


def _vector(shape: Any) -> Any:
    if isinstance(shape, Shape):
        return list(shape.known)
    return [shape] if isinstance(shape, int) else shape


__all__ = ["random_normal", "random_uniform", "set_random_seed", "truncated_normal"]
