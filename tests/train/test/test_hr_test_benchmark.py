"""``hr.test.Benchmark``: what it measures, what it prints, and what ``hr.test.main`` runs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError, AttributeValueError, GraphError
from tests.children import run_python

pytestmark = pytest.mark.needs("backend-cpu", "train")


class Squares(hr.test.Benchmark):
    """Measures squares."""

    def benchmark_squares(self) -> dict[str, Any]:
        return self.measured(store_trace=True)

    def measured(self, **changes: Any) -> dict[str, Any]:
        x = hr.placeholder(hr.float32, [64])
        y = hr.reduce_sum(hr.square(x) * hr.exp(x))
        runs = hr.Variable(0)
        # Compiled also where tests run node by node, for what compiled parts have.
        config = replace(hr.test.benchmark_config(), executor="plan")
        with hr.Session(config=config) as session:
            session.run(runs.initializer)
            with hr.control_dependencies([runs.assign_add(1)]):
                step = hr.identity(y)
            feeds = {x: np.ones(64, np.float32)}
            found = self.run_op_benchmark(session, step, feeds, **{"min_iters": 3, **changes})
            found["runs"] = session.run(runs)
            return found


def printed(capsys: pytest.CaptureFixture[str]) -> Any:
    (line,) = capsys.readouterr().out.splitlines()
    return json.loads(line)


def test_a_step_is_measured_and_reported(capsys: pytest.CaptureFixture[str]) -> None:
    found = Squares().benchmark_squares()
    told = printed(capsys)
    assert told["name"] == "Squares.benchmark_squares"
    assert told["iters"] == found["iters"] == 3
    assert 0 < told["wall_time"] == found["wall_time"] < 60
    assert told["throughput"] == 0
    # Two before, three that count, and one that is traced.
    assert found["runs"] == 6
    assert told["extras"]["allocator_maximum_num_bytes_cpu"] >= 0
    # The trace is returned, not told.
    assert list(told["extras"]) == ["allocator_maximum_num_bytes_cpu"]
    trace = json.loads(found["extras"]["full_trace_chrome_format"])
    assert any(event.get("cat") == "Op" for event in trace["traceEvents"])


def test_what_is_asked_for_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    extras = {"a": 1, "b": "c"}
    found = Squares().measured(
        burn_iters=0, min_iters=4, store_memory_usage=False, name="n", extras=extras, mbs=2
    )
    assert found["runs"] == 4
    assert found["throughput"] == pytest.approx(2 / found["wall_time"])
    told = printed(capsys)
    assert told["name"] == "Squares.n"
    assert told["extras"] == {"a": 1.0, "b": "c"}


@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"min_iters": 0}, AttributeValueError, "min_iters must be"),
        ({"burn_iters": -1}, AttributeValueError, "burn_iters must be"),
        ({"extras": 3}, ArgumentTypeError, "extras must be"),
        ({"mbs": "many"}, ArgumentTypeError, "mbs must be a number"),
    ],
)
def test_what_cannot_be_measured_is_refused(changes: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        Squares().measured(**changes)


def test_reports_have_what_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = [{"name": "m", "value": 1, "max_value": 2.5}]
    Squares().report_benchmark(iters=2, cpu_time=0.5, name="n", metrics=metrics)
    assert printed(capsys) == {
        "name": "Squares.n",
        "iters": 2,
        "cpu_time": 0.5,
        "metrics": [{"name": "m", "value": 1.0, "max_value": 2.5}],
    }


@pytest.mark.parametrize(
    ("given", "error", "match"),
    [
        ({}, GraphError, "needs a name="),
        ({"name": "n", "metrics": [{"name": "m"}]}, ArgumentTypeError, "must have a 'value'"),
        ({"name": "n", "metrics": [3]}, ArgumentTypeError, "metrics must be"),
        ({"name": "n", "extras": {3: 1}}, ArgumentTypeError, "extras must be"),
        ({"name": "n", "wall_time": "long"}, ArgumentTypeError, "wall_time must be a number"),
        ({"name": 3}, ArgumentTypeError, "name must be"),
    ],
)
def test_reports_refuse(given: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        Squares().report_benchmark(**given)


def test_tensors_are_evaluated_in_the_default_session_or_another() -> None:
    x = hr.square(3.0)
    assert Squares().evaluate(x) == 9.0
    with hr.Session():
        assert Squares().evaluate([x, x]) == [9.0, 9.0]


def test_the_base_class_alone_is_abstract() -> None:
    assert hr.test.Benchmark.is_abstract()
    assert not Squares.is_abstract()


PROGRAM = """
import headrace as hr

class A(hr.test.Benchmark):
    def benchmark_one(self):
        print("one")
    def benchmark_two(self):
        print("two")
    benchmark_number = 3

class B(A):
    def other(self):
        print("other")

if __name__ == "__main__":
    hr.test.main()
    print("after")
"""


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("all", ["one", "two", "one", "two", "after"]),
        (r"A\.benchmark_two", ["two", "after"]),
        (r"__main__\.B", ["one", "two", "after"]),
        ("none", ["after"]),
    ],
)
def test_main_runs_the_benchmarks_that_match(
    pattern: str, expected: list[str], tmp_path: Path
) -> None:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    ended = run_python(path, f"--benchmarks={pattern}")
    assert ended.stdout.split() == expected
    assert ("no benchmark matches none" in ended.stderr) == (pattern == "none")


def test_main_refuses_what_is_no_regular_expression() -> None:
    with pytest.raises(ArgumentTypeError, match=r"--benchmarks=\( is no regular expression"):
        hr.test.main(["program", "--benchmarks=("])
