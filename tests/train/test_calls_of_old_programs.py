"""Calls that few programs make, with what TensorFlow 1.15 makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import GraphError
from tests.steps import run_ready

pytestmark = pytest.mark.needs("autodiff", "backend-cpu", "train")


@pytest.fixture(autouse=True, params=["plan", "plain"])
def _executor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("HEADRACE_EXECUTOR", request.param)
    with hr.Graph().as_default():
        yield


class TestLossesThatAreFunctions:
    def test_the_function_is_called_once_and_its_value_is_less(self) -> None:
        v = hr.get_variable("v", initializer=3.0)
        calls = []

        def loss() -> Any:
            calls.append(1)
            return v * v

        train = hr.train.GradientDescentOptimizer(0.25).minimize(loss)
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            session.run(train)
            assert session.run(v) == 1.5
        assert len(calls) == 1

    def test_other_variables_stay(self) -> None:
        v, w = (hr.get_variable(name, initializer=3.0) for name in "vw")
        train = hr.train.GradientDescentOptimizer(0.5).minimize(lambda: v * v + w, var_list=[w])
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            session.run(train)
            assert session.run([v, w]) == [3.0, 2.5]

    def test_gradients_of_a_function(self) -> None:
        v = hr.get_variable("v", initializer=2.0)
        ((gradient, of),) = hr.train.AdamOptimizer().compute_gradients(lambda: v**3)
        assert of is v
        assert run_ready(gradient) == 12.0


PRINTS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "behind a text": (
        lambda x: ["s:", x],
        "s: 'SparseTensor(indices=[[0 1]\n [2 0]], values=[1 2], shape=[3 2])'\n",
    ),
    "in a dict": (
        lambda x: [{"a": x}],
        "{'a': 'SparseTensor(indices=[[0 1]\n [2 0]], values=[1 2], shape=[3 2])'}\n",
    ),
    "of strings": (
        lambda x: [hr.SparseTensor([[0]], ["q"], [2])],
        "'SparseTensor(indices=[[0]], values=[\"q\"], shape=[2])'\n",
    ),
}


class TestPrintedSparseTensors:
    @pytest.mark.parametrize("case", PRINTS)
    def test_print_shows_its_parts(self, case: str, tmp_path: Path) -> None:
        what, expected = PRINTS[case]
        x = hr.SparseTensor([[0, 1], [2, 0]], [1.0, 2.0], [3, 2])
        run_ready(hr.print(*what(x), output_stream=f"file://{tmp_path / 'out'}"))
        assert (tmp_path / "out").read_text() == expected

    def test_the_older_print_takes_none(self) -> None:
        with pytest.raises(TypeError, match="is sparse where a dense tensor is expected"):
            hr.Print(hr.SparseTensor([[0]], [1.0], [2]), [])


SPEC = hr.TensorSpec([None, 3], hr.float32, "x")
SPECS: dict[str, tuple[Callable[[], Any], Any]] = {
    "shape": (lambda: SPEC.shape.as_list(), [None, 3]),
    "dtype": (lambda: SPEC.dtype, hr.float32),
    "name": (lambda: SPEC.name, "x"),
    "no name": (lambda: hr.TensorSpec([2]).name, None),
    "default dtype": (lambda: hr.TensorSpec([2]).dtype, hr.float32),
    "of a tensor": (lambda: hr.TensorSpec.from_tensor(hr.zeros([2], name="z")).name, "z"),
    "under a name": (lambda: hr.TensorSpec.from_tensor(hr.zeros([2]), "n").name, "n"),
    "equal": (lambda: hr.TensorSpec([None, 3], hr.float32, "x") == SPEC, True),
    "another name": (lambda: hr.TensorSpec([None, 3], hr.float32, "y") == SPEC, False),
    "another shape": (lambda: hr.TensorSpec([2, 3], hr.float32, "x") == SPEC, False),
    "fits": (lambda: SPEC.is_compatible_with(hr.zeros([2, 3])), True),
    "another size": (lambda: SPEC.is_compatible_with(hr.zeros([2, 4])), False),
    "another type": (lambda: SPEC.is_compatible_with(hr.zeros([2, 3], hr.int32)), False),
}


@pytest.mark.parametrize("case", SPECS)
def test_specs_of_tensors(case: str) -> None:
    made, expected = SPECS[case]
    assert made() == expected


class TestScopesOfGraphs:
    def test_methods_of_a_graph_are_those_of_the_module(self) -> None:
        graph = hr.get_default_graph()
        with graph.device("/cpu:0"), graph.name_scope("a"):
            first = hr.no_op(name="first")
            with graph.control_dependencies([first]):
                x = hr.constant(1.0, name="x")
        assert (x.name, first.name) == ("a/x:0", "a/first")
        assert x.op.device.lower() == "/device:cpu:0"
        assert list(x.op.control_inputs) == [first]

    def test_a_scope_of_none_leaves_all(self) -> None:
        graph = hr.get_default_graph()
        with graph.name_scope("a"), graph.name_scope(None):
            assert hr.constant(1.0, name="x").name == "x:0"

    def test_dependencies_of_none_leave_all(self) -> None:
        graph = hr.get_default_graph()
        with graph.control_dependencies([hr.no_op()]), graph.control_dependencies(None):
            assert not hr.constant(1.0).op.control_inputs

    def test_what_can_be_fed_and_fetched(self) -> None:
        graph = hr.get_default_graph()
        x = hr.constant(1.0)
        assert graph.is_feedable(x)
        assert graph.is_fetchable(x.op)
        graph.prevent_feeding(x)
        graph.prevent_fetching(x.op)
        assert not graph.is_feedable(x)
        assert not graph.is_fetchable(x.op)

    def test_a_scope_that_is_no_name(self) -> None:
        with pytest.raises(GraphError, match="got 'a b'"):  # noqa: SIM117
            with hr.get_default_graph().name_scope("a b"):
                pass
