"""Whole Jacobians, from gradients and from differences, and how far they are apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import DTypeError, GraphError, ShapeError
from headrace.extend import DType, IndexedSlices, Tensor
from headrace.extend.arguments import items, mapping

Jacobians = tuple[np.ndarray, np.ndarray]


def compute_gradient(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Sequence[Any] | None = None,
    extra_feed_dict: Mapping[Any, Any] | None = None,
) -> Any:
    """Compute the Jacobian of ``y`` with respect to ``x`` twice, in the default session.

    Once with ``hr.gradients``, once from central differences. Complex numbers count as two real
    ones, their parts. It costs a step for each element of ``y`` and two for each of ``x``;
    ``check_gradient`` needs three in all.

    Args:
        x: A floating or complex tensor, or a list of them.
        x_shape: Its shape, or a list of shapes.
        y: A floating or complex tensor.
        y_shape: Its shape.
        x_init_value: Where the Jacobian is taken: an array, or a list of them; random if None.
        delta: How far elements of ``x`` are moved to either side.
        init_targets: Operations to run before.
        extra_feed_dict: What else is fed.

    Returns:
        Both Jacobians, [elements of x, elements of y]; a list of such pairs for a list.

    Raises:
        GraphError: if there is no default session, or ``y`` does not depend on ``x``.
        DTypeError: if a tensor is neither floating nor complex.
        ShapeError: if a value has another shape.
    """
    session = hr.get_default_session()
    if session is None:
        raise GraphError(
            "compute_gradient runs in the default session: use it inside of 'with session:'"
        )
    several = isinstance(x, list)
    xs = x if several else [x]
    shapes = x_shape if several else [x_shape]
    starts = x_init_value if several and x_init_value is not None else [x_init_value] * len(xs)
    for tensor in (*xs, y):
        if not (tensor.dtype.is_floating or tensor.dtype.is_complex):
            raise DTypeError(f"gradients are of floating and complex tensors, got {tensor.dtype}")
    made = [_gradient(tensor, y, y_shape) for tensor in xs]
    for target in items(init_targets or (), "init_targets"):
        session.run(target)
    feeds = mapping(extra_feed_dict, "extra_feed_dict")
    found = []
    for tensor, shape, start, (gradient, seed) in zip(xs, shapes, starts, made, strict=True):
        value = _start(tensor, shape, start)
        run = _Run(session, {**feeds, tensor: value})
        exact = _exact(run, gradient, seed, value, y_shape, tensor.dtype, y.dtype)
        found.append((exact, _differences(run, tensor, value, y, delta)))
    return found if several else found[0]


def compute_gradient_error(
    x: Any,
    x_shape: Any,
    y: Tensor,
    y_shape: Any,
    x_init_value: Any = None,
    delta: float = 1e-3,
    init_targets: Sequence[Any] | None = None,
    extra_feed_dict: Mapping[Any, Any] | None = None,
) -> float:
    """Return the largest difference of the Jacobians that ``compute_gradient`` computes.

    Args:
        x: As for ``compute_gradient``, and the others likewise.
        x_shape: Its shape.
        y: A tensor.
        y_shape: Its shape.
        x_init_value: Where the Jacobian is taken.
        delta: How far elements are moved.
        init_targets: Operations to run before.
        extra_feed_dict: What else is fed.
    """
    found = compute_gradient(
        x, x_shape, y, y_shape, x_init_value, delta, init_targets, extra_feed_dict
    )
    pairs = [found] if isinstance(found, tuple) else found
    return max((float(np.abs(a - b).max()) for a, b in pairs if a.size), default=0.0)


class _Run:
    """A session with feeds."""

    def __init__(self, session: Any, feeds: dict[Any, Any]) -> None:
        self.session = session
        self.feeds = feeds

    def __call__(self, fetch: Any, feeds: dict[Any, Any]) -> Any:
        return self.session.run(fetch, {**self.feeds, **feeds})


def _gradient(x: Any, y: Tensor, y_shape: Any) -> tuple[Any, Tensor]:
    """Return the gradient of y, and what to feed as the gradient that comes in."""
    with y.graph.as_default():
        seed = hr.placeholder(y.dtype, items(y_shape, "y_shape"), name="dy")
        # A scalar may be said to be of the shape [1].
        scalar = y.shape.ndims == 0 and seed.shape.num_elements() == 1
        incoming = hr.reshape(seed, []) if scalar else hr.identity(seed)
        gradient = hr.gradients(y, x, incoming)[0]
    if gradient is None:
        raise GraphError(f"{y.name} does not depend on {x.name}: there is no gradient to check")
    return gradient, seed


def _start(x: Any, shape: Any, start: Any) -> np.ndarray:
    if start is None:
        # NumPy's old generator: tests seed it, so that they fail again where they failed.
        draw = np.random.random_sample
        start = draw(tuple(shape))
        if x.dtype.is_complex:
            start = start + 1j * draw(tuple(shape))
    value = np.array(start, dtype=x.dtype.as_numpy_dtype)
    if value.shape != tuple(shape):
        raise ShapeError(f"x_init_value has shape {list(value.shape)}, x_shape is {list(shape)}")
    return value


def _real(dtype: DType) -> Any:
    """Return NumPy's dtype of the parts of a dtype; differences of bfloat16 are float32."""
    if dtype.is_complex:
        return np.float32 if dtype == hr.complex64 else np.float64
    return np.float32 if dtype == hr.bfloat16 else dtype.as_numpy_dtype


def _parts(values: Any, dtype: DType) -> np.ndarray:
    """Return the elements in a row, the parts of complex ones beside one another."""
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat.view(_real(dtype)) if dtype.is_complex else flat.astype(_real(dtype))


def _exact(
    run: _Run, gradient: Any, seed: Tensor, start: np.ndarray, y_shape: Any, kind: DType, of: DType
) -> np.ndarray:
    width = math.prod(y_shape) * (2 if of.is_complex else 1)
    columns = []
    for place in range(width):
        incoming = np.zeros(tuple(y_shape), of.as_numpy_dtype)
        flat = incoming.reshape(-1)
        (flat.view(_real(of)) if of.is_complex else flat)[place] = 1
        columns.append(_parts(_dense(run(gradient, {seed: incoming}), start), kind))
    if not columns:
        return np.zeros((_parts(start, kind).size, 0), _real(kind))
    return np.stack(columns, 1)


def _dense(gradient: Any, start: np.ndarray) -> Any:
    """Return a gradient as an array; rows that come several times are added up."""
    if not isinstance(gradient, IndexedSlices | hr.IndexedSlicesValue):
        return gradient
    whole = np.zeros_like(start)
    np.add.at(whole, gradient.indices, gradient.values)
    return whole


def _differences(run: _Run, x: Any, start: np.ndarray, y: Tensor, delta: float) -> np.ndarray:
    kind = _real(x.dtype)
    rows = []
    for place in range(_parts(start, x.dtype).size):
        sides = []
        for sign in (1, -1):
            moved = start.astype(np.float32) if x.dtype == hr.bfloat16 else start.copy()
            flat = moved.reshape(-1)
            (flat.view(kind) if x.dtype.is_complex else flat)[place] += sign * delta
            sides.append(_parts(run(y, {x: moved.astype(start.dtype)}), y.dtype))
        rows.append((sides[0] - sides[1]) / np.asarray(2 * delta, _real(y.dtype)))
    width = math.prod(y.shape.known) if y.shape.is_fully_defined() else 0
    return np.stack(rows).astype(kind) if rows else np.zeros((0, width), kind)
