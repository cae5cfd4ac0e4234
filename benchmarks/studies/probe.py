"""The process of one point: builds a program, runs it, and prints what it cost as JSON."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from benchmarks.memory import METER
from benchmarks.studies.points import Cost, Point
from benchmarks.studies.programs import build
from benchmarks.worker import limit_cpus

# Steps before those that count: kernels are compiled in the first few.
_WARM_UP = 5
_LEAST_STEPS, _LONGEST_S = 7, 1.0

Library = tuple[Any, Callable[[], Any], Callable[..., Callable[..., Any]]]


def main(text: str) -> None:
    """Measure the point that ``text`` has as JSON."""
    point = Point(**json.loads(text))
    limit_cpus(point.threads)
    api, open_session, stepper = (
        _headrace(point) if point.peer == "headrace" else _tensorflow(point)
    )
    METER.note_imports()
    start = time.perf_counter()
    program = build(api, point.varied, point.value)
    build_s = time.perf_counter() - start
    initializer = api.global_variables_initializer()
    nodes = len(api.get_default_graph().get_operations())
    session = open_session()
    session.run(initializer)
    step = stepper(session, point.variant, program.fetch, program.feeds)
    times = _times(lambda: step(*program.values))
    step_s = statistics.median(times[_WARM_UP:])
    cost = Cost(nodes, program.flops, build_s, times[0], step_s, METER.over_imports())
    sys.stdout.write(f"\n{json.dumps(asdict(cost))}\n")


def _times(step: Callable[[], object]) -> list[float]:
    """Run steps until there are enough of them; returns the time of each."""
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < _WARM_UP + _LEAST_STEPS or time.perf_counter() - begin < _LONGEST_S:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return times


def _headrace(point: Point) -> Library:
    """Return Headrace, and how it opens sessions and makes steps."""
    import headrace as hr
    from benchmarks import headrace_session as sessions

    return hr, lambda: sessions.open_session(point.threads, point.variant), sessions.stepper


def _tensorflow(point: Point) -> Library:
    """Return TensorFlow, and how it opens sessions and makes steps."""
    import tensorflow.compat.v1 as tf

    from benchmarks import tensorflow_session as sessions

    tf.disable_v2_behavior()
    return tf, lambda: sessions.open_session(point.threads), sessions.stepper


if __name__ == "__main__":
    main(sys.argv[1])
