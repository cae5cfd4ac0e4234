"""``hr.test.TestCase``: its sessions, its assertions and what they say."""

from __future__ import annotations

import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError
from tests.children import run_python

pytestmark = pytest.mark.needs("backend-cpu")


@pytest.fixture
def case() -> Any:
    class Example(hr.test.TestCase):
        def runTest(self) -> None:
            """Nothing: the test calls methods itself."""

    made = Example()
    made.setUp()
    yield made
    made.tearDown()


def outcome(body: Callable[[Any], Any]) -> unittest.TestResult:
    """Run a function as the only test of a case."""

    class Example(hr.test.TestCase):
        def test_it(self) -> None:
            body(self)

    result = unittest.TestResult()
    Example("test_it").run(result)
    return result


def test_sessions_are_default_and_end(case: Any) -> None:
    with case.session() as session:
        x = hr.square([2.0, 3.0])
        assert hr.get_default_session() is session
        assert session.run(x).tolist() == [4.0, 9.0]
        assert case.evaluate({"x": x})["x"].tolist() == [4.0, 9.0]
    assert session.closed
    with case.cached_session() as first:
        pass
    with case.cached_session() as second, case.test_session() as third:
        assert first is second is third
        assert not first.closed
    other = hr.Graph()
    with pytest.raises(ValueError, match="made with another graph"), case.cached_session(other):
        pass
    with case.test_session(other) as fourth:
        assert fourth.graph is other
    assert case.evaluate(x).tolist() == [4.0, 9.0]
    case.tearDown()
    assert first.closed


def test_operations_are_on_the_cpu_unless_a_gpu_may_be_used(case: Any) -> None:
    with case.session():
        assert hr.constant(1.0).op.device.endswith("cpu:0")
    with case.session(use_gpu=True):
        assert hr.constant(1.0).op.device == ""


def test_each_test_starts_with_an_empty_graph_and_one_seed() -> None:
    drawn = []

    def body(case: Any) -> None:
        assert len(hr.get_default_graph()) == 0
        drawn.append((case.evaluate(hr.random_uniform([])), np.random.rand()))  # noqa: NPY002

    assert outcome(body).wasSuccessful()
    assert outcome(body).wasSuccessful()
    assert drawn[0] == drawn[1]


T = Callable[[Any], Any]


def ragged(rows: Any = ((1.0, 2.0), (3.0,))) -> Any:
    return hr.ragged.constant(rows)


PASSES: dict[str, T] = {
    "close": lambda c: c.assertAllClose([1.0, np.nan], [1.0 + 1e-7, np.nan]),
    "close tensors": lambda c: c.assertAllClose(hr.square([1.0, 2.0]), hr.constant([1.0, 4.0])),
    "close structures": lambda c: c.assertAllClose(
        {"a": [1.0, (2.0, [3.0, 4.0])], "b": 5}, {"a": [1.0, (2.0, [3.0, 4.0])], "b": 5}
    ),
    "close by type": lambda c: c.assertAllCloseAccordingToType(
        np.float16([1.0]), np.float16([1.0005])
    ),
    "bfloat16": lambda c: c.assertAllCloseAccordingToType(
        hr.cast([1.0], hr.bfloat16), np.float32([1.005])
    ),
    "not close": lambda c: c.assertNotAllClose([1.0], [1.1]),
    "equal": lambda c: c.assertAllEqual(hr.constant([[1, 2]]), [[1, 2]]),
    "equal nan": lambda c: c.assertAllEqual([np.nan, 1.0], np.array([np.nan, 1.0])),
    "equal strings": lambda c: c.assertAllEqual(hr.constant(["a", "b"]), [b"a", b"b"]),
    "not equal": lambda c: c.assertNotAllEqual([1, 2], [1, 3]),
    "equal rows": lambda c: c.assertAllEqual(ragged(), [[1.0, 2.0], [3.0]]),
    "equal rows of an array": lambda c: c.assertAllEqual(
        [np.array([1, 2]), np.array([3])], ragged()
    ),
    "equal ragged tensors": lambda c: c.assertAllEqual(ragged(), c.evaluate(ragged())),
    "equal rows of strings": lambda c: c.assertAllEqual(
        hr.ragged.constant([["a", "\0"], []]), [[b"a", b"\0"], []]
    ),
    "not equal ragged tensors": lambda c: c.assertNotAllEqual(ragged(), ragged() + 1.0),
    "close rows": lambda c: c.assertAllClose(ragged(), [[1.0, 2.0 + 1e-7], [3.0]]),
    "close rows of nan": lambda c: c.assertAllClose([[np.nan], []], ragged([[np.nan], []])),
    "near": lambda c: c.assertNear(1.0, 1.1, 0.2),
    "near infinity": lambda c: c.assertNear(np.inf, np.inf, 0.0),
    "array near": lambda c: c.assertArrayNear([1.0, 2.0], [1.05, 1.95], 0.1),
    "norm": lambda c: c.assertNDArrayNear(np.ones(4), np.ones(4) * 1.01, 0.05),
    "greater": lambda c: c.assertAllGreater([2, 3], 1),
    "less": lambda c: c.assertAllLess(hr.constant([2, 3]), 4),
    "greater equal": lambda c: c.assertAllGreaterEqual([2, 3], 2),
    "less equal": lambda c: c.assertAllLessEqual([2, 3], 3),
    "range": lambda c: c.assertAllInRange([0.0, 1.0], 0, 1),
    "set": lambda c: c.assertAllInSet([[1, 2], [2, 1]], {1, 2, 3}),
    "dtype": lambda c: c.assertDTypeEqual(hr.constant(1.0), np.float32),
    "shape": lambda c: c.assertShapeEqual(np.ones([2, 3]), hr.zeros([2, 3])),
    "device": lambda c: c.assertDeviceEqual("/job:a/device:cpu:0", "/job:a/cpu:0"),
    "starts": lambda c: c.assertStartsWith("headrace", "head"),
    "len": lambda c: c.assertLen([1, 2], 2),
    "empty": lambda c: (c.assertEmpty([]), c.assertNotEmpty("x")),
    "between": lambda c: c.assertBetween(2, 1, 3),
    "items": lambda c: c.assertItemsEqual([2, 1], [1, 2]),
}


@pytest.mark.parametrize("name", list(PASSES))
def test_an_assertion_holds(name: str) -> None:
    result = outcome(PASSES[name])
    assert result.wasSuccessful(), result.failures + result.errors


FAILS: dict[str, tuple[T, str]] = {
    "close": (
        lambda c: c.assertAllClose([1.0, 2.0, 3.0], [1.0, 2.5, 3.0], msg="after training"),
        "1 of 3 elements differ, dtypes float64 and float64\n  at [1]: np.float64(2.0)",
    ),
    "close message": (lambda c: c.assertAllClose([1.0], [2.0], msg="why"), "why"),
    "close place": (
        lambda c: c.assertAllClose({"a": [1, [2.0, 3.0]]}, {"a": [1, [2.0, 3.5]]}),
        "a[a][1] and b[a][1] are not within 1e-06 + 1e-06 * |b|",
    ),
    "close keys": (lambda c: c.assertAllClose({"a": 1}, {"b": 1}), "has the keys ['a'], b has"),
    "close shape": (lambda c: c.assertAllClose([1.0], [[1.0]]), "a has shape [1], b has [1, 1]"),
    "close many": (lambda c: c.assertAllClose(np.zeros(9), np.ones(9)), "and 4 more"),
    "not close": (lambda c: c.assertNotAllClose([1.0], [1.0]), "close at all elements"),
    "equal": (lambda c: c.assertAllEqual([1, 2], [1, 3]), "at [1]: np.int64(2) and np.int64(3)"),
    "equal shape": (lambda c: c.assertAllEqual([1], [1, 2]), "shapes [1] and [2] differ"),
    "not equal": (lambda c: c.assertNotAllEqual([1], [1]), "equal at all elements"),
    "equal rows": (
        lambda c: c.assertAllEqual(ragged(), [[1.0, 2.0], [4.0]]),
        "a[1][0] is 3.0, b[1][0] is 4.0",
    ),
    "equal lengths of rows": (
        lambda c: c.assertAllEqual([[1.0], [3.0]], ragged()),
        "a[0] has 1 items, b[0] has 2",
    ),
    "equal depths of rows": (lambda c: c.assertAllEqual(ragged(), 5), "b is 5"),
    "equal rows of nan": (
        lambda c: c.assertAllEqual(ragged([[np.nan]]), ragged([[np.nan]])),
        "a[0][0] is nan, b[0][0] is nan",
    ),
    "equal ragged ranks": (
        lambda c: c.assertAllEqual(ragged([[1.0, 2.0]]), np.array([[1.0, 2.0]])),
        "ragged ranks 1 and 0 differ",
    ),
    "close rows": (
        lambda c: c.assertAllClose(ragged(), [[1.0, 2.0], [3.1]], msg="after all"),
        "a[1][0] is 3.0, b[1][0] is 3.1\nafter all",
    ),
    "near": (lambda c: c.assertNear(1.0, 2.0, 0.5), "1.0 is not 2.0 +/- 0.5"),
    "array near": (lambda c: c.assertArrayNear([1.0], [1.0, 2.0], 0.5), "1 != 2"),
    "norm": (lambda c: c.assertNDArrayNear(np.ones(4), np.zeros(4), 1), "is 2.0, not < 1"),
    "greater": (lambda c: c.assertAllGreater([1, 3], 1), "not greater than"),
    "range": (
        lambda c: c.assertAllInRange([0.0, 1.0], 0, 1, open_upper_bound=True),
        "1 of 2 elements are outside of [0, 1), the first at [1]",
    ),
    "range nan": (lambda c: c.assertAllInRange([np.nan], 0, 1), "1 of 1 elements are outside"),
    "range kind": (lambda c: c.assertAllInRange(["a"], 0, 1), "has no order of numbers"),
    "set": (lambda c: c.assertAllInSet([1, 4], {1, 2}), "not in {1, 2}: [4]"),
    "dtype": (lambda c: c.assertDTypeEqual(hr.constant(1.0), np.float64), "float32"),
    "shape": (lambda c: c.assertShapeEqual(np.ones([2]), hr.zeros([3])), "at [0]"),
    "device": (lambda c: c.assertDeviceEqual("/cpu:0", "/cpu:1"), "are not equal"),
    "starts": (lambda c: c.assertStartsWith("headrace", "tail"), "does not start with 'tail'"),
    "len": (lambda c: c.assertLen([1], 2), "has 1 items, not 2"),
    "empty": (lambda c: c.assertEmpty([1]), "has 1 items, not 0"),
    "not empty": (lambda c: c.assertNotEmpty([]), "is empty"),
    "between": (lambda c: c.assertBetween(4, 1, 3), "4 is not between 1 and 3"),
}


@pytest.mark.parametrize("name", list(FAILS))
def test_a_failure_says_what_differs(name: str) -> None:
    call, text = FAILS[name]
    result = outcome(call)
    assert len(result.failures) == 1, result.errors
    assert text in result.failures[0][1]


def test_what_cannot_be_compared_is_an_error(case: Any) -> None:
    with pytest.raises(ValueError, match="can't compare a dict"):
        case.assertAllClose({"a": 1}, [1])
    with pytest.raises(ValueError, match="has 2 items, b has 1"):
        case.assertAllClose([{"a": 1}, [1, 2]], [{"a": 1}])
    with pytest.raises(TypeError, match="np_array must be an array"):
        case.assertShapeEqual([1], hr.zeros([1]))
    with pytest.raises(TypeError, match="tf_tensor must be a tensor"):
        case.assertShapeEqual(np.ones(1), [1])


def test_errors_of_steps_are_recognized(case: Any) -> None:
    x = hr.placeholder(hr.float32, [2], name="given")
    checked = hr.check_numerics(x, "broken", name="checked")
    with case.session() as session:
        with case.assertRaisesOpError("broken"):
            session.run(checked, {x: [1.0, np.nan]})
        with case.assertRaisesWithPredicateMatch(ValueError, lambda e: "no" in str(e)):
            raise ValueError("no")
        with (
            pytest.raises(AssertionError, match="OpError not raised"),
            case.assertRaisesOpError("anything"),
        ):
            session.run(checked, {x: [1.0, 2.0]})
        with (
            pytest.raises(AssertionError, match="expected OpError with 'other', got"),
            case.assertRaisesOpError("other"),
        ):
            session.run(checked, {x: [1.0, np.nan]})


def test_threads_that_fail_or_are_forgotten_fail_the_test() -> None:
    def fine(case: Any) -> None:
        seen: list[int] = []
        thread = case.checkedThread(seen.append, args=[3])
        thread.start()
        thread.join()
        assert seen == [3]
        assert not thread.is_alive()

    def raises(case: Any) -> None:
        thread = case.checkedThread(target=lambda: 1 / 0)
        thread.start()
        thread.join()

    assert outcome(fine).wasSuccessful()
    assert "error in a thread: ZeroDivisionError" in outcome(raises).failures[0][1]
    forgotten = outcome(lambda case: case.checkedThread(print).start())
    assert "was not joined" in forgotten.failures[0][1]


def test_folders_of_tests_are_there_and_differ(case: Any) -> None:
    assert Path(case.get_temp_dir()).is_dir()
    assert case.get_temp_dir() == case.get_temp_dir()
    assert Path(case.get_temp_dir()).parent == Path(hr.test.get_temp_dir())


def test_what_the_machine_has() -> None:
    name = hr.test.gpu_device_name()
    assert hr.test.is_gpu_available() == hr.test.is_gpu_available(cuda_only=True) == bool(name)
    assert name in ("", "/device:cuda:0")
    assert hr.test.is_built_with_gpu_support() == hr.test.is_built_with_cuda()
    assert not hr.test.is_built_with_rocm()
    if not name:
        assert not hr.test.is_gpu_available(min_cuda_compute_capability=(3, 5))


class Machine:
    """A plugin host with GPUs."""

    def __init__(self, *capabilities: str) -> None:
        self.capabilities = capabilities
        self.devices = {"cuda": "the kind"}

    def count_devices(self, kind: str) -> tuple[int, str]:
        return len(self.capabilities), ""

    def open_device(self, name: Any) -> Machine:
        return Machine(self.capabilities[name.index])

    def describe(self) -> dict[str, str]:
        return {"compute capability": self.capabilities[0]}


@pytest.mark.parametrize(
    ("gpus", "least", "expected"),
    [
        ([], None, False),
        (["7.0"], None, True),
        (["7.0"], (7, 0), True),
        (["7.0"], (7, 5), False),
        (["6.1", "10.0"], (9, 0), True),
    ],
)
def test_gpus_are_told_by_their_compute_capability(
    gpus: list[str], least: Any, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headrace_train.test import environment

    monkeypatch.setattr(environment, "host", lambda: Machine(*gpus))
    assert hr.test.is_gpu_available(False, least) is expected
    assert hr.test.gpu_device_name() == ("/device:cuda:0" if gpus else "")
    assert hr.test.is_built_with_cuda()


def test_main_runs_the_module(tmp_path: Path) -> None:
    script = tmp_path / "square.py"
    script.write_text(
        "import headrace as hr\n"
        "class SquareTest(hr.test.TestCase):\n"
        "    def test_square(self):\n"
        "        with self.session():\n"
        "            self.assertAllEqual(hr.square([2, 3]), [4, 9])\n"
        "    def test_wrong(self):\n"
        "        self.assertAllEqual(hr.square([2, 3]), [4, 8])\n"
        "hr.test.main()\n"
    )
    done = run_python(script, check=False)
    assert done.returncode == 1
    # The third is the method test_session, which loaders of tests take for one.
    assert "Ran 3 tests" in done.stderr
    assert "FAILED (failures=1, skipped=1)" in done.stderr
    assert "1 of 2 elements differ" in done.stderr


def test_instances_are_made_for_loaders_without_a_test() -> None:
    class Case(hr.test.TestCase):
        def test_nothing(self) -> None:
            pass

    # What pytest and unittest's loader make of a class to look at it.
    assert Case("runTest").id().endswith("Case.runTest")
    assert str(Case()) == str(Case("runTest"))
    with pytest.raises(AttributeValueError, match="Case has no test 'test_other'"):
        Case("test_other")
