"""What kernels on windows are written with besides loads and stores: products of matrices.

This module imports numba: it is imported when the first kernel is compiled, never before.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types  # noqa: TID253
from numba.extending import intrinsic  # noqa: TID253

_KINDS: dict[str, tuple[Any, ir.Type]] = {
    "f32": (types.float32, ir.FloatType()),
    "f64": (types.float64, ir.DoubleType()),
}


def _product(code: str) -> Any:
    number, stored = _KINDS[code]
    whole: Any = types.int64
    signature = types.void(*[whole] * 10, number, whole, whole)

    def gemm(
        typingctx: Any,
        function: Any,
        turned: Any,
        turned_too: Any,
        m: Any,
        n: Any,
        k: Any,
        a: Any,
        lda: Any,
        b: Any,
        ldb: Any,
        beta: Any,
        c: Any,
        ldc: Any,
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            byte, size = ir.IntType(8), ir.IntType(32)

            def held(value: Any) -> Any:
                slot = cgutils.alloca_once(builder, value.type)  # type: ignore[no-untyped-call]
                builder.store(value, slot)
                return slot

            def letter(flag: Any) -> Any:
                chosen = builder.icmp_signed("!=", flag, flag.type(0))
                return held(builder.select(chosen, byte(ord("T")), byte(ord("N"))))

            def whole(value: Any) -> Any:
                return held(builder.trunc(value, size))

            def place(value: Any) -> Any:
                return builder.inttoptr(value, stored.as_pointer())

            function, ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc = args
            passed = [
                *(letter(ta), letter(tb), whole(m), whole(n), whole(k), held(stored(1.0))),
                *(place(a), whole(lda), place(b), whole(ldb), held(beta), place(c), whole(ldc)),
            ]
            kind = ir.FunctionType(ir.VoidType(), [p.type for p in passed])
            builder.call(builder.inttoptr(function, kind.as_pointer()), passed)
            return context.get_dummy_value()

        return signature, generate

    gemm.__name__ = f"gemm_{code}"
    gemm.__doc__ = (
        "Compute ``c = op(a) op(b) + beta c`` with BLAS's function at an address: matrices by "
        "columns, [m, k], [k, n] and [m, n]; ``turned`` is 1 where op transposes."
    )
    return intrinsic(gemm)


gemm_f32, gemm_f64 = _product("f32"), _product("f64")
