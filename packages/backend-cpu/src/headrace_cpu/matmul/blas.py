"""The BLAS that NumPy brings, called without NumPy.

NumPy's wheels bring an OpenBLAS, which is in the process already: its functions are found in the
loaded library. SciPy would hand out its own BLAS's addresses, but importing ``scipy.linalg`` takes
longer than compiling a small model, and it is a second library with threads of its own.

References:
    BLAS Technical Forum, "Basic Linear Algebra Subprograms Technical Forum Standard", 2001,
    https://netlib.org/blas/blast-forum (the C interface)
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from ctypes import c_double, c_float, c_int64, c_void_p
from dataclasses import field
from pathlib import Path
from typing import Any

from headrace.extend.records import dataclass
from headrace_cpu.native.threads import thread_count

_ROW_MAJOR, _PLAIN, _TRANSPOSED = 101, 111, 112

# A scalar argument whose memory is the value: the next call takes what is there then.
Scalar = c_float | c_double


@dataclass(frozen=True, slots=True)
class Matmul:
    """``c = alpha op(a) op(b) + beta c`` of row-major matrices without gaps.

    Attributes:
        rows: Of ``c``.
        columns: Of ``c``.
        inner: The size over which is summed.
        transposed_a: Whether ``a`` is [inner, rows] instead of [rows, inner].
        transposed_b: Whether ``b`` is [columns, inner] instead of [inner, columns].
        dtype: "float32" or "float64".
    """

    rows: int
    columns: int
    inner: int
    transposed_a: bool = False
    transposed_b: bool = False
    dtype: str = "float32"

    @property
    def flops(self) -> int:
        """How many floating-point operations it takes."""
        return 2 * self.rows * self.columns * self.inner

    @property
    def deep(self) -> bool:
        """Whether it sums up products of many more rows than the result has rows or columns."""
        many = max(1024, 4 * self.rows, 4 * self.columns)
        return self.transposed_a and not self.transposed_b and self.inner >= many

    @property
    def wide(self) -> bool:
        """Whether it sums up products of rows to a result that is larger than near caches."""
        large = self.rows * self.columns >= 1 << 20
        return large and self.transposed_a and not self.transposed_b

    @property
    def wakes_threads(self) -> bool:
        """Whether it is so large that OpenBLAS would use threads of its own."""
        vector = self.rows == 1 or self.columns == 1
        return self.flops >= (18_000 if vector else 500_000)

    @property
    def width_a(self) -> int:
        """The length of the rows of ``a``."""
        return self.rows if self.transposed_a else self.inner

    @property
    def width_b(self) -> int:
        """The length of the rows of ``b``."""
        return self.inner if self.transposed_b else self.columns

    @property
    def scalar(self) -> type[Scalar]:
        """The C type of the elements."""
        return c_float if self.dtype == "float32" else c_double


@dataclass(frozen=True, slots=True)
class Operands:
    """The arguments of a matmul that is called many times; changing them changes the next call.

    Attributes:
        a: The address of the left matrix.
        b: The address of the right matrix.
        c: The address of the result.
        alpha: What the matmul is multiplied by.
        beta: What the old ``c`` is multiplied by; 0 ignores it, NaNs too.
    """

    a: c_void_p
    b: c_void_p
    c: c_void_p
    alpha: Scalar
    beta: Scalar


@dataclass(frozen=True, slots=True)
class Blas:
    """A BLAS that is loaded.

    Attributes:
        path: The library's file.
        functions: The matmuls, by dtype.
        threads: How many threads it uses unless it is told otherwise.
        set_threads: Takes how many threads it shall use, in the whole process.
    """

    path: str
    functions: dict[str, Any]
    threads: int
    set_threads: Callable[[int], object] | None
    _inside: list[None] = field(default_factory=list, compare=False, repr=False)

    def alone(self, call: Callable[[], object]) -> Callable[[], object]:
        """Return a call during which BLAS stays on the threads that call it.

        The number of threads belongs to the process: what was usual comes back after the last of
        the calls that run at once. Lists are changed in one step, so there is no lock; where two
        calls race, BLAS takes more threads than it should, and computes the same.
        """
        limit, usual, inside = self.set_threads, self.threads, self._inside
        if limit is None or usual == 1:
            return functools.partial(call)

        def run() -> None:
            inside.append(None)
            limit(1)
            try:
                call()
            finally:
                inside.pop()
                if not inside:
                    limit(usual)

        return run

    def hold(self) -> None:
        """Keep BLAS on the threads that call it, until as many calls of ``let_go``."""
        self._inside.append(None)
        if self.set_threads is not None:
            self.set_threads(1)

    def let_go(self) -> None:
        """Undo one ``hold``."""
        self._inside.pop()
        if self.set_threads is not None and not self._inside:
            self.set_threads(self.threads)

    def bind(
        self, matmul: Matmul, operands: Operands, threads: int | None = None
    ) -> Callable[[], object]:
        """Return what computes a matmul on its operands.

        Args:
            matmul: The sizes.
            operands: The arguments.
            threads: On how many threads at most, None for as many as BLAS has.
        """
        p, o = matmul, operands
        call = functools.partial(
            self.functions[p.dtype],
            c_int64(_ROW_MAJOR),
            c_int64(_TRANSPOSED if p.transposed_a else _PLAIN),
            c_int64(_TRANSPOSED if p.transposed_b else _PLAIN),
            *map(c_int64, (p.rows, p.columns, p.inner)),
            *(o.alpha, o.a, c_int64(p.width_a), o.b, c_int64(p.width_b)),
            *(o.beta, o.c, c_int64(p.columns)),
        )
        return call if threads is None else self.limited(call, threads)

    def limited(self, call: Callable[[], object], threads: int) -> Callable[[], object]:
        """Return a call of BLAS that uses so many threads at most."""
        if self.threads <= threads or self.set_threads is None:
            return call
        return functools.partial(
            _limited, call, self.set_threads, threads, self.threads, self._inside
        )


def _limited(
    call: Callable[[], object],
    limit: Callable[[int], object],
    threads: int,
    usual: int,
    inside: list[None],
) -> None:
    """Call BLAS on fewer threads. The number belongs to the process: what was usual comes back.

    Args:
        call: Calls it.
        limit: Sets the number.
        threads: The number meanwhile.
        usual: The number otherwise.
        inside: Has something in it while somebody keeps BLAS on one thread.
    """
    limit(1 if inside else threads)
    try:
        call()
    finally:
        limit(1 if inside else usual)


# How the functions are called in NumPy's and in other builds. All integers are passed as 64 bits:
# where sizes have 32, the upper half of a register or a place on the stack is not looked at.
NAMES = (("scipy_", "64_"), ("", "64_"), ("scipy_", ""), ("", ""))


@functools.cache
def loaded_blas() -> Blas | None:
    """Return the BLAS that NumPy uses, None where it cannot be found or called by hand.

    It is told to use no more threads than the process's share of the machine.
    """
    import numpy as np  # noqa: F401 - loads it

    for path in _loaded_libraries():
        found = _opened(path)
        if found is not None:
            return found
    return None


@functools.cache
def all_blas() -> tuple[Blas, ...]:
    """Return every BLAS that kernels use: NumPy's, and the one that SciPy may bring."""
    import scipy.linalg  # noqa: F401 - loads it

    first = loaded_blas()
    opened = [] if first is None else [first]
    for path in _loaded_libraries():
        if first is None or path != first.path:
            found = _opened(path)
            if found is not None:
                opened.append(found)
    return tuple(opened)


def _loaded_libraries() -> list[str]:
    """Return the files of BLAS libraries in the process, NumPy's own first."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    files = dict.fromkeys(line.split(None, 5)[-1] for line in lines if ".so" in line)
    names = {f: f.rpartition("/")[2] for f in files}
    found = [f for f, name in names.items() if "blas" in name.lower() or "mkl_rt" in name]
    return sorted(found, key=lambda f: "numpy" not in f)


def _opened(path: str) -> Blas | None:
    try:
        library: Any = ctypes.CDLL(path)
    except OSError:
        return None
    for before, after in NAMES:
        try:
            functions = {
                dtype: getattr(library, f"{before}cblas_{letter}gemm{after}")
                for dtype, letter in (("float32", "s"), ("float64", "d"))
            }
        except AttributeError:
            continue
        for function in functions.values():
            function.restype = None
        get = getattr(library, f"{before}openblas_get_num_threads{after}", None)
        put = getattr(library, f"{before}openblas_set_num_threads{after}", None)
        if put is not None:
            put.restype, put.argtypes = None, (ctypes.c_int,)
        return Blas(path, functions, _shared(get, put), put)
    return None


def _shared(get: Any, put: Any) -> int:
    """Bring BLAS's number of threads down to the process's share; return what it is then."""
    if get is None or put is None:
        return 1
    threads = int(get())
    if threads > thread_count():
        threads = thread_count()
        put(threads)
    return threads
