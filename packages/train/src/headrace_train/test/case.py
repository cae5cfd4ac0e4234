"""A test case with sessions, and assertions about arrays and tensors."""

from __future__ import annotations

import random
import re
import tempfile
import threading
import unittest
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import AttributeValueError, OpError, shown, told
from headrace.extend import DeviceName, Tensor
from headrace.extend.arguments import items, mapping, text
from headrace.extend.ops import as_dtype
from headrace_train.test.assertions import MoreAssertions
from headrace_train.test.comparisons import difference, difference_in_value
from headrace_train.test.environment import get_temp_dir, gpu_device_name
from headrace_train.test.rows import RAGGED, difference_in_rows

# The seed that every test starts with, TensorFlow's.
_SEED = 87654321


class TestCase(MoreAssertions):
    """A ``unittest.TestCase`` for graphs.

    Each test starts with an empty default graph and the same seeds. Wherever an assertion takes an
    array it takes a tensor, too, which is run in the default session, or in that of the test::

        class SquareTest(hr.test.TestCase):
            def test_square(self):
                with self.session():
                    x = hr.square([2, 3])
                    self.assertAllEqual(x, [4, 9])

        if __name__ == "__main__":
            hr.test.main()
    """

    # Differences of texts are shown up to this length.
    maxDiff = 80 * 20

    def __init__(self, methodName: str = "runTest") -> None:  # noqa: N803 - unittest's name
        """Take the name of the method that is the test; ``runTest`` need not be there."""
        method = text(methodName, "methodName")
        # Loaders of tests make an instance with that name to look at, as unittest allows.
        if method != "runTest" and not callable(getattr(self, method, None)):
            raise AttributeValueError(
                f"{type(self).__name__} has no test {shown(methodName)}; give the name of a method"
            )
        super().__init__(methodName)
        self._threads: list[CheckedThread] = []
        self._folder: str | None = None
        self._cached: Any = None
        self._cached_with: tuple[Any, Any, bool] = (None, None, False)

    def setUp(self) -> None:
        """Start with an empty default graph and the same seeds."""
        super().setUp()
        if self.id().endswith(".test_session"):
            self.skipTest("a method that loaders of tests take for one")
        self._close_cached()
        random.seed(_SEED)
        # Programs under test may draw from NumPy's old generator.
        np.random.seed(_SEED)  # noqa: NPY002
        if hr.get_default_graph().entered:
            # A test that runs inside of a graph of somebody else's.
            own = hr.Graph().as_default()
            own.__enter__()
            self.addCleanup(own.__exit__, None, None, None)
        else:
            hr.reset_default_graph()
        hr.set_random_seed(_SEED)

    def tearDown(self) -> None:
        """Close the session of the test; fail if threads of it still run."""
        for thread in self._threads:
            thread.check_termination()
        self._close_cached()
        super().tearDown()

    def _close_cached(self) -> None:
        if self._cached is not None:
            self._cached.close()
            self._cached = None

    # -- sessions

    @contextmanager
    def session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Any]:
        """Yield a new session, which is the default one in the block, and closed after it.

        Args:
            graph: The graph to run; the default one if None.
            config: The session's settings.
            use_gpu: Whether operations may be placed on a GPU; otherwise all are on the CPU.
            force_gpu: Whether they must.
        """
        with (
            hr.Session(graph=graph, config=config) as session,
            _placed(session, use_gpu, force_gpu),
        ):
            yield session

    @contextmanager
    def cached_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Any]:
        """Yield the session of the test, which is the same in all blocks of it.

        Args:
            graph: As for ``session``, and the same each time; the others likewise.
            config: The session's settings.
            use_gpu: Whether operations may be placed on a GPU.
            force_gpu: Whether they must.

        Raises:
            AttributeValueError: if another graph, config or ``force_gpu`` is asked for than before.
        """
        asked = (graph, config, force_gpu)
        if self._cached is not None:
            for name, new, old in zip(
                ("graph", "config", "force_gpu"), asked, self._cached_with, strict=True
            ):
                if new is not old:
                    raise AttributeValueError(
                        f"the session of this test was made with another {name}; use "
                        "self.session() for a new one"
                    )
        session = self._session_of_the_test(asked)
        with session.graph.as_default(), session.as_default(), _placed(session, use_gpu, force_gpu):
            yield session

    @contextmanager
    def test_session(
        self, graph: Any = None, config: Any = None, use_gpu: bool = False, force_gpu: bool = False
    ) -> Iterator[Any]:
        """Yield the session of the test, or with a graph a new one; the old way to ask for both.

        Args:
            graph: The graph to run.
            config: The session's settings.
            use_gpu: Whether operations may be placed on a GPU.
            force_gpu: Whether they must.
        """
        if graph is not None:
            with self.session(graph, config, use_gpu, force_gpu) as session:
                yield session
            return
        session = self._session_of_the_test((None, config, force_gpu))
        with session.graph.as_default(), session.as_default(), _placed(session, use_gpu, force_gpu):
            yield session

    def _session_of_the_test(self, asked: tuple[Any, Any, bool]) -> Any:
        if self._cached is None:
            self._cached = hr.Session(graph=asked[0], config=asked[1])
            self._cached_with = asked
        return self._cached

    def evaluate(self, tensors: Any) -> Any:
        """Return the values of tensors, in the default session or in that of the test.

        Args:
            tensors: A tensor, or a structure of them.
        """
        session = hr.get_default_session()
        if session is not None:
            return session.run(tensors)
        with self.test_session() as own:
            return own.run(tensors)

    def get_temp_dir(self) -> str:
        """Return a folder for files of this test."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(dir=get_temp_dir())
        return self._folder

    def checkedThread(
        self, target: Callable[..., Any], args: Any = None, kwargs: Any = None
    ) -> CheckedThread:
        """Return a thread, to be started and joined, whose errors fail the test.

        Args:
            target: What it runs.
            args: Arguments.
            kwargs: Arguments by name.
        """
        thread = CheckedThread(
            self, target, tuple(items(args or (), "args")), mapping(kwargs, "kwargs")
        )
        self._threads.append(thread)
        return thread

    # -- assertions about arrays

    def _array(self, value: Any) -> np.ndarray:
        found = self.evaluate(value) if isinstance(value, Tensor | hr.Variable) else value
        return found if isinstance(found, np.ndarray) else np.array(found)

    def _fail(self, text: str | None, msg: Any) -> None:
        if text is not None:
            raise self.failureException(text if not msg else f"{text}\n{told(msg)}")

    def assertAllClose(
        self, a: Any, b: Any, rtol: float = 1e-6, atol: float = 1e-6, msg: Any = None
    ) -> None:
        """Fail unless ``|a - b| <= atol + rtol * |b|`` for all elements; NaN is close to NaN.

        Args:
            a: An array or tensor, or lists, tuples and dicts of them; a ragged tensor, or the value
                of one.
            b: Likewise; nested lists of rows where the other is ragged.
            rtol: The relative tolerance.
            atol: The absolute tolerance.
            msg: Added to the message.

        Raises:
            ValueError: if the structures cannot be compared.
        """
        if isinstance(a, RAGGED) or isinstance(b, RAGGED):
            found = difference_in_rows(a, b, self.evaluate, (rtol, atol))
        else:
            found = difference_in_value(a, b, rtol, atol, self._array)
        self._fail(found, msg)

    def assertAllCloseAccordingToType(
        self,
        a: Any,
        b: Any,
        rtol: float = 1e-6,
        atol: float = 1e-6,
        float_rtol: float = 1e-6,
        float_atol: float = 1e-6,
        half_rtol: float = 1e-3,
        half_atol: float = 1e-3,
        bfloat16_rtol: float = 1e-2,
        bfloat16_atol: float = 1e-2,
        msg: Any = None,
    ) -> None:
        """Fail unless all elements are close, with tolerances that depend on the dtypes.

        Args:
            a: An array or tensor.
            b: Likewise.
            rtol: The relative tolerance for all dtypes.
            atol: The absolute tolerance for all dtypes.
            float_rtol: For float32 and complex64 where it is larger.
            float_atol: Likewise.
            half_rtol: For float16 where it is larger.
            half_atol: Likewise.
            bfloat16_rtol: For bfloat16 where it is larger.
            bfloat16_atol: Likewise.
            msg: Added to the message.
        """
        a, b = self._array(a), self._array(b)
        names = {str(a.dtype), str(b.dtype)}
        for kinds, relative, absolute in (
            ({"float32", "complex64"}, float_rtol, float_atol),
            ({"float16"}, half_rtol, half_atol),
            ({"bfloat16"}, bfloat16_rtol, bfloat16_atol),
        ):
            if names & kinds:
                rtol, atol = max(rtol, relative), max(atol, absolute)
        self.assertAllClose(a, b, rtol, atol, msg)

    def assertNotAllClose(self, a: Any, b: Any, **kwargs: Any) -> None:
        """Fail if ``assertAllClose`` would not, with the same arguments."""
        try:
            self.assertAllClose(a, b, **kwargs)
        except AssertionError:
            return
        raise self.failureException("the two values are close at all elements")

    def assertAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Fail unless all elements and the shapes are equal; NaN equals NaN.

        Args:
            a: An array or tensor; a ragged tensor, or the value of one. Rows of NaN equal nothing.
            b: Likewise; nested lists of rows where the other is ragged.
            msg: Added to the message.
        """
        if isinstance(a, RAGGED) or isinstance(b, RAGGED):
            self._fail(difference_in_rows(a, b, self.evaluate), msg)
        else:
            self._fail(difference(self._array(a), self._array(b)), msg)

    def assertNotAllEqual(self, a: Any, b: Any, msg: Any = None) -> None:
        """Fail if ``assertAllEqual`` would not, with the same arguments."""
        try:
            self.assertAllEqual(a, b, msg)
        except AssertionError:
            return
        raise self.failureException("the two values are equal at all elements")

    def assertNear(self, f1: float, f2: float, err: float, msg: Any = None) -> None:
        """Fail unless ``|f1 - f2| <= err``."""
        near = f1 == f2 or abs(f1 - f2) <= err
        self._fail(None if near else f"{f1} is not {f2} +/- {err}", msg)

    def assertArrayNear(
        self, farray1: Sequence[float], farray2: Sequence[float], err: float, msg: Any = None
    ) -> None:
        """Fail unless two lists of numbers are as long, and each pair within ``err``."""
        self.assertEqual(len(farray1), len(farray2), msg=msg)
        for f1, f2 in zip(farray1, farray2, strict=True):
            self.assertNear(float(f1), float(f2), err, msg=msg)

    def assertNDArrayNear(self, ndarray1: Any, ndarray2: Any, err: float, msg: Any = None) -> None:
        """Fail unless the norm of the difference is less than ``err``."""
        norm = float(np.linalg.norm(self._array(ndarray1) - self._array(ndarray2)))
        self._fail(
            None if norm < err else f"the norm of the difference is {norm}, not < {err}", msg
        )

    def assertAllGreater(self, a: Any, comparison_target: Any) -> None:
        """Fail unless all elements are greater."""
        self.assertGreater(np.min(self._array(a)), comparison_target)

    def assertAllLess(self, a: Any, comparison_target: Any) -> None:
        """Fail unless all elements are less."""
        self.assertLess(np.max(self._array(a)), comparison_target)

    def assertAllGreaterEqual(self, a: Any, comparison_target: Any) -> None:
        """Fail unless all elements are greater or equal."""
        self.assertGreaterEqual(np.min(self._array(a)), comparison_target)

    def assertAllLessEqual(self, a: Any, comparison_target: Any) -> None:
        """Fail unless all elements are less or equal."""
        self.assertLessEqual(np.max(self._array(a)), comparison_target)

    def assertAllInRange(
        self,
        target: Any,
        lower_bound: Any,
        upper_bound: Any,
        open_lower_bound: bool = False,
        open_upper_bound: bool = False,
    ) -> None:
        """Fail unless all elements lie between bounds.

        Args:
            target: An array or tensor of floats or integers.
            lower_bound: The lower bound.
            upper_bound: The upper bound.
            open_lower_bound: Whether the lower bound itself is out of range.
            open_upper_bound: The same of the upper one.
        """
        array = self._array(target)
        if array.dtype.kind not in "fiu":
            raise self.failureException(f"{array.dtype} has no order of numbers")
        low = array > lower_bound if open_lower_bound else array >= lower_bound
        high = array < upper_bound if open_upper_bound else array <= upper_bound
        wrong = np.argwhere(~(low & high))
        if len(wrong):
            text = f"{'(' if open_lower_bound else '['}{lower_bound}, {upper_bound}"
            place = tuple(wrong[0])
            raise self.failureException(
                f"{len(wrong)} of {array.size} elements are outside of {text}"
                f"{')' if open_upper_bound else ']'}, the first at {[int(i) for i in place]}: "
                f"{array[place]!r}"
            )

    def assertAllInSet(self, target: Any, expected_set: Any) -> None:
        """Fail unless all elements are in a set."""
        others = np.setdiff1d(self._array(target).reshape(-1), list(expected_set))
        self._fail(None if not others.size else f"not in {expected_set}: {others.tolist()}", None)

    def assertDTypeEqual(self, target: Any, expected_dtype: Any) -> None:
        """Fail unless an array or tensor has a dtype."""
        found, wanted = self._array(target).dtype, as_dtype(expected_dtype)
        self.assertEqual(as_dtype(found), wanted)

    def assertShapeEqual(self, np_array: Any, tf_tensor: Any, msg: Any = None) -> None:
        """Fail unless an array has the static shape of a tensor."""
        if not isinstance(np_array, np.ndarray | np.generic):
            raise TypeError(f"np_array must be an array, got {type(np_array).__name__}")
        if not isinstance(tf_tensor, Tensor):
            raise TypeError(f"tf_tensor must be a tensor, got {type(tf_tensor).__name__}")
        self.assertAllEqual(np_array.shape, tf_tensor.shape.as_list(), msg)

    def assertDeviceEqual(self, device1: Any, device2: Any, msg: Any = None) -> None:
        """Fail unless two names stand for one device."""
        one, two = DeviceName.parse(device1 or ""), DeviceName.parse(device2 or "")
        self._fail(None if one == two else f"devices {one} and {two} are not equal", msg)

    # -- other assertions

    def assertLen(self, container: Any, expected_len: int, msg: Any = None) -> None:
        """Fail unless a container has so many items."""
        found = len(container)
        same = found == expected_len
        self._fail(
            None if same else f"{shown(container, 200)} has {found} items, not {expected_len}", msg
        )

    def assertEmpty(self, container: Any, msg: Any = None) -> None:
        """Fail unless a container has no items."""
        self.assertLen(container, 0, msg)

    def assertNotEmpty(self, container: Any, msg: Any = None) -> None:
        """Fail if a container has no items."""
        self._fail(None if len(container) else f"{shown(container)} is empty", msg)

    def assertBetween(self, value: Any, minv: Any, maxv: Any, msg: Any = None) -> None:
        """Fail unless ``minv <= value <= maxv``."""
        inside = minv <= value <= maxv
        self._fail(
            None if inside else f"{shown(value)} is not between {shown(minv)} and {shown(maxv)}",
            msg,
        )

    @contextmanager
    def assertRaisesWithPredicateMatch(
        self, exception_type: type[BaseException], expected_err_re_or_predicate: Any
    ) -> Iterator[None]:
        """Fail unless the block raises an error that a pattern or function recognizes.

        Args:
            exception_type: The kind of the error.
            expected_err_re_or_predicate: A regular expression to find in the message and the names
                of the operation that failed, or a function of the error.
        """
        wanted = expected_err_re_or_predicate
        try:
            yield
        except Exception as error:
            op = getattr(error, "op", None)
            text = str(error) if op is None else f"{error}\nCaused by: {op.name}"
            known = wanted(error) if callable(wanted) else re.search(wanted, text)
            if isinstance(error, exception_type) and known:
                return
            raise self.failureException(
                f"expected {exception_type.__name__} with {wanted!r}, got "
                f"{type(error).__name__}: {error}"
            ) from error
        raise self.failureException(f"{exception_type.__name__} not raised")

    def assertRaisesOpError(
        self, expected_err_re_or_predicate: Any
    ) -> AbstractContextManager[None]:
        """Fail unless the block raises an ``OpError`` that a pattern or function recognizes."""
        return self.assertRaisesWithPredicateMatch(OpError, expected_err_re_or_predicate)

    assertRaisesRegexp = unittest.TestCase.assertRaisesRegex
    assertItemsEqual = unittest.TestCase.assertCountEqual


class CheckedThread:
    """A thread of a test; joining it fails the test if it raised."""

    def __init__(
        self,
        case: unittest.TestCase,
        target: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        """Make the thread, without starting it."""
        self._case = case
        self._target, self._args, self._kwargs = target, args, kwargs
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._error: Exception | None = None
        self._joined = False

    def _run(self) -> None:
        try:
            self._target(*self._args, **self._kwargs)
        except Exception as error:
            self._error = error

    def start(self) -> None:
        """Start it."""
        self._thread.start()

    def join(self) -> None:
        """Wait for its end; fail the test if it raised."""
        self._joined = True
        self._thread.join()
        if self._error is not None:
            self._case.fail(f"error in a thread: {type(self._error).__name__}: {self._error}")

    def is_alive(self) -> bool:
        """Return whether it runs."""
        return self._thread.is_alive()

    def check_termination(self) -> None:
        """Fail the test if the thread was not joined."""
        if not self._joined:
            self._case.fail("a thread of the test was not joined")


@contextmanager
def _placed(session: Any, use_gpu: bool, force_gpu: bool) -> Iterator[None]:
    if use_gpu and not force_gpu:
        yield
        return
    name = (gpu_device_name() or "/device:cuda:0") if force_gpu else "/device:cpu:0"
    with session.graph.as_default(), hr.device(name):
        yield
