"""The functions that kernels on windows call: BLAS's general matrix multiplication (GEMM)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace_cpu.native.source import Vocabulary

if TYPE_CHECKING:
    from headrace_cpu.native.instructions import Maker

# The C interface of BLAS: matrices by columns; as they are, and transposed.
_BY_COLUMNS, _PLAIN, _TRANSPOSED = 102, 111, 112


def _functions() -> Mapping[Any, Any]:
    return {f"gemm_{code}": _gemm(code) for code in ("f32", "f64")}


def _gemm(code: str) -> Maker:
    """Return what writes ``c = op(a) op(b) + beta c``, computed by BLAS's function at an address.

    Kernels call it with ``(function, transpose_a, transpose_b, m, n, k, a, lda, b, ldb, beta, c,
    ldc)``. Matrices are stored by columns: [m, k], [k, n] and [m, n], after those are transposed
    whose flag is 1.
    """
    from llvmlite import ir

    # lazy: it needs LLVM, which few processes load: kernels come from the cache
    from headrace_cpu.native.instructions import TYPES, Held, Machine

    word, element = TYPES["i64"], TYPES[code]

    def make(machine: Machine, args: Sequence[Held]) -> Held:
        b = machine.builder

        def order(flag: Any) -> Any:
            chosen = b.icmp_signed("!=", flag, word(0))
            return b.select(chosen, word(_TRANSPOSED), word(_PLAIN))

        # All integers are passed as 64 bits: where sizes have 32, nobody looks at the others.
        function, transpose_a, transpose_b, *sizes = (arg.value for arg in args)
        m, n, k, *operands = sizes
        passed = [
            *(word(_BY_COLUMNS), order(transpose_a), order(transpose_b), m, n, k, element(1.0)),
            *operands,
        ]
        kind = ir.FunctionType(ir.VoidType(), [p.type for p in passed])
        b.call(b.inttoptr(function, kind.as_pointer()), passed)
        return args[0]

    return make


GEMM = Vocabulary(("headrace_cpu.windows.vocabulary",), _functions)
