"""Matrix products by cublasLt, called through ctypes.

CuPy's own binding of cuBLAS refuses to run while a stream is captured, and knows no epilogues. Of
cublasLt's descriptors only the pointer of the bias changes from call to call.

cublasLt counts matrices by columns: a matrix in C order is, for it, the transposed one. So it
computes ``out^T = right^T @ left^T``, with the operands exchanged, and a bias for each column of
ours is one for each row of its.

References:
    cublasLt.h and library_types.h of CUDA 13, from which all numbers and signatures are taken.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_void_p
from dataclasses import dataclass, replace
from typing import Any

from headrace.errors import ExecutionError
from headrace_cuda.matmul.library import MatmulPlaces, MatmulShape
from headrace_cuda.program.platform import Streaming

# Scratch memory that an algorithm may ask for: what the heuristics of cuBLAS itself have on Hopper.
MOST_SCRATCH = 32 << 20
# No algorithm loads wider vectors than this; operands that are aligned to less get another one.
ALIGNED = 16
# How many algorithms are tried: of small products the quickest is often not the first.
_ALGORITHMS = 8

# cublasStatus_t.
_SUCCESS, _NOT_SUPPORTED = 0, 15
# cublasLtMatmulDescAttributes_t.
_DESC_TRANSPOSE_A, _DESC_TRANSPOSE_B, _DESC_EPILOGUE, _DESC_BIAS = 3, 4, 7, 8
# cublasLtMatrixLayoutAttribute_t.
_LAYOUT_BATCH, _LAYOUT_STEP = 5, 6
# cublasLtMatmulPreferenceAttributes_t: the workspace, and the alignment of A, B, C and D.
_PREFER_WORKSPACE, _PREFER_ALIGNMENTS = 1, (5, 6, 7, 8)
# cublasLtEpilogue_t.
_EPILOGUES = {(False, False): 1, (False, True): 2, (True, False): 4, (True, True): 6}
# cublasOperation_t.
_AS_IT_IS, _TRANSPOSED = 0, 1
# cublasComputeType_t.
_COMPUTE_32F, _COMPUTE_TF32, _COMPUTE_64F = 68, 77, 70


@dataclass(frozen=True, slots=True)
class _Kind:
    """How elements of a dtype are multiplied: cudaDataType_t and cublasComputeType_t.

    Attributes:
        data: The type of matrices.
        scale: The type of the factors alpha and beta.
        compute: In what is computed.
        number: A part of a factor.
        parts: How many parts a factor has.
        size: Bytes of an element.
    """

    data: int
    scale: int
    compute: int
    number: type[c_float | c_double]
    parts: int
    size: int

    def factor(self, value: float) -> Any:
        """Return a factor."""
        return (self.number * self.parts)(value)


_KINDS = {
    "float16": _Kind(2, 0, _COMPUTE_32F, c_float, 1, 2),
    "float32": _Kind(0, 0, _COMPUTE_32F, c_float, 1, 4),
    "float64": _Kind(1, 1, _COMPUTE_64F, c_double, 1, 8),
    "complex64": _Kind(4, 4, _COMPUTE_32F, c_float, 2, 8),
    "complex128": _Kind(5, 5, _COMPUTE_64F, c_double, 2, 16),
}


class _Algorithm(ctypes.Structure):
    """cublasLtMatmulAlgo_t: 64 bytes that only the library reads."""

    _fields_ = (("data", ctypes.c_uint64 * 8),)


class _Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t: 96 bytes."""

    _fields_ = (
        ("algorithm", _Algorithm),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    )


_HANDLE = POINTER(c_void_p)
# The functions, with the types of their arguments. Enumerations are ints.
_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cublasLtCreate": (_HANDLE,),
    "cublasLtMatmulDescCreate": (_HANDLE, c_int, c_int),
    "cublasLtMatmulDescDestroy": (c_void_p,),
    "cublasLtMatmulDescSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "cublasLtMatrixLayoutCreate": (_HANDLE, c_int, ctypes.c_uint64, ctypes.c_uint64, c_int64),
    "cublasLtMatrixLayoutDestroy": (c_void_p,),
    "cublasLtMatrixLayoutSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "cublasLtMatmulPreferenceCreate": (_HANDLE,),
    "cublasLtMatmulPreferenceDestroy": (c_void_p,),
    "cublasLtMatmulPreferenceSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "cublasLtMatmulAlgoGetHeuristic": (
        *(c_void_p,) * 7,
        c_int,
        POINTER(_Heuristic),
        POINTER(c_int),
    ),
    # handle, operation, alpha, A, its layout, B, its layout, beta, C, its layout, D, its layout,
    # algorithm, workspace, its size, stream
    "cublasLtMatmul": (*(c_void_p,) * 12, POINTER(_Algorithm), c_void_p, c_size_t, c_void_p),
}


def library_path() -> str:
    """Return where cublasLt lies, from a wheel, CUDA's folder or the loader's path.

    Raises:
        ExecutionError: if it is not there.
    """
    # lazy: CuPy brings it
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    try:
        return str(load_nvidia_dynamic_lib("cublasLt").abs_path)
    except DynamicLibNotFoundError as error:
        raise ExecutionError(
            "cublasLt, which multiplies matrices on GPUs, is not there\n"
            '  pip install "headrace-backend-cuda[cuda13]" brings it'
        ) from error


class Functions:
    """The functions of cublasLt, each of whose answers is checked.

    Args:
        path: Of the shared library.
    """

    def __init__(self, path: str) -> None:
        self._library = ctypes.CDLL(path)
        for name, types in _SIGNATURES.items():
            function = getattr(self._library, name)
            function.argtypes, function.restype = types, c_int
        self._library.cublasLtGetStatusName.argtypes = (c_int,)
        self._library.cublasLtGetStatusName.restype = c_char_p
        self._library.cublasLtGetVersion.argtypes = ()
        self._library.cublasLtGetVersion.restype = c_size_t

    def version(self) -> int:
        """Return cublasLt's version, as in 130100."""
        return int(self._library.cublasLtGetVersion())

    def status(self, name: str, *arguments: Any) -> int:
        """Call a function; return its status."""
        return int(getattr(self._library, name)(*arguments))

    def call(self, what: object, name: str, *arguments: Any) -> None:
        """Call a function.

        Raises:
            ExecutionError: if it fails; says what was asked for.
        """
        status = self.status(name, *arguments)
        if status != _SUCCESS:
            raise ExecutionError(f"{name} fails with {self.explain(status)} for {what}")

    def explain(self, status: int) -> str:
        """Return the name of a status."""
        text = self._library.cublasLtGetStatusName(status)
        return text.decode() if text else f"status {status}"


class _Descriptors:
    """The operation and the layouts of a product; freed with the object."""

    def __init__(self, functions: Functions, shape: MatmulShape) -> None:
        self._functions, self._shape = functions, shape
        self._made: list[tuple[str, c_void_p]] = []
        kind = _KINDS[shape.dtype]
        compute = _COMPUTE_TF32 if _is_tf32(shape) else kind.compute
        self.operation = self._create("MatmulDesc", compute, kind.scale)
        # The operands are exchanged.
        for attribute, flag in (
            (_DESC_TRANSPOSE_A, shape.transpose_right),
            (_DESC_TRANSPOSE_B, shape.transpose_left),
        ):
            self._set(self.operation, attribute, c_int(_TRANSPOSED if flag else _AS_IT_IS))
        epilogue = _EPILOGUES[shape.bias, shape.relu]
        self._set(self.operation, _DESC_EPILOGUE, ctypes.c_uint32(epilogue))
        rows, columns, depth = shape.rows, shape.columns, shape.depth
        self.right = self._layout(
            *((depth, columns) if shape.transpose_right else (columns, depth)), shape.right_step
        )
        self.left = self._layout(
            *((rows, depth) if shape.transpose_left else (depth, rows)), shape.left_step
        )
        self.out = self._layout(columns, rows, rows * columns)

    def set_bias(self, address: int) -> None:
        """Say where the bias is."""
        self._set(self.operation, _DESC_BIAS, c_void_p(address))

    def preference(self, scratch: int, alignment: int) -> c_void_p:
        """Return what an algorithm must do with."""
        made = self._create("MatmulPreference")
        name = "cublasLtMatmulPreferenceSetAttribute"
        self._attribute(name, made, _PREFER_WORKSPACE, ctypes.c_uint64(scratch))
        for attribute in _PREFER_ALIGNMENTS:
            self._attribute(name, made, attribute, ctypes.c_uint32(alignment))
        return made

    def _layout(self, rows: int, columns: int, step: int) -> c_void_p:
        """Return the layout of matrices by columns, one right behind the other in each column."""
        made = self._create("MatrixLayout", _KINDS[self._shape.dtype].data, rows, columns, rows)
        name = "cublasLtMatrixLayoutSetAttribute"
        self._attribute(name, made, _LAYOUT_BATCH, ctypes.c_int32(self._shape.batch))
        self._attribute(name, made, _LAYOUT_STEP, c_int64(step))
        return made

    def _set(self, operation: c_void_p, attribute: int, value: Any) -> None:
        self._attribute("cublasLtMatmulDescSetAttribute", operation, attribute, value)

    def _attribute(self, name: str, made: c_void_p, attribute: int, value: Any) -> None:
        size = ctypes.sizeof(value)
        self._functions.call(self._shape, name, made, attribute, byref(value), size)

    def _create(self, what: str, *arguments: Any) -> c_void_p:
        made = c_void_p()
        self._functions.call(self._shape, f"cublasLt{what}Create", byref(made), *arguments)
        self._made.append((f"cublasLt{what}Destroy", made))
        return made

    def __del__(self) -> None:
        """Free them."""
        for name, made in self._made:
            self._functions.status(name, made)


@dataclass(frozen=True, slots=True)
class _Found:
    """An algorithm, and the scratch memory that it needs."""

    algorithm: _Algorithm
    scratch: int


class CublasLt:
    """cublasLt on the GPU that is active.

    Args:
        gpu: Has the handle of the stream on which the calling thread starts work.
        path: Of the shared library; found where None.

    Raises:
        ExecutionError: if it is not there, or does not start.
    """

    def __init__(self, gpu: Streaming, path: str | None = None) -> None:
        self._functions = Functions(library_path() if path is None else path)
        self._handle = c_void_p()
        self._functions.call("this GPU", "cublasLtCreate", byref(self._handle))
        self._gpu = gpu
        self._lock = threading.Lock()
        # Equal products have equal algorithms in all steps of a process.
        self._find = functools.lru_cache(None)(self._ask)

    def plan(self, shape: MatmulShape) -> CublasLtMatmul | None:
        """Prepare a product; None where cublasLt has none of this kind.

        Raises:
            ExecutionError: if cublasLt fails.
        """
        if shape.dtype not in _KINDS:
            return None
        plain = _untransposed(shape)
        with self._lock:
            found = self._find(plain, MOST_SCRATCH, ALIGNED)
        return None if found is None else CublasLtMatmul(self, plain, found)

    def unaligned(self, shape: MatmulShape, scratch: int) -> _Found | None:
        """Return the algorithm for operands of which only the elements are aligned."""
        with self._lock:
            return self._find(shape, scratch, _KINDS[shape.dtype].size)

    def describe(self, shape: MatmulShape) -> _Descriptors:
        """Return new descriptors of a product."""
        return _Descriptors(self._functions, shape)

    def run(
        self,
        shape: MatmulShape,
        descriptors: _Descriptors,
        found: _Found,
        places: MatmulPlaces,
        factors: tuple[Any, Any],
        scratch: int,
    ) -> None:
        """Start a product on the stream.

        Raises:
            ExecutionError: if cublasLt refuses it.
        """
        # The bias is part of the operation, which other threads may start too.
        with self._lock:
            self._start(shape, descriptors, found, places, factors, scratch)

    def _start(
        self,
        shape: MatmulShape,
        descriptors: _Descriptors,
        found: _Found,
        places: MatmulPlaces,
        factors: tuple[Any, Any],
        scratch: int,
    ) -> None:
        alpha, beta = factors
        if shape.bias:
            descriptors.set_bias(places.bias)
        self._functions.call(
            shape,
            "cublasLtMatmul",
            *(self._handle, descriptors.operation, byref(alpha)),
            *(places.right, descriptors.right, places.left, descriptors.left, byref(beta)),
            *(places.addend or places.out, descriptors.out, places.out, descriptors.out),
            *(byref(found.algorithm), scratch, found.scratch, self._gpu.stream),
        )

    def _ask(self, shape: MatmulShape, scratch: int, alignment: int) -> _Found | None:
        """Ask the heuristics for an algorithm."""
        made = self.describe(shape)
        preference = made.preference(scratch, alignment)
        results, count = (_Heuristic * _ALGORITHMS)(), c_int()
        wanted = 1 if shape.deterministic else _ALGORITHMS
        if shape.bias:
            # Nobody reads it; its alignment counts.
            made.set_bias(alignment)
        status = self._functions.status(
            "cublasLtMatmulAlgoGetHeuristic",
            *(self._handle, made.operation, made.right, made.left, made.out, made.out),
            *(preference, wanted, results, byref(count)),
        )
        if status == _NOT_SUPPORTED:
            return None
        if status != _SUCCESS:
            name = self._functions.explain(status)
            raise ExecutionError(f"cublasLtMatmulAlgoGetHeuristic fails with {name} for {shape}")
        found = [
            _Found(_Algorithm.from_buffer_copy(result.algorithm), result.workspace)
            for result in results[: count.value]
            if result.state == _SUCCESS
        ]
        if len(found) < 2 or alignment < ALIGNED:
            return found[0] if found else None
        return self._quickest(shape, made, found)

    def _quickest(
        self, shape: MatmulShape, made: _Descriptors, found: Sequence[_Found]
    ) -> _Found | None:
        """Return the quickest of some algorithms, on memory that is there for as long as that.

        Where there is no room to try, it is the first one.
        """
        kind, gpu = _KINDS[shape.dtype], self._gpu
        factors = (kind.factor(1.0), kind.factor(1.0 if shape.addend else 0.0))
        out = shape.batch * shape.rows * shape.columns
        sizes = {
            "left": (shape.batch if shape.left_step else 1) * shape.rows * shape.depth,
            "right": (shape.batch if shape.right_step else 1) * shape.depth * shape.columns,
            "out": out,
            "bias": shape.columns,
            "addend": out,
        }
        try:
            held = {name: gpu.allocate(size * kind.size) for name, size in sizes.items()}
            room = gpu.allocate(max(1, *(each.scratch for each in found)))
        except ExecutionError:
            return found[0]
        places = MatmulPlaces(**{name: gpu.address(array) for name, array in held.items()})
        if not shape.addend:
            places = replace(places, addend=0)
        best: tuple[float, _Found] | None = None
        for each in found:
            run = functools.partial(
                self._start, shape, made, each, places, factors, gpu.address(room)
            )
            try:
                seconds = gpu.measure(run)
            except ExecutionError:
                # Some are found not to work when they run.
                continue
            if best is None or seconds < best[0]:
                best = seconds, each
        return None if best is None else best[1]


class CublasLtMatmul:
    """A product by cublasLt.

    Attributes:
        scratch: Bytes of scratch memory that it needs while it runs.
        name: What computes it.
    """

    name = "cublasLt"

    def __init__(self, library: CublasLt, shape: MatmulShape, found: _Found) -> None:
        self._library, self._shape, self._found = library, shape, found
        self._descriptors = library.describe(shape)
        kind = _KINDS[shape.dtype]
        self._factors = (kind.factor(1.0), kind.factor(1.0 if shape.addend else 0.0))
        self.scratch = found.scratch

    def start(self, places: MatmulPlaces, scratch: int) -> None:
        """Start it on the stream; see ``Matmul``."""
        found: _Found | None = self._found
        if (places.left | places.right | places.out | places.bias | places.addend) % ALIGNED:
            found = self._library.unaligned(self._shape, self.scratch)
            if found is None:
                raise ExecutionError(f"cublasLt has no algorithm for {self._shape}, unaligned")
        assert found is not None
        self._library.run(self._shape, self._descriptors, found, places, self._factors, scratch)


def _untransposed(shape: MatmulShape) -> MatmulShape:
    """Return the same product with as few transposed operands as can be.

    A matrix of one row or column lies as the transposed one does, and cublasLt refuses some.
    """
    return replace(
        shape,
        transpose_left=shape.transpose_left and min(shape.rows, shape.depth) > 1,
        transpose_right=shape.transpose_right and min(shape.depth, shape.columns) > 1,
    )


def _is_tf32(shape: MatmulShape) -> bool:
    return shape.precision == "tf32" and shape.dtype in ("float32", "complex64")
