"""A gradient check along random directions that says what is wrong, and where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, HeadraceError, shorten, shown
from headrace.extend.arguments import items
from headrace_train.test.jacobian import _dense

# How many elements of an input that failed are looked at one by one.
_LOOKED_AT = 256


class GradientCheckError(HeadraceError, AssertionError):
    """A gradient that is not what differences say."""


@dataclass(frozen=True)
class GradientReport:
    """What a check of gradients found along its direction.

    Attributes:
        exact: The slope of the output, weighted at random, that the gradients give.
        estimated: The slope from central differences.
        eps: How far the inputs were moved to either side, in units of the direction.
        direction: The direction, an array for each input, of unit length together.
        gradients: The gradient with respect to each input.
    """

    exact: float
    estimated: float
    eps: float
    direction: tuple[np.ndarray, ...]
    gradients: tuple[np.ndarray, ...]

    @property
    def error(self) -> float:
        """How far both slopes are apart, relative to the larger of 1 and the slope."""
        return abs(self.exact - self.estimated) / max(1.0, abs(self.estimated))


def check_gradient(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    dtype: Any = hr.float64,
    eps: float | None = None,
    tolerance: float | None = None,
    seed: int = 0,
) -> GradientReport:
    """Check the gradients of a function with respect to all its inputs.

    The output, weighted at random, is a number, and its slope along one random direction of all
    inputs is compared with that of central differences. It costs three steps, in a graph and
    session of its own.

    Args:
        function: From tensors to a tensor.
        inputs: Their values.
        dtype: The dtype of the inputs, float64 as differences need many digits.
        eps: How far the inputs are moved to either side; the cube root of the dtype's resolution
            if None, which balances rounding and curvature.
        tolerance: The largest error, as ``GradientReport.error``; ``100 * eps ** 2`` if None, at
            least.
        seed: Draws weights and direction.

    Returns:
        Both slopes.

    Raises:
        GradientCheckError: if they are apart: names the input and its elements that differ most,
            with both derivatives of each; or says that the function has a kink there.
        DTypeError: if the dtype or the output is not floating.
    """
    kind = hr.as_dtype(dtype)
    if not kind.is_floating:
        raise DTypeError(f"gradients are checked of floating inputs, got {kind}")
    values: list[np.ndarray]
    try:
        values = [np.asarray(v).astype(kind.as_numpy_dtype) for v in items(inputs, "inputs")]
    except (TypeError, ValueError, OverflowError, MemoryError):
        raise AttributeValueError(
            f"inputs must be arrays of numbers, got {shown(inputs)}"
        ) from None
    rng = np.random.default_rng(seed)
    with hr.Graph().as_default() as graph, hr.Session(graph=graph) as session:
        tensors = [hr.placeholder(kind, value.shape) for value in values]
        output = hr.convert_to_tensor(function(*tensors))
        if not output.dtype.is_floating:
            raise DTypeError(f"the function returned {output.dtype}, expected a floating tensor")
        weights = hr.placeholder(output.dtype, output.spec.shape)
        total = hr.reduce_sum(hr.cast(output * weights, hr.float64))
        gradients = hr.gradients(total, tensors)
        session.run(hr.global_variables_initializer())
        start = dict(zip(tensors, values, strict=True))
        shape = session.run(output, start).shape
        start[weights] = rng.normal(size=shape).astype(output.dtype.as_numpy_dtype)
        missing = [i for i, gradient in enumerate(gradients) if gradient is None]
        found = [
            np.zeros_like(value)
            if gradient is None
            else _dense(session.run(gradient, start), value)
            for gradient, value in zip(gradients, values, strict=True)
        ]
        at = _At(session, total, tensors, start)
        step = float(np.finfo(_resolution(kind)).eps ** (1 / 3)) if eps is None else eps
        ways = [rng.normal(size=value.shape) for value in values]
        length = np.sqrt(sum(float((way**2).sum()) for way in ways)) or 1.0
        ways = [way / length for way in ways]
        report = GradientReport(
            sum(float((g * way).sum()) for g, way in zip(found, ways, strict=True)),
            at.slope(ways, step),
            step,
            tuple(ways),
            tuple(found),
        )
        allowed = max(100 * step**2, 1e-12) if tolerance is None else tolerance
        if not report.error <= allowed:
            raise GradientCheckError(shorten(_explained(report, allowed, at, missing)))
        return report


def _resolution(kind: Any) -> Any:
    return np.float32 if kind == hr.bfloat16 else kind.as_numpy_dtype


class _At:
    """A number that depends on inputs, near given values of them."""

    def __init__(self, session: Any, total: Any, tensors: list[Any], start: dict[Any, Any]) -> None:
        self.session = session
        self.total = total
        self.tensors = tensors
        self.start = start

    def moved(self, ways: Sequence[np.ndarray], far: float) -> float:
        """Return the number where inputs are moved ``far`` along a direction."""
        feeds = dict(self.start)
        for tensor, way in zip(self.tensors, ways, strict=True):
            value = self.start[tensor]
            feeds[tensor] = (value + far * way).astype(value.dtype)
        return float(self.session.run(self.total, feeds))

    def slope(self, ways: Sequence[np.ndarray], eps: float) -> float:
        """Return the slope along a direction, from central differences."""
        return (self.moved(ways, eps) - self.moved(ways, -eps)) / (2 * eps)

    def along(self, which: int, place: int) -> list[np.ndarray]:
        """Return the direction of one element of one input."""
        ways = [np.zeros(self.start[tensor].shape) for tensor in self.tensors]
        ways[which].reshape(-1)[place] = 1.0
        return ways


def _explained(report: GradientReport, allowed: float, at: _At, missing: list[int]) -> list[str]:
    lines = [
        f"the gradient is wrong: along a random direction the slope is {report.exact:.9g} by the",
        f"  gradients and {report.estimated:.9g} by differences, error {report.error:.2g}, allowed",
        f"  {allowed:.2g} (eps {report.eps:.2g})",
    ]
    lines += [f"  input {i}: the function does not depend on it, by its graph" for i in missing]
    if not np.isfinite([report.exact, report.estimated]).all():
        lines.append("  a slope is not finite: the function or its gradient makes NaN or infinity")
        return lines
    here = at.moved(report.direction, 0.0)
    ahead = (at.moved(report.direction, report.eps) - here) / report.eps
    behind = (here - at.moved(report.direction, -report.eps)) / report.eps
    if abs(ahead - behind) > 1e-3 * max(1.0, abs(ahead), abs(behind)):
        lines.append(
            f"  slopes ahead ({ahead:.6g}) and behind ({behind:.6g}) differ: the function may have "
            "a kink or jump here; check it elsewhere"
        )
    for which, gradient in enumerate(report.gradients):
        lines += _worst(which, gradient, at, report.eps, allowed)
    return lines


def _worst(which: int, gradient: np.ndarray, at: _At, eps: float, allowed: float) -> list[str]:
    """Return lines about the elements of an input whose derivatives differ most."""
    count = min(gradient.size, _LOOKED_AT)
    slopes = [at.slope(at.along(which, place), eps) for place in range(count)]
    flat = gradient.reshape(-1)[:count].astype(np.float64)
    errors = np.abs(flat - slopes) / np.maximum(1.0, np.abs(slopes))
    wrong = [int(place) for place in np.argsort(-errors) if not errors[place] <= allowed]
    shape = list(gradient.shape)
    if not wrong:
        return [f"  input {which}, shape {shape}: right in the first {count} elements"]
    told = []
    for place in wrong[:3]:
        index = [int(i) for i in np.unravel_index(place, gradient.shape)] if shape else []
        told.append(f"at {index} {flat[place]:.9g}, by differences {slopes[place]:.9g}")
    head = f"  input {which}, shape {shape}: {len(wrong)} of {count} derivatives are wrong"
    return [f"{head}: {'; '.join(told)}"]
