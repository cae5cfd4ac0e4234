"""What kernels on windows are written with: memory, choices, and products of matrices.

Kernels get addresses as integers. Accesses that are given different numbers are marked as never
overlapping (LLVM's scoped alias metadata), so that loops vectorise without comparing addresses.

This module imports numba: it is imported when the first kernel is compiled, never before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types  # noqa: TID253
from numba.extending import intrinsic  # noqa: TID253

# Numbers of accesses that a kernel can tell apart.
_BUFFERS = 4
_WORD = ir.IntType(64)
_KINDS: dict[str, tuple[Any, ir.Type]] = {
    "f32": (types.float32, ir.FloatType()),
    "f64": (types.float64, ir.DoubleType()),
}
# The C interface of BLAS: matrices by columns; as they are, and transposed.
_BY_COLUMNS, _PLAIN, _TURNED = 102, 111, 112


def _place(builder: ir.IRBuilder, base: Any, index: Any, stored: ir.Type) -> Any:
    return builder.gep(builder.inttoptr(base, stored.as_pointer()), [index])


def _mark(module: ir.Module, access: Any, number: int) -> None:
    """State that an access touches one buffer and none of the others."""
    domain = module.add_metadata(["headrace.windows"])
    scopes = [module.add_metadata([f"headrace.windows.{i}", domain]) for i in range(_BUFFERS)]
    access.set_metadata("alias.scope", module.add_metadata([scopes[number]]))
    others = [scope for i, scope in enumerate(scopes) if i != number]
    access.set_metadata("noalias", module.add_metadata(others))


def _loader(code: str) -> Any:
    kind, stored = _KINDS[code]

    def load(typingctx: Any, base: Any, index: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            found = builder.load(_place(builder, args[0], args[1], stored))
            _mark(builder.module, found, number.literal_value)
            return found

        return kind(types.int64, types.int64, number), generate

    load.__name__ = f"load_{code}"
    return intrinsic(prefer_literal=True)(load)


def _storer(code: str) -> Any:
    kind, stored = _KINDS[code]

    def store(typingctx: Any, base: Any, index: Any, value: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            done = builder.store(args[2], _place(builder, args[0], args[1], stored))
            _mark(builder.module, done, number.literal_value)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, kind, number), generate

    store.__name__ = f"store_{code}"
    return intrinsic(prefer_literal=True)(store)


load_f32, load_f64 = _loader("f32"), _loader("f64")
store_f32, store_f64 = _storer("f32"), _storer("f64")


def _converter(code: str) -> Any:
    def convert(typingctx: Any, value: Any) -> Any:
        # A literal, too, is converted as any number of its type.
        source = types.unliteral(value)  # type: ignore[no-untyped-call]

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return context.cast(builder, args[0], source, _KINDS[code][0])

        return _KINDS[code][0](source), generate

    convert.__name__ = f"to_{code}"
    return intrinsic(convert)


to_f32, to_f64 = _converter("f32"), _converter("f64")


@intrinsic
def word(typingctx: Any, block: Any, index: Any) -> Any:
    """Return a word of the kernel's block."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_place(builder, args[0], args[1], _WORD))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def ask(typingctx: Any, function: Any) -> Any:
    """Call the C function ``int f(void)`` at an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        found = builder.call(builder.inttoptr(args[0], kind.as_pointer()), [])
        return builder.sext(found, _WORD)

    return types.int64(types.int64), generate


@intrinsic
def wait(typingctx: Any, function: Any) -> Any:
    """Call the C function ``void f(void)`` at an address: a barrier."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [])
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def choose(typingctx: Any, condition: Any, x: Any, y: Any) -> Any:
    """Return ``x`` where a condition holds, else ``y``, without a branch."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(args[0], args[1], args[2])

    return x(types.boolean, x, x), generate


def _logical(combine: Callable[[ir.IRBuilder, Any, Any], Any]) -> Any:
    def function(typingctx: Any, x: Any, y: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return combine(builder, args[0], args[1])

        return types.boolean(types.boolean, types.boolean), generate

    return intrinsic(function)


# Without a branch, as Python's words for them would have.
both = _logical(lambda builder, x, y: builder.and_(x, y))
either = _logical(lambda builder, x, y: builder.or_(x, y))


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
            def turning(flag: Any) -> Any:
                chosen = builder.icmp_signed("!=", flag, _WORD(0))
                return builder.select(chosen, _WORD(_TURNED), _WORD(_PLAIN))

            # All integers are passed as 64 bits: where sizes have 32, nobody looks at the others.
            function, ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc = args
            passed = [
                *(_WORD(_BY_COLUMNS), turning(ta), turning(tb), m, n, k, stored(1.0)),
                *(a, lda, b, ldb, beta, c, ldc),
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
