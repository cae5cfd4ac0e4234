"""Makes functions that numba compiles in place out of functions that write instructions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

# This package is imported late, where numba is about to compile a kernel.
from numba import types  # noqa: TID253
from numba.extending import intrinsic  # noqa: TID253

from headrace_cpu.fusion.functions.emitter import FLOAT32, FLOAT64, Emitter, Format, Value

# Writes the instructions of one function of one or two numbers.
Written: TypeAlias = Callable[..., Value]

FORMATS: dict[str, Format] = {form.dtype: form for form in (FLOAT32, FLOAT64)}


def compiled_in_place(
    written: Written, dtype: str, arity: int, *, test: bool = False
) -> Callable[..., Any]:
    """Return a function of numba's, of `arity` numbers, which is compiled where it is called.

    Args:
        written: Takes an ``Emitter`` and values of LLVM's; returns the value of the result.
        dtype: ``float32`` or ``float64``.
        arity: How many numbers it takes.
        test: Whether the result is a boolean.
    """
    real = getattr(types, dtype)
    form = FORMATS[dtype]

    def generate(context: Any, builder: Any, signature: Any, values: Sequence[Value]) -> Value:
        del context, signature
        return written(Emitter(builder, form), *values)

    signature = (types.boolean if test else real)(*[real] * arity)

    def one(typing_context: Any, x: Any) -> Any:
        del typing_context, x
        return signature, generate

    def two(typing_context: Any, x: Any, y: Any) -> Any:
        del typing_context, x, y
        return signature, generate

    # numba takes the number of arguments from the function's own.
    typed: Any = one if arity == 1 else two
    typed.__name__ = typed.__qualname__ = f"{written.__name__}_{dtype}"
    function: Callable[..., Any] = intrinsic(typed)
    return function
