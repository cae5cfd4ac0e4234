"""Arguments so rare that their results come from a slower function, behind a branch.

The choice is a function with vector forms: of one argument and its usual result, it returns the
latter unless the argument is rare. Its forms look whether any of their arguments is, and call the
slower function if so. Once loops are vector code, the compiler inlines them: what is left of each
is a comparison and a jump that is never taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from headrace_cpu.fusion.functions.emitter import Emitter, Value
from headrace_cpu.fusion.functions.forms import call_formed, where_any
from headrace_cpu.native.compiler import INLINED_LATE

_INT = ir.IntType(64)
_COLD = "cold noinline nounwind"

# Writes a function of one number.
_Written = Callable[[Emitter, Value], Value]


def unless_rare(
    e: Emitter,
    name: str,
    x: Value,
    usual: Value,
    rare: _Written,
    slow: _Written,
    *,
    reads_tables: bool = False,
) -> Value:
    """Return `usual`, or what another function writes where an argument is rare.

    Args:
        e: The emitter.
        name: What the function is called, once per format.
        x: The argument.
        usual: The result of all that is not rare.
        rare: Writes whether an argument is rare.
        slow: Writes the result of those.
        reads_tables: Whether it reads memory: it is then computed for one number after the other.
    """

    def choice(e: Emitter, x: Value, usual: Value) -> Value:
        apply = _one_by_one if reads_tables else _at_once
        return where_any(e, rare(e, x), usual, lambda: apply(e, name, x, slow))

    return call_formed(e, INLINED_LATE + name, (x, usual), choice, "")


def _at_once(e: Emitter, name: str, x: Value, slow: _Written) -> Value:
    """Call the slow function."""
    lanes = "" if e.lanes is None else f"_{e.lanes}"
    full = f"headrace_slow_{name}_{e.form.dtype}{lanes}"
    module = e.builder.module
    function = module.globals.get(full)
    if function is None:
        function = ir.Function(module, ir.FunctionType(e.real, [e.real]), full)
        function.linkage = "internal"
        set.add(function.attributes, _COLD)
        inner = Emitter(None, e.form, single=e.single, lanes=e.lanes)
        inner.builder = ir.IRBuilder(function.append_basic_block("entry"))
        inner.builder.ret(slow(inner, function.args[0]))
    return e.builder.call(function, [x])


def _one_by_one(e: Emitter, name: str, x: Value, slow: _Written) -> Value:
    """Call the slow function for each number of a vector."""
    module, b = e.builder.module, e.builder
    full = f"headrace_slow_{name}_{e.form.dtype}"
    many = module.globals.get(full) or _slow_loop(e, full, slow)
    with b.goto_entry_block():
        room = b.alloca(e.real)
    b.store(x, room)
    number = ir.FloatType() if e.form.bits == 32 else ir.DoubleType()
    b.call(many, [b.bitcast(room, number.as_pointer()), ir.Constant(_INT, e.lanes or 1)])
    return b.load(room)


def _slow_loop(e: Emitter, name: str, slow: _Written) -> Any:
    """Return ``void f(T *x, i64 count)``, which replaces arguments by their slow results."""
    inner = Emitter(None, e.form, single=e.single)
    kind = ir.FunctionType(ir.VoidType(), [inner.real.as_pointer(), _INT])
    function = ir.Function(e.builder.module, kind, name)
    function.linkage = "internal"
    # Tables that it reads are not what it writes.
    function.args[0].add_attribute("noalias")
    set.add(function.attributes, f"{_COLD} optsize")
    entry, loop, end = (function.append_basic_block(n) for n in ("entry", "loop", "end"))
    ir.IRBuilder(entry).branch(loop)
    inner.builder = b = ir.IRBuilder(loop)
    index = b.phi(_INT)
    index.add_incoming(ir.Constant(_INT, 0), entry)
    place = b.gep(function.args[0], [index], inbounds=True)
    b.store(slow(inner, b.load(place)), place)
    following = b.add(index, ir.Constant(_INT, 1))
    index.add_incoming(following, loop)
    b.cbranch(b.icmp_unsigned("<", following, function.args[1]), loop, end)
    ir.IRBuilder(end).ret_void()
    return function
