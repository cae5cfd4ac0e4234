"""Scalars: numbers that are not known yet, whose arithmetic is written down as it is done."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, final

from headrace.dtypes import DType, as_dtype, bool_
from headrace.errors import shown as _shown
from headrace.records import dataclass
from headrace.scalars.functions import SCALAR_FUNCTIONS, ScalarFunction

INPUT = "input"
CONSTANT = "constant"


class ScalarError(Exception):
    """An expression that cannot be right for any dtypes."""


class ScalarTypeError(ScalarError):
    """An expression that means nothing for the dtypes at hand, and may for others."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Scalar:
    """A number in an expression: an input's element, a constant, or a function of others.

    Python's arithmetic and comparisons of it make further ones; a plain number among its operands
    takes its dtype. ``&``, ``|``, ``^`` and ``~`` are those of truth values, or of the
    bits of integers.

    Attributes:
        function: The name of the function whose value it is, ``"input"`` or ``"constant"``.
        dtype: Its dtype.
        args: What the function is applied to.
        value: The place of an input among the node's tensors; the number of a constant.
    """

    function: str
    dtype: DType
    args: tuple[Scalar, ...] = ()
    value: Any = None

    def __add__(self, other: Any) -> Scalar:
        return apply("add", self, other)

    def __radd__(self, other: Any) -> Scalar:
        return apply("add", other, self)

    def __sub__(self, other: Any) -> Scalar:
        return apply("subtract", self, other)

    def __rsub__(self, other: Any) -> Scalar:
        return apply("subtract", other, self)

    def __mul__(self, other: Any) -> Scalar:
        return apply("multiply", self, other)

    def __rmul__(self, other: Any) -> Scalar:
        return apply("multiply", other, self)

    def __truediv__(self, other: Any) -> Scalar:
        return apply("divide", self, other)

    def __rtruediv__(self, other: Any) -> Scalar:
        return apply("divide", other, self)

    def __pow__(self, other: Any) -> Scalar:
        return apply("pow", self, other)

    def __rpow__(self, other: Any) -> Scalar:
        return apply("pow", other, self)

    def __neg__(self) -> Scalar:
        return apply("negative", self)

    def __abs__(self) -> Scalar:
        return apply("abs", self)

    def __eq__(self, other: object) -> Scalar:  # type: ignore[override]  # another number
        return apply("equal", self, other)

    def __ne__(self, other: object) -> Scalar:  # type: ignore[override]  # another number
        return apply("not_equal", self, other)

    def __lt__(self, other: Any) -> Scalar:
        return apply("less", self, other)

    def __le__(self, other: Any) -> Scalar:
        return apply("less_equal", self, other)

    def __gt__(self, other: Any) -> Scalar:
        return apply("greater", self, other)

    def __ge__(self, other: Any) -> Scalar:
        return apply("greater_equal", self, other)

    def __and__(self, other: Any) -> Scalar:
        return apply(self._bits("and"), self, other)

    __rand__ = __and__

    def __or__(self, other: Any) -> Scalar:
        return apply(self._bits("or"), self, other)

    __ror__ = __or__

    def __xor__(self, other: Any) -> Scalar:
        return apply(self._bits("xor"), self, other)

    __rxor__ = __xor__

    def __invert__(self) -> Scalar:
        return apply("invert" if self.dtype.is_integer else "logical_not", self)

    def _bits(self, name: str) -> str:
        """Return what an operator is: logic, or on integers what bits do."""
        return f"bitwise_{name}" if self.dtype.is_integer else f"logical_{name}"

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise ScalarError(
            "a scalar of an expression is not known yet: choose with s.where(condition, x, y)"
        )


@final
class Scalars:
    """What an expression gets as its first argument: the functions, by name, and constants.

    Attributes:
        dtype: The dtype of the first input, for expressions that depend on it.
    """

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype

    def constant(self, value: Any, dtype: Any = None) -> Scalar:
        """Return a number as a scalar, of ``dtype`` or that of the first input."""
        return constant(value, self.dtype if dtype is None else as_dtype(dtype))

    def cast(self, x: Scalar, dtype: Any) -> Scalar:
        """Return a scalar converted to another dtype, as ``hr.cast`` does it."""
        given, target = _scalar("cast", x), as_dtype(dtype)
        for each in (given.dtype, target):
            _check(SCALAR_FUNCTIONS["cast"], each)
        return given if given.dtype == target else Scalar("cast", target, (given,))

    def __getattr__(self, name: str) -> Any:
        if name not in SCALAR_FUNCTIONS:
            import difflib

            near = difflib.get_close_matches(name, SCALAR_FUNCTIONS, 3)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise ScalarError(f"there is no scalar function {name!r}{hint}")
        return partial(apply, name)


def constant(value: Any, dtype: DType) -> Scalar:
    """Return a number as a scalar of a dtype.

    Raises:
        ScalarTypeError: if the dtype does not hold it.
    """
    number = value.item() if hasattr(value, "item") and not getattr(value, "ndim", 0) else value
    if not isinstance(number, bool | int | float):
        raise ScalarError(f"expected a scalar or a number, got {_shown(value)}")
    if dtype.is_bool or isinstance(number, bool):
        fits = dtype.is_bool and isinstance(number, bool)
    elif dtype.is_integer:
        fits = math.isfinite(number) and int(number) == number
        fits = fits and dtype.min <= number <= dtype.max
        number = int(number) if fits else number
    else:
        fits, number = dtype.is_floating, float(number)
    if not fits:
        raise ScalarTypeError(f"{_shown(value)} is no {dtype}")
    return Scalar(CONSTANT, dtype, value=number)


def apply(name: str, *args: Any) -> Scalar:
    """Return a function's value.

    Raises:
        ScalarError: if it takes another number of arguments, or something that is no number.
        ScalarTypeError: if it does not take the dtypes of the arguments.
    """
    function = SCALAR_FUNCTIONS[name]
    if len(args) != function.arity:
        raise ScalarError(f"{name} takes {function.arity} arguments, got {len(args)}")
    if name == "where":
        return _where(function, *args)
    given = _of_one_dtype(name, args)
    _check(function, given[0].dtype)
    return Scalar(name, bool_ if function.tests else given[0].dtype, given)


def _where(function: ScalarFunction, condition: Any, x: Any, y: Any) -> Scalar:
    test = constant(condition, bool_) if isinstance(condition, bool) else condition
    if _scalar("where", test).dtype != bool_:
        raise ScalarTypeError(f"where chooses by a truth value, got {test.dtype}")
    given = _of_one_dtype("where", (x, y))
    _check(function, given[0].dtype)
    return Scalar("where", given[0].dtype, (test, *given))


def _of_one_dtype(name: str, args: tuple[Any, ...]) -> tuple[Scalar, ...]:
    known = [arg.dtype for arg in args if isinstance(arg, Scalar)]
    if not known:
        raise ScalarError(
            f"{name} of numbers alone: compute it in Python, or make one a scalar with s.constant"
        )
    if any(dtype != known[0] for dtype in known):
        shown = " and ".join(map(str, known))
        raise ScalarTypeError(f"{name} takes scalars of one dtype, got {shown}: use s.cast")
    return tuple(arg if isinstance(arg, Scalar) else constant(arg, known[0]) for arg in args)


def _scalar(name: str, value: Any) -> Scalar:
    if not isinstance(value, Scalar):
        raise ScalarError(f"{name} takes a scalar of the expression, got {_shown(value)}")
    return value


def _check(function: ScalarFunction, dtype: DType) -> None:
    if not function.accepts(dtype):
        raise ScalarTypeError(f"{function.name} does not take {dtype}")
