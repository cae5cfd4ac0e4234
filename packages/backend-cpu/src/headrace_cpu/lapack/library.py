"""The LAPACK and the Fortran interface of BLAS that NumPy brings, by their addresses.

NumPy computes single-precision decompositions in double precision, lets OpenBLAS wake threads of
its own, and transposes matrices one element after the other. The functions behind it do none of
that where they are called for what they do best.

References:
    E. Anderson et al., LAPACK Users' Guide, third edition, SIAM, 1999, https://netlib.org/lapack
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any

from headrace.extend.records import dataclass
from headrace_cpu.matmul.blas import NAMES, Blas, loaded_blas

# What is called here; a library without one of them is not used.
_FUNCTIONS = (
    *("copy", "gemm", "gemv", "omatcopy", "symv", "syrk", "trsm", "trsv"),
    *("geqrf", "gesdd", "getrf", "getri", "getrs", "lacpy", "laset", "orgqr", "potrf", "syevd"),
)
LETTERS = {"float32": "s", "float64": "d"}


@dataclass(frozen=True, slots=True)
class Lapack:
    """A LAPACK that is loaded.

    Attributes:
        blas: The library, which can be kept on its caller's thread.
        addresses: Of the functions, named without what the build adds, as in "spotrf".
        wide: Whether whole numbers in memory have 64 bits, else they have 32.
    """

    blas: Blas
    addresses: dict[str, int]
    wide: bool


@functools.cache
def _prototype(count: int) -> Callable[..., Any]:
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * count)


@functools.cache
def prototype(address: int, count: int) -> Callable[..., Any]:
    """Return a function at an address, of so many addresses."""
    return _prototype(count)(address)  # type: ignore[no-any-return]


@functools.cache
def loaded_lapack() -> Lapack | None:
    """Return the LAPACK that NumPy uses, None where it cannot be found or called by hand."""
    blas = loaded_blas()
    if blas is None or blas.set_threads is None:
        return None
    library: Any = ctypes.CDLL(blas.path)
    for before, after in NAMES:
        found = {}
        try:
            for letter in LETTERS.values():
                for name in _FUNCTIONS:
                    function = getattr(library, f"{before}{letter}{name}_{after}")
                    found[letter + name] = ctypes.cast(function, ctypes.c_void_p).value or 0
        except AttributeError:
            continue
        return Lapack(blas, found, wide=bool(after))
    return None
