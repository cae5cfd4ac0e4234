"""What generated kernels are written with: memory, conversions and folds, one instruction each.

Kernels get addresses as integers. Each buffer of a kernel has a number, and accesses of buffers with
different numbers are marked as never overlapping (LLVM's scoped alias metadata), so that loops
vectorise without looking at addresses when they run.

This module imports numba: it is imported when the first kernel is compiled, never before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# Kernels write their constants with NumPy's types.
import numpy as np  # noqa: F401
from llvmlite import ir
from numba.core import cgutils, types  # noqa: TID253
from numba.extending import intrinsic  # noqa: TID253

from headrace_cpu.fusion.intrinsic_names import MAX_BUFFERS

_TYPES = {
    "b8": types.boolean,
    "u8": types.uint8,
    "i32": types.int32,
    "i64": types.int64,
    "f32": types.float32,
    "f64": types.float64,
}
_STORED = {
    "b8": ir.IntType(8),
    "u8": ir.IntType(8),
    "i32": ir.IntType(32),
    "i64": ir.IntType(64),
    "f32": ir.FloatType(),
    "f64": ir.DoubleType(),
}


def _mark(module: ir.Module, access: Any, number: int) -> None:
    """State that an access touches one buffer and none of the others."""
    domain = module.add_metadata(["headrace"])
    scopes = [module.add_metadata([f"headrace.{i}", domain]) for i in range(MAX_BUFFERS)]
    access.set_metadata("alias.scope", module.add_metadata([scopes[number]]))
    others = [scope for i, scope in enumerate(scopes) if i != number]
    access.set_metadata("noalias", module.add_metadata(others))


def _place(builder: ir.IRBuilder, base: Any, index: Any, stored: ir.Type) -> Any:
    return builder.gep(builder.inttoptr(base, stored.as_pointer()), [index])


def _loader(code: str) -> Any:
    def load(typingctx: Any, base: Any, index: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            found = builder.load(_place(builder, args[0], args[1], _STORED[code]))
            _mark(builder.module, found, number.literal_value)
            return builder.icmp_unsigned("!=", found, found.type(0)) if code == "b8" else found

        return _TYPES[code](types.int64, types.int64, number), generate

    load.__name__ = f"load_{code}"
    return intrinsic(prefer_literal=True)(load)


def _storer(code: str) -> Any:
    def store(typingctx: Any, base: Any, index: Any, value: Any, number: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = args[2]
            if code == "b8":
                value = builder.zext(value, _STORED[code])
            place = _place(builder, args[0], args[1], _STORED[code])
            _mark(builder.module, builder.store(value, place), number.literal_value)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, _TYPES[code], number), generate

    store.__name__ = f"store_{code}"
    return intrinsic(prefer_literal=True)(store)


load_b8, load_u8, load_i32 = _loader("b8"), _loader("u8"), _loader("i32")
load_i64, load_f32, load_f64 = _loader("i64"), _loader("f32"), _loader("f64")
store_b8, store_u8, store_i32 = _storer("b8"), _storer("u8"), _storer("i32")
store_i64, store_f32, store_f64 = _storer("i64"), _storer("f32"), _storer("f64")


@intrinsic
def word(typingctx: Any, block: Any, index: Any) -> Any:
    """Return a word of the kernel's block."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.load(_place(builder, args[0], args[1], ir.IntType(64)))

    return types.int64(types.int64, types.int64), generate


@intrinsic
def set_word(typingctx: Any, block: Any, index: Any, value: Any) -> Any:
    """Change a word of the kernel's block."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.store(args[2], _place(builder, args[0], args[1], ir.IntType(64)))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@intrinsic
def ask(typingctx: Any, function: Any) -> Any:
    """Call the C function ``int f(void)`` at an address."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.IntType(32), [])
        found = builder.call(builder.inttoptr(args[0], kind.as_pointer()), [])
        return builder.sext(found, ir.IntType(64))

    return types.int64(types.int64), generate


@intrinsic
def wait(typingctx: Any, function: Any) -> Any:
    """Call the C function ``void f(void)`` at an address: a barrier."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [])
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _converter(code: str) -> Any:
    target = _TYPES[code]

    def convert(typingctx: Any, value: Any) -> Any:
        source = types.int64 if isinstance(value, types.IntegerLiteral) else value

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = args[0]
            if isinstance(source, types.Float) and isinstance(target, types.Integer):
                # As on the hardware: a number out of range gives some number, nothing worse.
                wide = ir.IntType(max(32, target.bitwidth))
                found = builder.freeze(builder.fptosi(value, wide))
                return found if wide.width == target.bitwidth else builder.trunc(
                    found, ir.IntType(target.bitwidth)
                )
            if isinstance(target, types.Boolean) and isinstance(source, types.Float):
                return builder.fcmp_unordered("!=", value, value.type(0.0))
            return context.cast(builder, value, source, target)

        return target(source), generate

    convert.__name__ = f"to_{code}"
    return intrinsic(convert)


to_b8, to_u8, to_i32 = _converter("b8"), _converter("u8"), _converter("i32")
to_i64, to_f32, to_f64 = _converter("i64"), _converter("f32"), _converter("f64")


def _binary(name: str, doc: str, generate_value: Callable[..., Any]) -> Any:
    def function(typingctx: Any, x: Any, y: Any) -> Any:
        x = types.unliteral(x)

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return generate_value(builder, args[0], args[1], x)

        return x(x, x), generate

    function.__name__ = name
    function.__doc__ = doc
    return intrinsic(function)


def _unary(name: str, doc: str, generate_value: Callable[..., Any]) -> Any:
    def function(typingctx: Any, x: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return generate_value(builder, args[0], x)

        return x(x), generate

    function.__name__ = name
    function.__doc__ = doc
    return intrinsic(function)


def _is_float(kind: Any) -> bool:
    return isinstance(kind, types.Float)


def _call(builder: Any, name: str, args: list[Any]) -> Any:
    kind = ir.FunctionType(args[0].type, [a.type for a in args])
    suffix = {"float": "f32", "double": "f64"}.get(str(args[0].type), str(args[0].type))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.{suffix}")
    return builder.call(function, args)


def _total(builder: Any, x: Any, y: Any, kind: Any) -> Any:
    return builder.fadd(x, y, flags=("reassoc",)) if _is_float(kind) else builder.add(x, y)


def _product(builder: Any, x: Any, y: Any, kind: Any) -> Any:
    return builder.fmul(x, y, flags=("reassoc",)) if _is_float(kind) else builder.mul(x, y)


def _largest(builder: Any, x: Any, y: Any, kind: Any) -> Any:
    if _is_float(kind):
        return _call(builder, "maximum", [x, y])
    compare = builder.icmp_signed if kind.signed else builder.icmp_unsigned
    return builder.select(compare(">", x, y), x, y)


def _smallest(builder: Any, x: Any, y: Any, kind: Any) -> Any:
    if _is_float(kind):
        return _call(builder, "minimum", [x, y])
    compare = builder.icmp_signed if kind.signed else builder.icmp_unsigned
    return builder.select(compare("<", x, y), x, y)


def _larger(builder: Any, x: Any, y: Any, kind: Any) -> Any:
    if not _is_float(kind):
        return _largest(builder, x, y, kind)
    found = builder.select(builder.fcmp_ordered(">=", x, y), x, y)
    return builder.select(builder.fcmp_unordered("uno", x, x), x, found)


def _smaller(builder: Any, x: Any, y: Any, kind: Any) -> Any:
    if not _is_float(kind):
        return _smallest(builder, x, y, kind)
    found = builder.select(builder.fcmp_ordered("<=", x, y), x, y)
    return builder.select(builder.fcmp_unordered("uno", x, x), x, found)


total = _binary("total", "Add, in any order over a loop.", _total)
product = _binary("product", "Multiply, in any order over a loop.", _product)
largest = _binary("largest", "Return the larger in a fold; NaN stays.", _largest)
smallest = _binary("smallest", "Return the smaller in a fold; NaN stays.", _smallest)
both = _binary("both", "Whether both hold.", lambda b, x, y, kind: b.and_(x, y))
either = _binary("either", "Whether one holds.", lambda b, x, y, kind: b.or_(x, y))
differ = _binary("differ", "Whether one holds and the other not.", lambda b, x, y, kind: b.xor(x, y))
larger = _binary("larger", "Return the larger of two elements, NaN if one is.", _larger)
smaller = _binary("smaller", "Return the smaller of two elements, NaN if one is.", _smaller)
divided = _binary("divided", "Divide indices, which are not negative.", lambda b, x, y, k: b.udiv(x, y))
remaining = _binary("remaining", "Return what is left.", lambda b, x, y, k: b.urem(x, y))
quotient = _binary("quotient", "Divide floats.", lambda b, x, y, kind: b.fdiv(x, y))
root = _unary("root", "Return the square root.", lambda b, x, kind: _call(b, "sqrt", [x]))
floor = _unary("floor", "Round down.", lambda b, x, kind: _call(b, "floor", [x]))
ceil = _unary("ceil", "Round up.", lambda b, x, kind: _call(b, "ceil", [x]))
trunc = _unary("trunc", "Round towards 0.", lambda b, x, kind: _call(b, "trunc", [x]))
rint = _unary("rint", "Round to the nearest, ties to even.", lambda b, x, kind: _call(b, "rint", [x]))
magnitude = _unary(
    "magnitude",
    "Return the absolute value.",
    lambda b, x, kind: (
        _call(b, "fabs", [x])
        if _is_float(kind)
        else b.select(b.icmp_signed("<", x, x.type(0)), b.neg(x), x)
    ),
)
opposite = _unary(
    "opposite",
    "Negate.",
    lambda b, x, kind: b.fneg(x) if _is_float(kind) else b.neg(x),
)
inverse = _unary("inverse", "Return whether it does not hold.", lambda b, x, kind: b.not_(x))


@intrinsic
def choose(typingctx: Any, condition: Any, x: Any, y: Any) -> Any:
    """Return ``x`` where a condition holds, else ``y``, without a branch."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.select(args[0], args[1], args[2])

    return x(types.boolean, x, x), generate
