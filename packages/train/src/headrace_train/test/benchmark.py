"""Benchmarks of steps, as classes beside test cases."""

from __future__ import annotations

import json
import logging
import re
import statistics
import sys
import time
from collections.abc import Mapping
from types import FrameType
from typing import Any

import headrace as hr
from headrace.errors import ArgumentTypeError, GraphError, shown
from headrace.extend.arguments import items, mapping, real, text, whole
from headrace_train.hooks.profiler import timeline

_log = logging.getLogger("headrace.test")

# Subclasses in the order in which they were made: those whose methods ``main`` runs.
_KNOWN: list[type[Benchmark]] = []


class Benchmark:
    """Base class of benchmarks: methods whose names begin with ``benchmark`` measure something.

    ``hr.test.main()`` runs those of the process where the command line has ``--benchmarks=``, with
    a regular expression or ``all`` behind it.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Remember the class, so that ``main`` finds it."""
        super().__init_subclass__(**kwargs)
        _KNOWN.append(cls)

    @classmethod
    def is_abstract(cls) -> bool:
        """Return whether this is the base class itself, of which nothing is run."""
        return cls is Benchmark

    def run_op_benchmark(
        self,
        sess: Any,
        op_or_tensor: Any,
        feed_dict: Any = None,
        burn_iters: int = 2,
        min_iters: int = 10,
        store_trace: bool = False,
        store_memory_usage: bool = True,
        name: str | None = None,
        extras: Any = None,
        mbs: float = 0,
    ) -> dict[str, Any]:
        """Measure a step, and report what came of it.

        Args:
            sess: A session.
            op_or_tensor: What to run: whatever ``sess.run`` takes.
            feed_dict: What to feed.
            burn_iters: How many steps come before those that count.
            min_iters: How many steps count, 1 or more.
            store_trace: Whether to run a step more, of which what ran when is returned as
                ``full_trace_chrome_format`` in ``extras``: JSON that chrome://tracing shows.
            store_memory_usage: Whether to add to ``extras`` the memory that compiled parts of the
                step have for what they compute, in bytes, for each kind of device:
                ``allocator_maximum_num_bytes_cpu``.
            name: What to call it; the method that measures if None.
            extras: Further numbers and texts to report, by name.
            mbs: How many megabytes a step moves.

        Returns:
            ``iters``, ``wall_time`` (the median, in seconds), ``throughput`` (in megabytes per
            second), ``name`` and ``extras``.

        Raises:
            AttributeValueError: if numbers of steps are out of range.
            ArgumentTypeError: if ``extras`` are not named.
        """
        before = whole(burn_iters, "burn_iters", 0)
        count = whole(min_iters, "min_iters", 1)
        told = dict(mapping(extras, "extras")) if extras is not None else {}
        for _ in range(before):
            sess.run(op_or_tensor, feed_dict)
        times = []
        for _ in range(count):
            start = time.perf_counter()
            sess.run(op_or_tensor, feed_dict)
            times.append(time.perf_counter() - start)
        if store_memory_usage:
            told.update(_memory(sess, op_or_tensor, feed_dict))
        median = statistics.median(times)
        found: dict[str, Any] = {
            "iters": count,
            "wall_time": median,
            "throughput": real(mbs, "mbs") / median,
            "extras": told,
            "name": name,
        }
        self.report_benchmark(**found)
        if store_trace:
            told["full_trace_chrome_format"] = json.dumps(_trace(sess, op_or_tensor, feed_dict))
        return found

    def report_benchmark(
        self,
        iters: int | None = None,
        cpu_time: float | None = None,
        wall_time: float | None = None,
        throughput: float | None = None,
        extras: Any = None,
        name: str | None = None,
        metrics: Any = None,
    ) -> None:
        """Print what was measured as a line of JSON; what is None is left out.

        Args:
            iters: How many steps were run.
            cpu_time: The processor time of a step in seconds.
            wall_time: The time of a step in seconds.
            throughput: Megabytes per second.
            extras: Further numbers and texts, by name.
            name: What to call it; the method that measures if None. The name of the class comes
                before it.
            metrics: Dicts, each with ``name`` and ``value``, and perhaps ``min_value`` and
                ``max_value``, which it is to be between.

        Raises:
            ArgumentTypeError: if ``extras`` or ``metrics`` are something else.
            GraphError: if there is no name and no method of a benchmark calls it.
        """
        called = text(name, "name") if name is not None else _calling_method()
        entry: dict[str, Any] = {"name": f"{type(self).__name__}.{called}"}
        numbers = {"cpu_time": cpu_time, "wall_time": wall_time, "throughput": throughput}
        if iters is not None:
            entry["iters"] = whole(iters, "iters")
        entry.update({key: real(n, key) for key, n in numbers.items() if n is not None})
        if extras is not None:
            given = mapping(extras, "extras")
            entry["extras"] = {text(key, "extras"): _plain(given[key]) for key in given}
        if metrics is not None:
            entry["metrics"] = [_metric(metric) for metric in items(metrics, "metrics")]
        sys.stdout.write(json.dumps(entry) + "\n")

    def evaluate(self, tensors: Any) -> Any:
        """Return the values of tensors, in the default session or in one of its own.

        Args:
            tensors: Whatever ``Session.run`` takes.
        """
        session = hr.get_default_session()
        if session is not None:
            return session.run(tensors)
        with hr.Session() as own:
            return own.run(tensors)


def benchmark_config() -> hr.Config:
    """Return the configuration of sessions for benchmarks: the usual one.

    Whatever a step waits for runs in it; nothing is left out because nobody reads it.
    """
    return hr.Config()


def run_benchmarks(pattern: str) -> int:
    """Run the benchmarks whose names, ``module.Class.method``, match; return how many.

    Args:
        pattern: A regular expression that is searched for, or ``all``.

    Raises:
        ArgumentTypeError: if it is no regular expression.
    """
    try:
        wanted = re.compile("" if pattern == "all" else pattern)
    except re.error as error:
        raise ArgumentTypeError(
            f"--benchmarks={pattern} is no regular expression: {error}"
        ) from None
    count = 0
    # Those that a benchmark makes are not among them.
    for cls in tuple(_KNOWN):
        names = [name for name in dir(cls) if name.startswith("benchmark")]
        chosen = [n for n in names if wanted.search(f"{cls.__module__}.{cls.__name__}.{n}")]
        made = cls() if chosen else None
        for name in chosen:
            method = getattr(made, name)
            if callable(method):
                method()
                count += 1
    if not count:
        _log.warning("no benchmark matches %s", pattern)
    return count


def _calling_method() -> str:
    """Return the name of the outermost method of a benchmark on the stack."""
    found = ""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), Benchmark):
            found = frame.f_code.co_name
        frame = frame.f_back
    if not found or found in ("run_op_benchmark", "report_benchmark"):
        raise GraphError("a benchmark that no method of one reports needs a name=")
    return found


def _plain(value: Any) -> Any:
    try:
        return real(value, "extras")
    except ArgumentTypeError:
        return str(value)


def _metric(metric: Any) -> dict[str, Any]:
    given = mapping(metric, "metrics")
    for key in ("name", "value"):
        if key not in given:
            raise ArgumentTypeError(f"each of metrics must have a {key!r}, got {shown(metric)}")
    made: dict[str, Any] = {"name": text(given["name"], "the name of a metric")}
    for key in ("value", "min_value", "max_value"):
        if key in given:
            made[key] = real(given[key], f"the {key} of a metric")
    return made


def _memory(session: Any, fetches: Any, feeds: Mapping[Any, Any] | None) -> dict[str, int]:
    """Return the bytes that compiled parts of a step have for intermediate values, by device."""
    found: dict[str, int] = {}
    for part in session.explain(fetches, feeds).walk():
        if part.report is not None:
            kind = part.device.rpartition("device:")[2].partition(":")[0]
            key = f"allocator_maximum_num_bytes_{kind}"
            found[key] = found.get(key, 0) + int(part.report.arena_bytes)
    return found


def _trace(session: Any, fetches: Any, feeds: Any) -> dict[str, Any]:
    options = hr.RunOptions(trace_level=hr.RunOptions.FULL_TRACE)
    metadata = hr.RunMetadata()
    session.run(fetches, feeds, options=options, run_metadata=metadata)
    return timeline(metadata.step_stats)
