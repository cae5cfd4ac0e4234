"""Gradient checks: central differences along one random direction, in float64.

With ``J`` the Jacobian at the sample's inputs, ``u`` a random direction of unit length there and
``w`` random weights of the outputs, three numbers must agree: the difference quotient of
``<w, f(x + t u)>``; ``<J'w, u>``, from the gradients; and ``<w, Ju>``, from the gradients of the
gradients with respect to their weights. For second order the same is asked of ``<J'w, v>`` as a
function of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import headrace as hr
from headrace import Tensor, convert_to_tensor, multiply, placeholder, reduce_sum
from headrace import device as device_scope
from headrace.errors import HeadraceError
from headrace.extend.ops import OPS
from headrace_testing.build import Bench, Variant, make_values, outputs_of, swept
from headrace_testing.failure import ConformanceError, SkipCheck, fail
from headrace_testing.inputs import NDArray
from headrace_testing.sample import Sample
from headrace_testing.sessions import open_session
from headrace_testing.tolerances import GRADIENT, SECOND_ORDER, STEP

Arrays = list[NDArray]


def has_gradient(sample: Sample) -> bool:
    """Whether a sample has inputs along which gradients are checked."""
    schema = OPS[sample.op]
    if sample.oracle is None or not sample.grad or schema.no_gradient:
        return False
    sweeps = hr.float64 in swept(sample)
    return any(
        sweeps if maker.dtype is None else maker.dtype == hr.float64
        for param, entry in zip(schema.inputs, sample.inputs, strict=True)
        for maker in (entry if isinstance(entry, Sequence) else [entry])
        if maker is not None and (isinstance(sample.grad, bool) or param.name in sample.grad)
    )


def check_gradient(sample: Sample, device: str) -> None:
    """Compare both ways of the first derivative with the difference quotient."""
    problem = _Problem(sample, device)
    numeric = problem.quotient(problem.values_of(problem.ys, problem.ws), problem.u)
    problem.expect("reverse", numeric, problem.reverse(), GRADIENT)
    problem.expect("forward", numeric, problem.forward(), GRADIENT)


def check_second_order(sample: Sample, device: str) -> None:
    """Compare the gradients of the gradients with the difference quotient of the gradients."""
    problem = _Problem(sample, device)
    # Rules that do not depend on their inputs have nothing more to differentiate.
    if not any(g is not None for g in problem.grads):
        return
    inner = problem.dot(problem.grads, problem.v)
    numeric = problem.quotient(problem.values_of([inner], [np.ones(())]), problem.u)
    second = problem.gradients([inner], problem.xs, None)
    problem.expect("second order", numeric, problem.along(second, problem.u), SECOND_ORDER)


class _Problem:
    """A sample in float64, with its gradients, ready to be evaluated near its inputs."""

    def __init__(self, sample: Sample, device: str) -> None:
        self.sample = sample
        self.device = device
        self.gradients = _gradients(sample, device)
        dtype = hr.float64 if hr.float64 in swept(sample) else None
        bench = Bench(sample, device)
        values = make_values(sample.inputs, dtype, sample.seed)
        op = bench.add(Variant("float64", values))
        if op is None:
            raise SkipCheck(f"{device} has no kernel of {sample.op} for float64")
        self.graph = bench.graph
        self.fed = dict(bench.feeds)
        self.xs = _moved(sample, op.inputs, op.arity)
        self.ys = [y for y in outputs_of(sample, op) if y.dtype == hr.float64]
        if sample.grad_outputs is not None:
            self.ys = [y for y in self.ys if y.index in sample.grad_outputs]
        rng = np.random.default_rng([sample.seed, 77])
        self.session = open_session(self.graph)
        shapes = [np.shape(y) for y in self.session.run(self.ys, self.fed)]
        self.w = [rng.standard_normal(shape) for shape in shapes]
        self.u = _directions(rng, [self.fed[x].shape for x in self.xs], sample.along)
        self.v = _directions(rng, [self.fed[x].shape for x in self.xs], sample.along)
        with self.graph.as_default():
            self.ws = [placeholder(hr.float64, w.shape) for w in self.w]
        self.fed.update(zip(self.ws, self.w, strict=True))
        self.grads = self.gradients(self.ys, self.xs, self.ws)

    def values_of(
        self, tensors: Sequence[Tensor], weights: Sequence[Any]
    ) -> Callable[[Arrays], float]:
        """Return the weighted sum of tensors, as a function of the moved inputs."""
        rest = [t for t in self.fed if t not in self.xs]
        call = self.session.make_callable(list(tensors), [*self.xs, *rest])
        constants = [self.fed[t] for t in rest]
        factors = [self.fed[w] if isinstance(w, Tensor) else w for w in weights]

        def value(moved: Arrays) -> float:
            results = call(*moved, *constants)
            return float(sum(np.sum(w * y) for w, y in zip(factors, results, strict=True)))

        return value

    def quotient(self, function: Callable[[Arrays], float], direction: Arrays) -> float:
        """Return the central difference of a function along a direction."""
        at = [self.fed[x] for x in self.xs]
        ahead = [x + STEP * d for x, d in zip(at, direction, strict=True)]
        behind = [x - STEP * d for x, d in zip(at, direction, strict=True)]
        with np.errstate(all="ignore"):
            return (function(ahead) - function(behind)) / (2 * STEP)

    def reverse(self) -> float:
        """Return ``<J'w, u>``."""
        return self.along(self.grads, self.u)

    def forward(self) -> float:
        """Return ``<w, Ju>``, where ``Ju`` is the gradient of ``<J'w, u>``, linear in ``w``."""
        if not any(g is not None for g in self.grads):
            return 0.0
        through = self.gradients([self.dot(self.grads, self.u)], self.ws, None)
        return self.along(through, self.w)

    def dot(self, tensors: Sequence[Any], arrays: Arrays) -> Tensor:
        """Return the node that sums products of gradients and constants; None counts as zero."""
        with self.graph.as_default(), device_scope(self.device):
            parts = [
                reduce_sum(multiply(convert_to_tensor(t), a))
                for t, a in zip(tensors, arrays, strict=True)
                if t is not None
            ]
            total = parts[0]
            for part in parts[1:]:
                total = total + part
            return total

    def along(self, tensors: Sequence[Any], arrays: Arrays) -> float:
        """Return the inner product of gradients and arrays; None counts as zero."""
        if not any(t is not None for t in tensors):
            return 0.0
        return float(self.session.run(self.dot(tensors, arrays), self.fed))

    def expect(self, way: str, numeric: float, analytic: float, limit: float) -> None:
        """Compare a derivative with the difference quotient.

        Raises:
            ConformanceError: if they differ; shows both, the direction, and the parts.
        """
        chosen = limit if self.sample.tolerance is None else self.sample.tolerance
        error = abs(numeric - analytic)
        if error <= chosen + chosen * abs(numeric):
            return
        verdict = f"{way} derivative along u is wrong: expected {numeric:.9g} (by differences)"
        lines = [f"{verdict}, got {analytic:.9g}, error {error:.3g} (tolerance {chosen:g})"]
        if way != "second order":
            lines += self._parts()
        raise fail(self.sample, self.device, "float64", "\n".join(lines), self._shown())

    def _parts(self) -> list[str]:
        """Return both derivatives for each input alone, to tell which one is wrong."""
        lines = []
        function = self.values_of(self.ys, self.ws)
        for i, (x, grad) in enumerate(zip(self.xs, self.grads, strict=True)):
            only = [u if j == i else 0 * u for j, u in enumerate(self.u)]
            numeric = self.quotient(function, only)
            lines.append(
                f"  for {x.op.name} {x.spec} alone: expected {numeric:.9g}, got "
                + (f"{self.along([grad], [self.u[i]]):.9g}" if grad is not None else "no gradient")
            )
        lines += [f"  u[{i}] = {_text(u)}" for i, u in enumerate(self.u)]
        lines += [f"  w[{i}] = {_text(w)}" for i, w in enumerate(self.w)]
        for i, grad in enumerate(self.grads):
            if grad is not None:
                with self.graph.as_default():
                    dense = convert_to_tensor(grad)
                value = self.session.run(dense, self.fed)
                lines.append(f"  J'w[{i}] = {_text(np.asarray(value))}")
        return lines

    def _shown(self) -> list[Any]:
        return [self.fed[x] for x in self.xs]


def _gradients(sample: Sample, device: str) -> Callable[..., list[Any]]:
    """Return ``headrace.gradients`` with its errors turned into failures of the row."""
    try:
        function = hr.gradients
    except AttributeError as error:
        raise SkipCheck(f"gradients are not checked: {error}") from None

    def gradients(ys: Sequence[Tensor], xs: Sequence[Tensor], weights: Any) -> list[Any]:
        graph = xs[0].graph
        try:
            with graph.as_default(), device_scope(device):
                return list(function(list(ys), list(xs), grad_ys=weights))
        except HeadraceError as error:
            problem = (
                f"there is no gradient\n{error}\nadd a rule, declare why there is none with "
                "@op(no_gradient=...), or set grad=False"
            )
            raise fail(sample, device, "float64", problem) from error

    return gradients


def _moved(sample: Sample, inputs: Sequence[Tensor], arity: tuple[int, ...]) -> list[Tensor]:
    """Return the inputs along which derivatives are taken."""
    names: list[str] = []
    for param, count in zip(OPS[sample.op].inputs, arity, strict=True):
        names += [param.name] * count
    if not isinstance(sample.grad, bool):
        unknown = set(sample.grad) - set(names)
        if unknown:
            raise ConformanceError(f"{sample.name}: {sample.op} has no input {sorted(unknown)}")
    return [
        tensor
        for name, tensor in zip(names, inputs, strict=True)
        if tensor.dtype == hr.float64 and (isinstance(sample.grad, bool) or name in sample.grad)
    ]


def _directions(
    rng: np.random.Generator,
    shapes: Sequence[tuple[int, ...]],
    along: Callable[[NDArray], NDArray] | None,
) -> Arrays:
    drawn = [rng.standard_normal(shape) for shape in shapes]
    drawn = drawn if along is None else [along(d) for d in drawn]
    length = np.sqrt(sum(float(np.sum(d * d)) for d in drawn)) or 1.0
    return [np.asarray(d / length) for d in drawn]


def _text(values: NDArray) -> str:
    shown = np.array2string(values, separator=", ", threshold=24, edgeitems=3, precision=6)
    return " ".join(shown.split())
