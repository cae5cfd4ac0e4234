"""Facts about ops that a declaration states beside its rule, checked and told in words.

Passes, executors and devices go by them, and by nothing else that they know of an op: an op of a
plugin states the same facts to the same effect as one of our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from headrace.errors import PluginError, shown

if TYPE_CHECKING:
    from headrace.graph.schema import InputParam, OpSchema

Effect = Literal["reads", "draws", "observes", "changes"]

# What each effect means to those who look at an op.
EFFECTS: dict[str, str] = {
    "reads": "reads state: merged with equal reads between which nothing changes, never folded",
    "draws": "draws random numbers: never folded or merged",
    "observes": "observes what lies outside the program: never folded or merged",
    "changes": "changes state or what lies outside: runs whenever it is asked for, and just once",
}

Reach = Literal["", "files", "python"]

# What each reach means to those who look at an op.
REACHES: dict[str, str] = {
    "files": "writes files where its inputs say: saved models do not run it by themselves",
    "python": "calls Python of the process that built it: saved models do not hold it",
}

_NONE: frozenset[str] = frozenset()
_CHANGES = frozenset(("changes",))


def effects_of(op: str, stateful: bool, effects: str | Sequence[str]) -> frozenset[str]:
    """Return the effects that a declaration states.

    Raises:
        PluginError: if there is no such effect, or ``stateful`` is stated, too.
    """
    if not effects:
        return _CHANGES if stateful else _NONE
    if stateful:
        raise PluginError(
            f"op {op!r}: stateful=True is short for effects='changes'; state effects alone"
        )
    stated = frozenset((effects,) if isinstance(effects, str) else effects)
    for effect in stated:
        if effect not in EFFECTS:
            raise PluginError(
                f"op {op!r}: effects are {', '.join(map(repr, EFFECTS))}; got {shown(effect)}"
            )
    return stated


def checked_reach(op: str, reaches: str) -> str:
    """Return what an op reaches.

    Raises:
        PluginError: if there is no such reach.
    """
    if reaches and reaches not in REACHES:
        raise PluginError(
            f"op {op!r}: reaches is one of {', '.join(map(repr, REACHES))} or empty, got "
            f"{shown(reaches)}"
        )
    return reaches


def with_host_inputs(
    op: str, inputs: tuple[InputParam, ...], names: Sequence[str]
) -> tuple[InputParam, ...]:
    """Return the parameters of an op, those of the names marked as wanted on the host.

    Raises:
        PluginError: if a name is none of a tensor parameter.
    """
    if not names:
        return inputs
    check_names(op, "host_inputs", inputs, names)
    return tuple(replace(p, on_host=True) if p.name in names else p for p in inputs)


def check_names(op: str, fact: str, inputs: tuple[InputParam, ...], names: Sequence[str]) -> None:
    """Refuse a fact that names what is no tensor parameter.

    Raises:
        PluginError: if a name is none of a tensor parameter.
    """
    known = [p.name for p in inputs]
    if isinstance(names, str) or not all(name in known for name in names):
        raise PluginError(
            f"op {op!r}: {fact} is a list of names of tensors that the op takes "
            f"({', '.join(known) or 'it takes none'}), got {shown(names)}"
        )


def check_commutative(op: str, inputs: tuple[InputParam, ...]) -> None:
    """Refuse an op that is stated to be commutative, and does not take two tensors.

    Raises:
        PluginError: if it takes others.
    """
    if len(inputs) != 2 or any(p.variadic or p.optional for p in inputs):
        raise PluginError(f"op {op!r} is commutative, so it takes two tensors, got {len(inputs)}")


def check_total(op: str, effects: frozenset[str], waits: bool) -> None:
    """Refuse an op that is stated to be total, and may wait or has effects.

    Raises:
        PluginError: if it does.
    """
    if effects or waits:
        what = f"has effects ({', '.join(sorted(effects))})" if effects else "may wait"
        raise PluginError(
            f"op {op!r}: what is total may be computed where the program would not have run it, "
            f"and the op {what}; drop total=True"
        )


def told(schema: OpSchema) -> list[str]:
    """Return the facts of an op, each as a few words."""
    lines = [EFFECTS[effect] for effect in EFFECTS if effect in schema.effects]
    held = (
        (schema.blocking, "may wait for something outside the step"),
        (schema.calls_out, "calls the program's own code, which may wait"),
        (schema.elementwise, "elementwise"),
        (schema.expression is not None, "states what each element is, for compilers"),
        (schema.reduction, "a reduction"),
        (schema.commutative, "commutative"),
        (schema.view, "a view: its first input under another shape at most"),
        (schema.accumulates, "adds up what meets in one place, on some devices in any order"),
        (schema.repeats, "repeats elements of its input"),
        (schema.nonnegative, "never negative"),
        (schema.total, "never fails where shapes are known, so that it may run unasked"),
        (schema.concurrent, "what it yields is made to be used in any order"),
        (schema.concerted, "goes on only together with steps of other sessions"),
        (schema.exact, "rounded correctly, element by element"),
        (schema.keeps_inputs, "may keep its inputs beyond the call"),
        (schema.may_be_dead, "its outputs may be dead"),
        (schema.builtin, "run by the runtime itself, on every device"),
    )
    lines += [text for holds, text in held if holds]
    if schema.reaches:
        lines.append(REACHES[schema.reaches])
    on_host = [p.name for p in schema.inputs if p.on_host]
    if on_host:
        lines.append(f"kernels get {', '.join(on_host)} on the host")
    shared = [p.name for p in schema.inputs if schema.may_share(p)]
    if schema.aliases is not None:
        lines.append(f"outputs may share the memory of {', '.join(shared) or 'no input'}")
    return lines
