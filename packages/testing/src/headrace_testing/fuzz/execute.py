"""Making one call, in two ways, and judging what comes of it."""

from __future__ import annotations

import dis
import traceback
import warnings
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np

import headrace as hr
from headrace import Config, Graph, IndexedSlices, Operation, Session, SparseTensor, Tensor
from headrace.errors import (
    ExecutionError,
    HeadraceError,
    NoKernelError,
    ResourceExhaustedError,
    shorten,
)
from headrace_testing.fuzz.arguments import Entrance, Given, flipped, mapped
from headrace_testing.fuzz.generate import Call
from headrace_testing.inputs import NDArray

# What may come of a call.
PASSED = ("right", "refused", "refused in the step", "no kernel", "out of memory")
FORBIDDEN = (
    "other exception",
    "unchecked",
    "unclear message",
    "huge allocation",
    "wrong spec",
    "results differ",
    "inputs changed",
    "crash",
    "hang",
)

# A step that asks for this much memory in its results may say that there is too little: kernels
# need up to sixteen times as much on their way to results of narrow dtypes.
LARGE_BYTES = 1 << 26

# As TensorFlow 1.15, these weigh and add up in float32, and convert the result.
_IN_FLOAT32 = ("hr.losses.", "hr.metrics.")

# The spacing of floats near 1, by the bytes that they have.
_EPS = {2: 2.0**-7, 4: 2.0**-23, 8: 2.0**-52}

# What kernels raise themselves, with messages of their own.
_OURS = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    NotImplementedError,
    RuntimeError,
    OSError,
)
# Families of ops that hand matrices to BLAS and LAPACK.
_LINEAR = ("linalg", "decompositions", "solving", "matrix_functions", "conv", "contraction")
# What sums over windows: which of its results a NaN or an infinity of its inputs makes NaN depends
# on the algorithm (decision 92).
_CONVOLUTIONS = frozenset(
    f"Conv{rank}{kind}" for rank in ("2D", "3D") for kind in ("", "BackpropInput", "BackpropFilter")
)
_UNCLEAR = (ValueError, IndexError, TypeError, OverflowError, UnicodeError)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a call.

    Attributes:
        kind: One of ``PASSED`` or ``FORBIDDEN``.
        text: What happened, for those that are forbidden.
    """

    kind: str
    text: str = ""

    @property
    def forbidden(self) -> bool:
        """Whether it must not happen."""
        return self.kind in FORBIDDEN


class _ForbiddenError(Exception):
    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.text)
        self.verdict = verdict


@dataclass(slots=True)
class _Run:
    """One way of making a call: results, or the error that refused it, and when."""

    results: list[NDArray] | None = None
    error: HeadraceError | None = None
    built: bool = False
    bytes: int = 0
    drawn: bool = False
    convolves: bool = False


def judge(call: Call) -> Verdict:
    """Make a call, with its constants and placeholders exchanged once more, and compare.

    The first way is optimized, the second is not.
    """
    try:
        first = _run(call, call.arguments, optimize=True)
        other = _run(call, flipped(call.arguments), optimize=False)
        for run in (first, other):
            if isinstance(run.error, ResourceExhaustedError) and not _asks_for_much(call):
                return Verdict("huge allocation", shorten([str(run.error)], 2))
        return _compared(call, first, other)
    except _ForbiddenError as error:
        return error.verdict


def _compared(call: Call, first: _Run, other: _Run) -> Verdict:
    for run in (first, other):
        if isinstance(run.error, ResourceExhaustedError):
            return Verdict("out of memory")
    if first.results is None or other.results is None:
        # One way may know more before the step than the other; in the step they know the same.
        for run, twin in ((first, other), (other, first)):
            if run.results is not None and twin.built and not _hides_shapes(call):
                text = f"one way yields results, the other fails: {twin.error}"
                return Verdict("results differ", shorten([text], 3))
        error = first.error or other.error
        if isinstance(error, NoKernelError):
            return Verdict("no kernel")
        return Verdict("refused in the step" if first.built else "refused")
    if first.drawn or other.drawn:
        return Verdict("right")
    spreads = first.convolves and other.convolves and _holds_non_finite(call)
    for i, (one, two) in enumerate(zip(first.results, other.results, strict=True)):
        if spreads:
            one, two = _without_nans(one, two)
        if not (_same(one, two) or (_rounds(call) and _close(one, two, _most_bytes(call)))):
            text = f"output {i} is {_brief(one)} one way and {_brief(two)} the other"
            return Verdict("results differ", text)
    return Verdict("right")


def _run(call: Call, arguments: dict[str, Any], *, optimize: bool) -> _Run:
    run = _Run()
    with Graph().as_default() as graph, warnings.catch_warnings():
        warnings.simplefilter("error")
        graph.seed = 7
        entrance = Entrance()
        try:
            # What the call is given must exist: constants of other dtypes may be refused here.
            given = {name: entrance.enter(value) for name, value in arguments.items()}
            tensors, ops = _outputs(_invoke(call, given))
            run.built = True
            run.bytes = _largest(graph)
            run.drawn = _draws(call, graph)
            run.convolves = any(o.type in _CONVOLUTIONS for o in graph.operations)
            results = _step(graph, tensors, ops, entrance, optimize)
        except HeadraceError as error:
            _check_cause(error)
            run.error = error
            return run
        except MemoryError as error:
            raise _ForbiddenError(Verdict("huge allocation", _where(error))) from error
        except Exception as error:
            raise _ForbiddenError(Verdict("other exception", _where(error))) from error
    for handed, kept in entrance.kept:
        if not _same(handed, kept):
            raise _ForbiddenError(Verdict("inputs changed", f"{_brief(kept)} to {_brief(handed)}"))
    for tensor, result in zip(tensors, results, strict=True):
        fits = tensor.shape.is_compatible_with(result.shape)
        if result.dtype != tensor.dtype.numpy or not fits:
            text = f"{tensor.op.type} declares {tensor.spec}, yields {_brief(result)}"
            raise _ForbiddenError(Verdict("wrong spec", text))
    run.results = results
    return run


def _asks_for_much(call: Call) -> bool:
    """Whether a call asks for large tensors: with all inputs known, their shapes are known."""
    known = mapped(lambda leaf: leaf.known() if isinstance(leaf, Given) else leaf, call.arguments)
    with Graph().as_default() as graph:
        entrance = Entrance()
        try:
            _invoke(call, {name: entrance.enter(value) for name, value in known.items()})
        except HeadraceError:
            # What else is wrong, a kernel must find before it takes memory. Of a function, another
            # node may be the one that finds it.
            return call.target.name.startswith("hr.") and _holds_large_number(call)
        return _largest(graph) >= LARGE_BYTES or _holds_large_number(call)


def _holds_non_finite(call: Call) -> bool:
    """Whether an array that a call is given has a NaN or an infinity."""
    found = False

    def look(leaf: Any) -> Any:
        nonlocal found
        if isinstance(leaf, Given) and leaf.array.dtype.kind not in "biuOSU":
            found = found or not bool(np.all(np.isfinite(leaf.array)))
        return leaf

    mapped(look, call.arguments)
    return found


def _without_nans(one: NDArray, two: NDArray) -> tuple[NDArray, NDArray]:
    """Return two arrays without the elements that are NaN in either."""
    if one.shape != two.shape or one.dtype != two.dtype or one.dtype.kind in "biuO":
        return one, two
    either = np.isnan(one) | np.isnan(two)
    return np.where(either, one.dtype.type(0), one), np.where(either, two.dtype.type(0), two)


def _holds_large_number(call: Call) -> bool:
    """Whether an integer of a call may be a count of results that takes so much memory."""
    found = False

    def look(leaf: Any) -> Any:
        nonlocal found
        value = leaf.array if isinstance(leaf, Given) else leaf
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.size:
            found = found or int(value.max()) * 8 >= LARGE_BYTES
        elif isinstance(value, int):
            found = found or value * 8 >= LARGE_BYTES
        return leaf

    mapped(look, call.arguments)
    return found


def _hides_shapes(call: Call) -> bool:
    """Whether shapes are unknown before the step: what then fails in it may work where known."""
    hidden: list[Given] = []

    def look(leaf: Any) -> Any:
        if isinstance(leaf, Given) and leaf.entry in ("partly", "unknown"):
            hidden.append(leaf)
        return leaf

    mapped(look, call.arguments)
    return bool(hidden)


def _invoke(call: Call, given: dict[str, Any]) -> Any:
    positional: list[Any] = []
    names = [slot.name for slot in call.target.slots]
    spread = [slot.name for slot in call.target.slots if slot.spread]
    if spread:
        # What stands before ``*inputs`` has to come by position.
        before = names[: names.index(spread[0])]
        positional = [given.pop(name, None) for name in before]
        positional += given.pop(spread[0], ())
    return call.target.function(*positional, **given)


def _outputs(made: Any) -> tuple[list[Tensor], list[Operation]]:
    """Return the tensors and operations in what a call returned."""
    tensors: list[Tensor] = []
    ops: list[Operation] = []

    def visit(value: Any) -> None:
        if isinstance(value, Tensor):
            if value.dtype.kind in ("resource", "list"):
                ops.append(value.op)
            else:
                tensors.append(value)
        elif isinstance(value, Operation):
            ops.append(value)
        elif isinstance(value, SparseTensor | IndexedSlices):
            for part in ("indices", "values", "dense_shape"):
                visit(getattr(value, part))
        elif isinstance(value, dict):
            visit(list(value.values()))
        elif isinstance(value, list | tuple):
            for item in value:
                visit(item)

    visit(made)
    return tensors, ops


def _step(
    graph: Graph,
    tensors: list[Tensor],
    ops: list[Operation],
    entrance: Entrance,
    optimize: bool,
) -> list[NDArray]:
    with Session(graph=graph, config=Config(optimize=optimize)) as session:
        if entrance.variables:
            made = [variable.initializer for variable in entrance.variables]
            session.run(made, entrance.feeds)
        results = session.run([tensors, ops], entrance.feeds)[0]
    return [
        np.asarray(result, object if tensor.dtype == hr.string else None)
        for tensor, result in zip(tensors, results, strict=True)
    ]


def _largest(graph: Graph) -> int:
    """Return the bytes of the largest tensor of a graph whose shape is known."""
    largest = 0
    for op in graph.operations:
        for tensor in op.outputs:
            count = tensor.spec.shape.num_elements()
            largest = max(largest, (count or 0) * max(tensor.dtype.itemsize, 1))
    return largest


def _draws(call: Call, graph: Graph) -> bool:
    """Whether random numbers are drawn whose seeds depend on what else is in the graph."""
    given = [call.arguments.get(name) for name in ("seed", "seeds")]
    return all(g is None for g in given) and any("seeds" in op.attrs for op in graph.operations)


def _check_cause(error: HeadraceError) -> None:
    """Refuse an error that says that the kernel did not check what it was given."""
    cause = error.__cause__
    if not isinstance(error, ExecutionError) or cause is None or isinstance(cause, HeadraceError):
        return
    if isinstance(cause, MemoryError):
        return  # Judged where it is known how large the results are.
    if isinstance(cause, _OURS) and _raised_by_us(cause.__traceback__):
        return
    unclear = isinstance(cause, _UNCLEAR) or type(cause).__name__ == "LinAlgError"
    raise _ForbiddenError(Verdict("unclear message" if unclear else "unchecked", _where(cause)))


def _raised_by_us(trace: TracebackType | None) -> bool:
    """Whether an exception comes from a ``raise`` that is not in an array library."""
    if trace is None:
        return False
    while trace.tb_next is not None:
        trace = trace.tb_next
    module = str(trace.tb_frame.f_globals.get("__name__", "")).split(".")[0]
    if module in ("numpy", "scipy", "cupy", "cupyx"):
        return False
    names = {i.offset: i.opname for i in dis.get_instructions(trace.tb_frame.f_code)}
    return names.get(trace.tb_lasti) in ("RAISE_VARARGS", "RERAISE")


def _where(error: BaseException) -> str:
    """Return an exception with the last places that it passed."""
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    places = [f"{frame.filename.rpartition('src/')[2]}:{frame.lineno}" for frame in frames]
    return f"{type(error).__name__}: {str(error)[:200]} ({' < '.join(reversed(places))})"


def _same(one: NDArray, two: NDArray) -> bool:
    """Whether two arrays are equal bit by bit; all NaNs count as equal."""
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    if one.dtype == object:
        return bool(one.tolist() == two.tolist())
    if one.tobytes() == two.tobytes():
        return True
    if one.dtype.kind in "biu":
        return False
    if one.dtype.kind == "c":
        parts = ((one.real, two.real), (one.imag, two.imag))
        return all(_same(np.ascontiguousarray(a), np.ascontiguousarray(b)) for a, b in parts)
    both = np.isnan(one) & np.isnan(two)
    equal = (one == two) & (np.signbit(one) == np.signbit(two))
    return bool(np.all(both | equal))


def _rounds(call: Call) -> bool:
    """Whether results may differ in rounding: BLAS and LAPACK sum as memory is aligned."""
    family = call.target.function.__module__.rpartition(".")[2]
    return call.target.name.startswith("hr.") or family in _LINEAR


def _most_bytes(call: Call) -> int:
    """Return how wide the numbers are at most with which a call computes, whatever it is given."""
    return 4 if call.target.name.startswith(_IN_FLOAT32) else 8


def _close(one: NDArray, two: NDArray, most_bytes: int) -> bool:
    """Whether the arrays of a composite differ in rounding only.

    Known shapes and constants may lead to other operations, or to arrays of another layout, of
    which the sums come in another order.
    """
    if one.shape != two.shape or one.dtype != two.dtype or one.dtype.kind in "biuO":
        return False
    with np.errstate(all="ignore"):
        finite = np.isfinite(one) & np.isfinite(two)
        if not _same(np.where(finite, 0, one), np.where(finite, 0, two)):
            return False
        largest = np.max(np.abs(one), initial=0, where=finite)
        itemsize = min(most_bytes, hr.as_dtype(one.dtype).real_dtype.itemsize)
        tolerance = float(largest) * 1e4 * _EPS[itemsize]
        return bool(np.all(np.abs(one - two)[finite] <= tolerance))


def _brief(array: NDArray) -> str:
    values = " ".join(np.array2string(array, separator=", ", threshold=12, edgeitems=2).split())
    return f"{array.dtype}{list(array.shape)} {values[:120]}"
