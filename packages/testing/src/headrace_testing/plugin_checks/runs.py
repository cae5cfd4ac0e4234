"""Checks of steps: the same results in every executor, in every session, again and again."""

from __future__ import annotations

from typing import Any

from headrace import Config, Session
from headrace_testing.build import (
    Bench,
    Outcome,
    Variant,
    as_arrays,
    flat,
    make_values,
    nested,
    one_per_kind,
    outputs_of,
    run_variants,
    swept,
)
from headrace_testing.checks.forward import compare
from headrace_testing.failure import SkipCheck, fail
from headrace_testing.inputs import NDArray
from headrace_testing.plugin_checks.kernels import same_bits
from headrace_testing.sample import Sample

EXECUTORS: dict[str, dict[str, Any]] = {
    "plain": {"executor": "plain"},
    "compiled": {"executor": "plan"},
    "compiled at once": {"executor": "plan", "compile_after": 0},
}


def config_of(executor: str, **options: Any) -> Config:
    """Return the configuration of a session with one of ``EXECUTORS``."""
    return Config(**EXECUTORS[executor], **options)


def check_executors(sample: Sample, device: str) -> None:
    """Run node by node, compiled, and compiled in the first step: what the oracle says."""
    for executor in EXECUTORS:
        variants = [
            Variant(f"{executor} {d or ''}".strip(), make_values(sample.inputs, d, sample.seed))
            for d in one_per_kind(swept(sample))
        ]
        for outcome in run_variants(sample, device, variants, config_of(executor)):
            compare(sample, device, outcome)


def check_steps(sample: Sample, device: str) -> None:
    """Run a step again, also with other values in between, and in two sessions at a time.

    What an op draws depends on its seeds and on the steps that the session has made, and on
    nothing else; what it computes, on its inputs alone.
    """
    made = 0
    for dtype in one_per_kind(swept(sample)):
        for executor in EXECUTORS:
            made += _check_steps(sample, device, dtype, executor)
    if not made:
        raise SkipCheck(f"{device} has no kernel of {sample.op} for these dtypes")


def _check_steps(sample: Sample, device: str, dtype: Any, executor: str) -> bool:
    bench = Bench(sample, device)
    bench.graph.seed = 7
    label = f"{dtype or 'own dtypes'}, {executor}"
    values = make_values(sample.inputs, dtype, sample.seed)
    op = bench.add(Variant(label, values))
    if op is None:
        return False
    tensors = outputs_of(sample, op)
    feeds = dict(bench.feeds)
    others = dict(zip(feeds, flat(nested(_reversed, values)), strict=True))
    config = config_of(executor, compile_wait=True)

    def run(session: Session, given: Any) -> list[NDArray]:
        return as_arrays(tensors, session.run(list(tensors), dict(given)))

    one = Session(graph=bench.graph, config=config)
    two = Session(graph=bench.graph, config=config)
    with one, two:
        # Kernels may have other last bits than NumPy, which does their work in the first runs.
        for session in (one, two):
            for _ in range(config.compile_after):
                run(session, feeds)
        first, second = run(one, feeds), run(two, feeds)
        run(one, others)
        run(two, others)
        again, last = run(one, feeds), run(two, feeds)
    for i, pair in enumerate(zip(first, second, strict=True)):
        if not same_bits(*pair):
            problem = (
                f"output {i} has other bits in a second session with the same seeds: what outlives "
                "a step belongs to the session's containers, random bits come from ctx.draw(seeds)"
            )
            raise fail(sample, device, label, problem, flat(values))
    pairs = zip(again, last, strict=True) if op.schema.stateful else zip(first, again, strict=True)
    for i, pair in enumerate(pairs):
        if not same_bits(*pair):
            problem = (
                f"output {i} has other bits when the step is run again after one with other "
                "values; an op that draws or keeps something says stateful=True"
            )
            raise fail(sample, device, label, problem, flat(values))
    for results in (first, again):
        compare(sample, device, Outcome(Variant(label, values), op, tensors, results))
    return True


def _reversed(array: NDArray) -> NDArray:
    """Return other values of the same kind: the same in another order."""
    return array.reshape(-1)[::-1].reshape(array.shape).copy()
