"""Functions with branches or loops inside, which loops over arrays still take as vector code.

Loops with branches do not become vector code, but loops with calls do where the callee states
vector forms of itself (LLVM's "vector-function-abi-variant"). So such a function is written several
times from one text: for one number, and for vectors of 128 to 512 bits.

References:
    LLVM Language Reference Manual, "Call Site Attributes", vector-function-abi-variant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir

from headrace_cpu.fusion.functions.emitter import Emitter, Value
from headrace_cpu.native.compiler import STAYS

# How many numbers the vector forms take: those of 128 to 512 bits.
_VECTOR_BITS = (128, 256, 512)
# What lets calls become vector code: they read and write nothing, and return. llvmlite knows but
# some of LLVM's attributes, so they are added past its check.
_PURE = "memory(none) nounwind willreturn"


def call_formed(
    e: Emitter, name: str, args: Sequence[Value], body: Callable[..., Value], traits: str = STAYS
) -> Value:
    """Call a function that has vector forms.

    Args:
        e: The emitter.
        name: What the function is called, once per module and format.
        args: Numbers.
        body: Writes its result, from ``(emitter, *args)``, where the emitter's values may be
            vectors; it may write blocks.
        traits: Further attributes, in LLVM's words; by default that it is not inlined.
    """
    module = e.builder.module
    full = f"{name}_{e.form.dtype}"
    if e.lanes is not None:
        full = f"{full}_{e.lanes}"
    function = module.globals.get(full)
    if function is None:
        function = _form(e, full, len(args), e.lanes, body, traits)
        if e.lanes is None:
            _state_forms(e, function, len(args), body, traits)
    return e.builder.call(function, args)


def _state_forms(
    e: Emitter, function: Any, arity: int, body: Callable[..., Value], traits: str
) -> None:
    """Write the vector forms of a function of single numbers, and state them."""
    variants = []
    for lanes in (bits // e.form.bits for bits in _VECTOR_BITS):
        name = f"{function.name}_{lanes}"
        if name not in e.builder.module.globals:
            _form(e, name, arity, lanes, body, traits)
        variants.append(f"_ZGV_LLVM_N{lanes}{'v' * arity}_{function.name}({name})")
    stated = ",".join(variants)
    set.add(function.attributes, f'"vector-function-abi-variant"="{stated}"')


def _form(
    e: Emitter, name: str, arity: int, lanes: int | None, body: Callable[..., Value], traits: str
) -> Any:
    """Return the function for vectors of so many numbers, or for one."""
    # Seen from outside until it is inlined: nothing but an attribute names the vector forms.
    inner = Emitter(None, e.form, single=e.single, lanes=lanes)
    kind = ir.FunctionType(inner.real, [inner.real] * arity)
    function = ir.Function(e.builder.module, kind, name)
    set.add(function.attributes, f"noinline {_PURE} {traits}".strip())
    inner.builder = ir.IRBuilder(function.append_basic_block("entry"))
    inner.builder.ret(body(inner, *function.args))
    return function


def where_any(e: Emitter, condition: Value, usual: Value, otherwise: Callable[[], Value]) -> Value:
    """Return `usual`, and what another function writes where a condition holds.

    The latter is computed only where it is wanted in some place of a vector.
    """
    b = e.builder
    before, rare, end = b.block, b.append_basic_block("rare"), b.append_basic_block("end")
    b.cbranch(e.any(condition), rare, end)
    b.position_at_end(rare)
    chosen = b.select(condition, otherwise(), usual)
    after = b.block
    b.branch(end)
    b.position_at_end(end)
    result = b.phi(usual.type)
    result.add_incoming(usual, before)
    result.add_incoming(chosen, after)
    return result


def repeat(
    e: Emitter,
    values: Sequence[Value],
    turn: Callable[[Value, Sequence[Value]], tuple[Sequence[Value], Value]],
    most: int,
) -> list[Value]:
    """Write a loop, and return what its values end as.

    Args:
        e: The emitter.
        values: What they begin as.
        turn: Writes a turn of the loop: from its number, counted from 1 on, as a number of the
            format, and the values it returns the values after it, and where there is to be another
            one. In places of a vector where there is none the values stay.
        most: How many turns there are at most.
    """
    b = e.builder
    before, head, end = b.block, b.append_basic_block("turn"), b.append_basic_block("done")
    b.branch(head)
    b.position_at_end(head)

    def carried(first: Value) -> Value:
        place = b.phi(first.type)
        place.add_incoming(first, before)
        return place

    number = carried(e.constant(1.0))
    inside = [carried(e.constant(value)) for value in values]
    going = None if e.lanes is None else carried(e.truth(value=True))
    after, more = turn(number, inside)
    after = [e.constant(value) for value in after]
    following = e.add(number, 1.0)
    more = e.all_of(more, e.compare(number, "<", float(most)))
    if going is not None:
        pairs = zip(after, inside, strict=True)
        after = [e.select(going, new, old) for new, old in pairs]
        more = e.all_of(going, more)
        going.add_incoming(more, b.block)
    number.add_incoming(following, b.block)
    for place, value in zip(inside, after, strict=True):
        place.add_incoming(value, b.block)
    b.cbranch(e.any(more), head, end)
    b.position_at_end(end)
    return after
