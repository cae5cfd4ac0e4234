"""Samples made from a declaration, for ops whose author gave none.

Shapes, values and attributes are tried until the rule and a kernel take them. There is no oracle:
the op in float64, run node by node, stands for one. So a wrong formula is not found, but all else
is: dtypes that disagree, wrong shapes, gradients that are not those of the values, and what depends
on layouts, executors, or earlier calls.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import headrace as hr
from headrace import Config, DType, Graph, Session
from headrace.errors import HeadraceError
from headrace.extend.ops import ALL_DTYPES, REQUIRED, OpSchema
from headrace_testing.build import Bench, Variant, add_node, as_arrays, make_values, swept
from headrace_testing.inputs import Input, integers, strings, uniform
from headrace_testing.sample import Sample

# What is tried for each input, the most usual first; ops of one or two inputs meet all pairs.
SHAPES: tuple[tuple[int, ...], ...] = ((3, 4), (4, 4), (4,), (), (2, 3, 4), (2, 5, 5, 3))
RANGES = ((-2.0, 2.0), (0.2, 0.9), (1.5, 3.0))
WANTED = 2  # samples for an op
TRIES = 400


def generated_rows(schema: OpSchema, device: str) -> list[Sample]:
    """Return samples of an op, none where no inputs were found that it takes."""
    rows: list[Sample] = []
    shapes_seen: set[tuple[Any, ...]] = set()
    for row, shapes in itertools.islice(_candidates(schema), TRIES):
        if shapes in shapes_seen or not _works(row, device):
            continue
        shapes_seen.add(shapes)
        rows.append(row)
        if len(rows) == WANTED:
            break
    return rows


def _candidates(schema: OpSchema) -> Iterator[tuple[Sample, tuple[Any, ...]]]:
    needed = [p for p in schema.inputs if not p.optional]
    attrs = {a.name: _attribute(a.name, a.hint) for a in schema.attrs if a.default is REQUIRED}
    if any(a.name == "seeds" for a in schema.attrs):
        attrs["seeds"] = (1, 2)  # what is drawn is the same in all sessions, then
    for shapes in itertools.product(SHAPES, repeat=len(needed)):
        for low, high in RANGES:
            makers = dict(
                zip(
                    (p.name for p in needed),
                    (
                        _maker(p.kind.accepts, s, low, high)
                        for p, s in zip(needed, shapes, strict=True)
                    ),
                    strict=True,
                )
            )
            inputs: list[Any] = [
                [makers[p.name]] * max(2, p.least) if p.variadic else makers.get(p.name)
                for p in schema.inputs
            ]
            label = f"generated {'x'.join(str(list(s)) for s in shapes) or 'without inputs'}"
            oracle = None if schema.stateful else _in_float64(schema.type)
            yield (
                Sample(
                    schema.type,
                    inputs,
                    attrs,
                    oracle=oracle,
                    holds=None if oracle else (lambda outputs: True),
                    exact_shape=False,
                    label=label,
                ),
                shapes,
            )


def _maker(
    accepts: Callable[[DType], bool], shape: tuple[int, ...], low: float, high: float
) -> Input:
    """Return a maker for a kind of dtypes: indices and strings have a dtype of their own."""
    apart = ("resource", "list", "quantized")
    taken = [d for d in ALL_DTYPES if d.kind not in apart and accepts(d)]
    if taken and all(d.name in ("int32", "int64") for d in taken):
        return integers(shape, 1, 3, taken[0])
    if taken == [hr.string]:
        return strings(shape)
    return uniform(shape, low, high)


def _attribute(name: str, hint: Any) -> Any:
    text = hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))
    for word, value in (
        ("DType", hr.float32),
        ("bool", False),
        ("int", 1),
        ("float", 0.5),
        ("str", ""),
        ("tuple", (1,)),
        ("Sequence", (1,)),
    ):
        if word in text:
            return value
    return None


def _works(row: Sample, device: str) -> bool:
    """Whether an op takes the inputs of a row, and yields something finite."""
    try:
        for dtype in swept(row)[:8] or [None]:
            bench = Bench(row, device)
            values = make_values(row.inputs, dtype, row.seed)
            if bench.add(Variant("", values)) is None:
                continue
            with np.errstate(all="ignore"):
                outcome = bench.run(Config(executor="plain"))[0]
            return all(
                r.dtype == object or r.dtype.kind not in "fc" or bool(np.isfinite(r).all())
                for r in outcome.results
            )
    except (HeadraceError, ValueError, TypeError, AssertionError):
        return False
    return False


def _in_float64(op: str) -> Callable[..., Any]:
    """Return the op itself as an oracle, run node by node on the wide inputs that it gets."""

    def oracle(*arrays: Any, **attrs: Any) -> Any:
        row = Sample(op, [None] * len(arrays), attrs, oracle=lambda: None)
        with Graph().as_default() as graph:
            node = add_node(row, [_entered(a) for a in arrays])
        with Session(graph=graph, config=Config(executor="plain", optimize=False)) as session:
            return tuple(as_arrays(node.outputs, session.run(list(node.outputs))))

    return oracle


def _entered(value: Any) -> Any:
    return [hr.constant(v) for v in value] if isinstance(value, list) else hr.constant(value)
