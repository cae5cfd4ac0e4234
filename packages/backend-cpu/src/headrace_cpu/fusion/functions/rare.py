"""Arguments so rare that their results come from a slower function, behind a branch.

Loops with branches do not become vector code, but loops with calls do where the callee states
vector forms of itself (LLVM's "vector-function-abi-variant"). So the choice is a function: of one
argument and its usual result, it returns the latter unless the argument is beyond a bound. Its
vector forms look whether any of their arguments is, and call the slower function if so. Once
loops are vector code, the compiler inlines them: what is left of each is a comparison and a jump
that is never taken.

References:
    LLVM Language Reference Manual, "Call Site Attributes", vector-function-abi-variant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from headrace_cpu.fusion.functions.emitter import Emitter, Value
from headrace_cpu.native.compiler import INLINED_LATE

# How many numbers the vector forms take: those of 128 to 512 bits.
_VECTOR_BITS = (128, 256, 512)
_INT = ir.IntType(64)
# What lets calls become vector code: they read and write nothing, and return. llvmlite knows but
# some of LLVM's attributes, so they are added past its check.
_PURE = "memory(none) nounwind willreturn"


def unless_rare(
    e: Emitter, name: str, x: Value, usual: Value, bound: float, slow: Callable[..., Value]
) -> Value:
    """Return `usual` where ``abs(x) <= bound`` or x is NaN, else what another function writes.

    Args:
        e: The emitter.
        name: What the function is called, once per format.
        x: The argument.
        usual: The result of all that is not rare.
        bound: The largest usual argument.
        slow: Writes the result of the others, from ``(emitter, x)``.
    """
    module = e.builder.module
    full = f"{INLINED_LATE}{name}_{e.form.dtype}"
    choice = module.globals.get(full)
    if choice is None:
        choice = _choice(e, full, bound, slow)
    return e.builder.call(choice, [x, usual])


def _choice(e: Emitter, name: str, bound: float, slow: Callable[..., Value]) -> Any:
    """Return the choice as a function of a module, with its vector forms."""
    many = _slow_loop(e, name, slow)
    widths = [bits // e.form.bits for bits in _VECTOR_BITS]
    variants = []
    for width in widths:
        form = _form(e, f"{name}_{width}", bound, many, width)
        variants.append(f"_ZGV_LLVM_N{width}vv_{name}({form.name})")
    choice = _form(e, name, bound, many, None)
    stated = ",".join(variants)
    set.add(choice.attributes, f'"vector-function-abi-variant"="{stated}"')
    return choice


def _slow_loop(e: Emitter, name: str, slow: Callable[..., Value]) -> Any:
    """Return ``void f(T *x, i64 count)``, which replaces arguments by their slow results."""
    kind = ir.FunctionType(ir.VoidType(), [e.real.as_pointer(), _INT])
    plain = name.removeprefix(INLINED_LATE)
    function = ir.Function(e.builder.module, kind, f"headrace_slow_{plain}")
    function.linkage = "internal"
    # Tables that it reads are not what it writes.
    function.args[0].add_attribute("noalias")
    set.add(function.attributes, "cold noinline nounwind optsize")
    entry, loop, end = (function.append_basic_block(n) for n in ("entry", "loop", "end"))
    ir.IRBuilder(entry).branch(loop)
    b = ir.IRBuilder(loop)
    index = b.phi(_INT)
    index.add_incoming(ir.Constant(_INT, 0), entry)
    place = b.gep(function.args[0], [index], inbounds=True)
    b.store(slow(Emitter(b, e.form), b.load(place)), place)
    following = b.add(index, ir.Constant(_INT, 1))
    index.add_incoming(following, loop)
    b.cbranch(b.icmp_unsigned("<", following, function.args[1]), loop, end)
    ir.IRBuilder(end).ret_void()
    return function


def _form(e: Emitter, name: str, bound: float, many: Any, width: int | None) -> Any:
    """Return the choice for vectors of so many numbers, or for one."""
    module = e.builder.module
    kind = e.real if width is None else ir.VectorType(e.real, width)
    function = ir.Function(module, ir.FunctionType(kind, [kind, kind]), name)
    # Seen from outside until it is inlined: nothing but an attribute names the vector forms.
    set.add(function.attributes, f"noinline {_PURE}")
    entry, rare, end = (function.append_basic_block(n) for n in ("entry", "rare", "end"))
    x, usual = function.args
    b = ir.IRBuilder(entry)
    size = b.call(_absolute(module, e.form.bits, kind, width), [x])
    limit = ir.Constant(e.real, bound)
    if width is not None:
        limit = ir.Constant(kind, [limit] * width)
    beyond = b.fcmp_ordered(">", size, limit)
    found = beyond
    if width is not None:
        bits = b.bitcast(beyond, ir.IntType(width))
        found = b.icmp_unsigned("!=", bits, ir.Constant(ir.IntType(width), 0))
    room = b.alloca(kind)
    b.cbranch(found, rare, end)
    b = ir.IRBuilder(rare)
    b.store(x, room)
    count = ir.Constant(_INT, width or 1)
    b.call(many, [b.bitcast(room, e.real.as_pointer()), count])
    chosen = b.select(beyond, b.load(room), usual)
    b.branch(end)
    b = ir.IRBuilder(end)
    result = b.phi(kind)
    result.add_incoming(usual, entry)
    result.add_incoming(chosen, rare)
    b.ret(result)
    return function


def _absolute(module: Any, bits: int, kind: Any, width: int | None) -> Any:
    """Return LLVM's function of absolute values; llvmlite names but those of single numbers."""
    name = f"llvm.fabs.{f'v{width}' if width else ''}f{bits}"
    known = module.globals.get(name)
    return known or ir.Function(module, ir.FunctionType(kind, [kind]), name)
