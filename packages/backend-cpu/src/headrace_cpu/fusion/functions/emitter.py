"""Writes LLVM instructions on numbers of one floating-point format, or on their bits.

All that is written is straight-line: no calls but of intrinsics that have vector forms, no loads,
no branches. So LLVM's loop vectoriser widens the loop that it stands in, on any machine. A product
and sum are fused wherever they are written as `fma`, on every machine: results are the same.

The same functions write the vector forms of what cannot be straight-line (`forms`): then all values
are vectors.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from llvmlite import ir

from headrace_cpu.fusion.functions.coefficients import LN2_FLOAT32, LN2_FLOAT64

# A value of LLVM's: llvmlite publishes no types.
Value: TypeAlias = Any


@dataclass(frozen=True)
class Format:
    """A binary floating-point format of IEEE 754.

    Attributes:
        dtype: NumPy's name of it.
        bits: Its width.
        fraction: Bits of the significand after the point.
        bias: What is added to an exponent where it is stored.
        ln2: The logarithm of 2, as a sum of two numbers; products of the first with whole numbers
            that can be exponents are exact.
    """

    dtype: str
    bits: int
    fraction: int
    bias: int
    ln2: tuple[float, ...]

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return float(2.0 ** (1 - self.bias))

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next larger number."""
        return float(2.0**-self.fraction)


FLOAT32 = Format("float32", 32, 23, 127, LN2_FLOAT32)
FLOAT64 = Format("float64", 64, 52, 1023, LN2_FLOAT64)


class Emitter:
    """Writes instructions at the place of a builder.

    Methods are named after what they compute; arguments and results are LLVM's values. Numbers of
    Python are constants wherever a float is expected.

    Attributes:
        builder: The builder of llvmlite.
        form: The format of all floats.
        single: Whether results will be rounded to float32, from the float64 of ``form``.
        lanes: How many numbers each value is, None for numbers that are no vectors.
    """

    def __init__(
        self, builder: Any, form: Format, *, single: bool = False, lanes: int | None = None
    ) -> None:
        self.builder = builder
        self.form = form
        self.single = single
        self.lanes = lanes
        self._element = ir.FloatType() if form.bits == 32 else ir.DoubleType()
        self.real = self._wide(self._element)
        self.whole = self._wide(ir.IntType(form.bits))

    def _wide(self, kind: Any) -> Any:
        return kind if self.lanes is None else ir.VectorType(kind, self.lanes)

    def _equal(self, kind: Any, value: float) -> Value:
        """Return a constant, in all places of a vector."""
        return ir.Constant(kind, value if self.lanes is None else [value] * self.lanes)

    def of(self, table: Mapping[str, tuple[float, ...]]) -> tuple[float, ...]:
        """Return the coefficients for the format and precision at hand."""
        return table["single"] if self.single and "single" in table else table[self.form.dtype]

    def constant(self, value: Value | float) -> Value:
        """Return a number of Python as a constant."""
        return self._equal(self.real, float(value)) if isinstance(value, (int, float)) else value

    def truth(self, *, value: bool) -> Value:
        """Return a truth value as a constant."""
        return self._equal(self._wide(ir.IntType(1)), value)

    def word(self, value: Value | int) -> Value:
        """Return an integer of Python as a constant of the format's width."""
        return self._equal(self.whole, value) if isinstance(value, int) else value

    def _call(self, name: str, *operands: Value | float) -> Value:
        # llvmlite would name those of single numbers only.
        vector = "" if self.lanes is None else f"v{self.lanes}"
        full = f"{name}.{vector}f{self.form.bits}"
        module = self.builder.module
        function = module.globals.get(full)
        if function is None:
            kind = ir.FunctionType(self.real, [self.real] * len(operands))
            function = ir.Function(module, kind, full)
        return self.builder.call(function, [self.constant(x) for x in operands])

    # Arithmetic

    def add(self, x: Value | float, y: Value | float) -> Value:
        """Return the sum."""
        return self.builder.fadd(self.constant(x), self.constant(y))

    def sub(self, x: Value | float, y: Value | float) -> Value:
        """Return the difference."""
        return self.builder.fsub(self.constant(x), self.constant(y))

    def mul(self, x: Value | float, y: Value | float) -> Value:
        """Return the product."""
        return self.builder.fmul(self.constant(x), self.constant(y))

    def div(self, x: Value | float, y: Value | float) -> Value:
        """Return the quotient."""
        return self.builder.fdiv(self.constant(x), self.constant(y))

    def neg(self, x: Value) -> Value:
        """Return the number of the other sign."""
        return self.builder.fneg(x)

    def fma(self, x: Value | float, y: Value | float, z: Value | float) -> Value:
        """Return ``x * y + z``, rounded once."""
        return self._call("llvm.fma", x, y, z)

    def sqrt(self, x: Value) -> Value:
        """Return the square root, correctly rounded."""
        return self._call("llvm.sqrt", x)

    def abs(self, x: Value) -> Value:
        """Return the number without its sign."""
        return self._call("llvm.fabs", x)

    def copysign(self, size: Value | float, sign: Value) -> Value:
        """Return a number of the size of one and the sign of the other."""
        return self._call("llvm.copysign", size, sign)

    def round(self, x: Value, how: str = "rint") -> Value:
        """Return a whole number: `rint` (the even one of two near), `floor`, `ceil` or `trunc`."""
        return self._call("llvm." + how, x)

    def polynomial(self, x: Value, coefficients: Sequence[float]) -> Value:
        """Return the sum of ``coefficients[i] * x**i``, by the rule of Horner."""
        total: Value | float = coefficients[-1]
        for coefficient in reversed(coefficients[:-1]):
            total = self.fma(total, x, coefficient)
        return total

    def exact_product(self, x: Value | float, y: Value | float) -> tuple[Value, Value]:
        """Return a product, and what its rounding lost."""
        product = self.mul(x, y)
        return product, self.fma(x, y, self.neg(product))

    def exact_sum(self, x: Value | float, y: Value | float) -> tuple[Value, Value]:
        """Return a sum, and what its rounding lost (Knuth's TwoSum)."""
        total = self.add(x, y)
        other = self.sub(total, x)
        lost = self.add(self.sub(x, self.sub(total, other)), self.sub(y, other))
        return total, lost

    def exact_sum_sorted(self, x: Value | float, y: Value | float) -> tuple[Value, Value]:
        """Return a sum, and what its rounding lost, where x is 0 or the larger (Dekker)."""
        total = self.add(x, y)
        return total, self.sub(y, self.sub(total, x))

    # Comparisons

    def compare(self, x: Value | float, how: str, y: Value | float) -> Value:
        """Compare with `<`, `<=`, `==`, `>=`, `>`; false where one is NaN."""
        return self.builder.fcmp_ordered(how, self.constant(x), self.constant(y))

    def compare_or_nan(self, x: Value | float, how: str, y: Value | float) -> Value:
        """Compare as `compare` does; true where one is NaN."""
        return self.builder.fcmp_unordered(how, self.constant(x), self.constant(y))

    def is_nan(self, x: Value) -> Value:
        """Whether it is NaN."""
        return self.builder.fcmp_unordered("uno", x, x)

    def select(self, condition: Value, x: Value | float, y: Value | float) -> Value:
        """Return `x` where a condition holds, else `y`; both have been computed."""
        return self.builder.select(condition, self.constant(x), self.constant(y))

    def select_word(self, condition: Value, x: Value | int, y: Value | int) -> Value:
        """Return one of two integers, as `select` does one of two numbers."""
        return self.builder.select(condition, self.word(x), self.word(y))

    def at_most(self, x: Value, high: Value | float) -> Value:
        """Return the smaller one, or NaN where `x` is."""
        return self.select(self.compare(x, ">", high), high, x)

    def at_least(self, x: Value, low: Value | float) -> Value:
        """Return the larger one, or NaN where `x` is."""
        return self.select(self.compare(x, "<", low), low, x)

    def either(self, one: Value, other: Value) -> Value:
        """Whether one of two conditions holds, or both."""
        return self.builder.or_(one, other)

    def all_of(self, one: Value, other: Value) -> Value:
        """Whether two conditions hold."""
        return self.builder.and_(one, other)

    def any(self, condition: Value) -> Value:
        """Whether a condition holds in any place of a vector, as one truth value."""
        if self.lanes is None:
            return condition
        bits = ir.IntType(self.lanes)
        found = self.builder.bitcast(condition, bits)
        return self.builder.icmp_unsigned("!=", found, ir.Constant(bits, 0))

    # Bits

    def bits(self, x: Value) -> Value:
        """Return the bits of a number as an integer."""
        return self.builder.bitcast(x, self.whole)

    def bits_of(self, power: float) -> int:
        """Return the bits of a power of two that is a normal number."""
        return (math.frexp(power)[1] - 1 + self.form.bias) << self.form.fraction

    def number(self, bits: Value) -> Value:
        """Return the number that has these bits."""
        return self.builder.bitcast(bits, self.real)

    def plus(self, x: Value | int, y: Value | int) -> Value:
        """Add integers."""
        return self.builder.add(self.word(x), self.word(y))

    def minus(self, x: Value | int, y: Value | int) -> Value:
        """Subtract integers."""
        return self.builder.sub(self.word(x), self.word(y))

    def both(self, x: Value | int, y: Value | int) -> Value:
        """Return the bits set in both integers."""
        return self.builder.and_(self.word(x), self.word(y))

    def left(self, x: Value, places: int) -> Value:
        """Shift an integer to the left."""
        return self.builder.shl(x, self.word(places))

    def right(self, x: Value, places: int) -> Value:
        """Shift an integer to the right, keeping its sign."""
        return self.builder.ashr(x, self.word(places))

    # Whole numbers in both forms

    @property
    def _magic(self) -> float:
        # Numbers near it have steps of 1: adding it leaves a whole number in the lowest bits.
        return 1.5 * 2.0**self.form.fraction

    def nearest(self, x: Value, factor: float) -> tuple[Value, Value]:
        """Return ``rint(x * factor)`` as a number, and as an integer in the lowest bits.

        The integer has other bits above: shift them out. Right where the product is below
        2**(fraction - 1).
        """
        shifted = self.fma(x, factor, self._magic)
        return self.sub(shifted, self._magic), self.bits(shifted)

    def power_of_two(self, exponent: Value) -> Value:
        """Return 2 to an integer, which must be that of a normal number."""
        biased = self.plus(exponent, self.form.bias)
        return self.number(self.left(biased, self.form.fraction))

    def is_odd(self, bits: Value, place: int = 0) -> Value:
        """Whether a bit of an integer is set: the lowest, or the one at `place`."""
        return self.builder.icmp_unsigned("!=", self.both(bits, 1 << place), self.word(0))

    def to_number(self, integer: Value) -> Value:
        """Return an integer below 2**(fraction - 1) as a number."""
        # Instructions that convert 64-bit integers exist from AVX-512 on only.
        magic = self.constant(self._magic)
        as_bits = self.plus(self.bits(magic), integer)
        return self.sub(self.number(as_bits), magic)


def in_double(written: Callable[..., Value]) -> Callable[..., Value]:
    """Return the function that computes in float64, and rounds to float32 where that is wanted."""

    @functools.wraps(written)
    def either(e: Emitter, *values: Value) -> Value:
        if e.form is FLOAT64:
            return written(e, *values)
        wide = Emitter(e.builder, FLOAT64, single=True, lanes=e.lanes)
        result = written(wide, *[e.builder.fpext(x, wide.real) for x in values])
        return e.builder.fptrunc(result, e.real)

    return either
