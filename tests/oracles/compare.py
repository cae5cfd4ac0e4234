"""Runs a row in both libraries, and says how far apart they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

import headrace as hr

from .libraries import jax, resolve, torch
from .rows import Row

DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Errors:
    """Largest distances of a row, relative to the larger of 1 and the expected value."""

    value: float
    gradient: float


@dataclass(frozen=True)
class Results:
    values: list[np.ndarray]
    gradients: list[np.ndarray]


def function_named(name: str) -> Any:
    return reduce(getattr, name.split("."), hr)


def flat(structure: Any) -> list[Any]:
    if isinstance(structure, list | tuple):
        return [leaf for part in structure for leaf in flat(part)]
    return [structure]


def cotangents(row: Row, values: list[np.ndarray]) -> list[np.ndarray]:
    rng = np.random.default_rng(row.seed + 1)
    return [np.asarray(rng.normal(size=v.shape), v.dtype) for v in values]


def in_headrace(row: Row, arrays: list[np.ndarray]) -> Results:
    """Return values and gradients; the gradient of a tensor without influence is zero."""
    function = row.ours or function_named(row.name)
    with hr.Graph().as_default() as graph:
        inputs = [hr.placeholder(a.dtype, a.shape) for a in arrays]
        outputs = [hr.convert_to_tensor(t) for t in flat(function(*inputs))]
        sources = [inputs[i] for i in row.differentiable()]
        with hr.Session(graph=graph) as session:
            feeds = dict(zip(inputs, arrays, strict=True))
            values = session.run(outputs, feeds)
            weights = cotangents(row, values)
            slopes = hr.gradients(outputs, sources, grad_ys=weights)
            fetched = [
                hr.zeros_like(s) if g is None else g for s, g in zip(sources, slopes, strict=True)
            ]
            fetched = [hr.convert_to_tensor(g) for g in fetched]
            return Results(values, session.run(fetched, feeds))


def in_jax(row: Row, arrays: list[np.ndarray]) -> Results:
    function = row.theirs or resolve(row.references[0])
    where = row.differentiable()

    def of_sources(*sources: Any) -> list[Any]:
        everything: list[Any] = list(arrays)
        for i, source in zip(where, sources, strict=True):
            everything[i] = source
        return flat(function(*everything))

    sources = [jax.numpy.asarray(arrays[i]) for i in where]
    values, pull = jax.vjp(of_sources, *sources)
    values = [np.asarray(v) for v in values]
    slopes = pull([jax.numpy.asarray(w) for w in cotangents(row, values)])
    return Results(values, [np.asarray(s) for s in slopes])


def in_torch(row: Row, arrays: list[np.ndarray]) -> Results:
    function = row.theirs or resolve(row.references[0])
    tensors = [torch.from_numpy(np.array(a)) for a in arrays]
    sources = [tensors[i].requires_grad_() for i in row.differentiable()]
    outputs = flat(function(*tensors))
    values = [t.detach().numpy() for t in outputs]
    weights = [torch.from_numpy(w) for w in cotangents(row, values)]
    slopes = torch.autograd.grad(outputs, sources, weights, materialize_grads=True)
    return Results(values, [s.numpy() for s in slopes])


def distance(ours: list[np.ndarray], theirs: list[np.ndarray], what: str) -> float:
    """Return the largest distance.

    Raises:
        AssertionError: there are more of one than of the other, or shapes or dtypes differ.
    """
    kinds = [[(a.shape, str(a.dtype)) for a in arrays] for arrays in (ours, theirs)]
    if kinds[0] != kinds[1]:
        raise AssertionError(f"{what}: Headrace has {kinds[0]}, the reference {kinds[1]}")
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            raise AssertionError(f"{what}: not finite: {a} {b}")
        apart = np.abs(a.astype(np.float64) - b) / np.maximum(1, np.abs(b))
        worst = max(worst, float(apart.max(initial=0)))
    return worst


def compare(row: Row, dtype: str) -> Errors:
    """Run a row in Headrace and in its reference.

    Args:
        row: the row.
        dtype: ``float32`` or ``float64``.
    """
    arrays = row.arrays(dtype)
    ours = in_headrace(row, arrays)
    theirs = (in_jax if row.library == "jax" else in_torch)(row, arrays)
    expected = theirs.values
    if row.single:
        expected = [v.astype(w.dtype) for v, w in zip(expected, ours.values, strict=True)]
    return Errors(
        distance(ours.values, expected, "values"),
        distance(ours.gradients, theirs.gradients, "gradients"),
    )
