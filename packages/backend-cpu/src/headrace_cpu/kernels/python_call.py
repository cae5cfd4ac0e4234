"""Kernels that call Python functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import DType
from headrace.errors import HeadraceError, InvalidInputError, OutOfRangeError
from headrace.extend import KernelTable
from headrace.extend.graphs import is_python_literal, to_array
from headrace.extend.kernels import KernelContext, family, python_function
from headrace_cpu.kernels.numeric import Array
from headrace_cpu.native.denormals import kept

KERNELS = KernelTable()


@KERNELS.stateful("PyFunc")
def call(
    ctx: KernelContext, inputs: list[Array], *, token: str, output_types: Sequence[DType]
) -> list[Array]:
    """Call a function."""
    return _results(inputs, token, output_types)


@KERNELS.plain("PyFuncStateless")
def call_stateless(
    xp: Any, inputs: list[Array], *, token: str, output_types: Sequence[DType]
) -> list[Array]:
    """Call a function."""
    return _results(inputs, token, output_types)


@KERNELS.stateful("PyFuncEffect")
def call_effect(ctx: KernelContext, inputs: list[Array], *, token: str) -> None:
    """Call a function."""
    _results(inputs, token, ())


def _results(inputs: list[Array], token: str, output_types: Sequence[DType]) -> list[Array]:
    holder = python_function(token)
    try:
        # Elements of arrays without dimensions are what Python's functions expect.
        with np.errstate(all="warn"), kept():
            found = holder.function(*(np.asarray(x)[()] for x in map(_host, inputs)))
    except HeadraceError:
        raise
    except StopIteration as error:
        raise OutOfRangeError(f"the Python function {holder.name!r} has no more values") from error
    except Exception as error:
        raise family(error)(
            f"the Python function {holder.name!r} failed: {type(error).__name__}: {error}"
        ) from error
    if found is None:
        values = []
    else:
        values = list(found) if isinstance(found, list | tuple) else [found]
    if len(values) != len(output_types):
        raise InvalidInputError(
            f"the Python function {holder.name!r} returned {len(values)} values, expected "
            f"{len(output_types)}"
        )
    return [
        _output(value, dtype, i, holder.name)
        for i, (value, dtype) in enumerate(zip(values, output_types, strict=True))
    ]


def _host(x: Array) -> Array:
    return np.asarray(x, object) if isinstance(x, bytes) else x


def _output(value: Any, dtype: DType, index: int, name: str) -> Array:
    """Return what a function returned as an array of the dtype that was promised."""
    try:
        array = to_array(value, dtype if is_python_literal(value) else None)
    except HeadraceError as error:
        raise InvalidInputError(
            f"value {index} that {name!r} returned is no array: {error}"
        ) from None
    if array.dtype != dtype.numpy:
        found = "string" if array.dtype == object else array.dtype
        raise InvalidInputError(
            f"value {index} that {name!r} returned is {found}, expected {dtype}"
        )
    return array
