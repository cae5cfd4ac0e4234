"""What is fuzzed: ops by their schemas and samples, and functions by signatures and seeds."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from headrace.extend.ops import OPS, REQUIRED, Kind, OpSchema
from headrace_testing.fuzz.seeds import SEEDS
from headrace_testing.fuzz.seeds.rows import Seed
from headrace_testing.sample import Row

# Why ops and functions are not called, by what they have in common.
_BUILTIN = "the runtime itself runs it"
_BLOCKING = "it may wait for something outside the step"
_FUNCTIONS = "it runs functions of the program"
_HANDLES = "it takes the handle of a table, a queue, a lock or a list, which its class makes"
_HANDLED = (
    "Queue",
    "LookupTable",
    "TensorList",
    "Mutex",
    "FIFOQueue",
    "PaddingFIFOQueue",
    "PriorityQueue",
    "RandomShuffleQueue",
    "Barrier",
    "Stag",
    "Unstage",
    "ConditionalAccumulator",
    "SparseConditionalAccumulator",
    "Accumulator",
    "SparseAccumulator",
    "SyncReplicas",
    "ModelEvent",
)
_SKIPPED_OPS = {
    "Call": _FUNCTIONS,
    "If": _FUNCTIONS,
    "While": _FUNCTIONS,
    "PyFunc": _FUNCTIONS,
    "PyFuncEffect": _FUNCTIONS,
    "PyFuncStateless": _FUNCTIONS,
    "Parameter": _BUILTIN,
    "Return": _BUILTIN,
    "VarHandle": "variables make it",
    "Placeholder": "it is fed, not computed",
    "Timestamp": "it differs from call to call",
    "GetSessionHandle": "each call yields another handle",
}
# Functions that take no tensors, or functions of the program.
_SKIPPED_PARAMETERS = (
    "fn",
    "func",
    "f",
    "pred_fn_pairs",
    "branch_fns",
    "loop_vars",
    "cell",
    "cell_fw",
    "true_fn",
    "op_func",
)
_SKIPPED_FUNCTIONS = {
    "assert_variables_initialized": "it takes variables, not tensors",
    "initialize_variables": "it takes variables, not tensors",
    "variables_initializer": "it takes variables, not tensors",
    "report_uninitialized_variables": "it takes variables, not tensors",
    "sparse_mask": "it takes IndexedSlices, which gradients make",
    "assert_shapes": "it takes pairs of tensors and names of sizes",
    "get_variable": "it makes variables of all shapes, which do not run",
    "get_local_variable": "it makes variables of all shapes, which do not run",
    "timestamp": _SKIPPED_OPS["Timestamp"],
    "get_session_handle": _SKIPPED_OPS["GetSessionHandle"],
}


@dataclass(frozen=True, slots=True)
class Slot:
    """A parameter of a target.

    Attributes:
        name: Its name.
        kind: The dtypes that it takes, where it is an input of an op.
        hint: Its annotation.
        default: Its default, ``REQUIRED`` where it has none.
        variadic: Whether it takes a list of tensors.
        spread: Whether it takes any number of arguments: ``*inputs``.
    """

    name: str
    kind: Kind | None = None
    hint: Any = Any
    default: Any = REQUIRED
    variadic: bool = False
    spread: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """Something that is called.

    Attributes:
        name: ``"MatMul"`` for an op, ``"hr.matmul"`` for a function.
        function: What is called.
        slots: Its parameters.
        seeds: Arguments of calls that are right, by parameter, with makers in the places of
            arrays.
    """

    name: str
    function: Callable[..., Any]
    slots: tuple[Slot, ...]
    seeds: tuple[dict[str, Any], ...] = ()


def skip_reason(schema: OpSchema) -> str:
    """Return why an op is not fuzzed, an empty text where it is."""
    if schema.builtin:
        return _BUILTIN
    if schema.type in _SKIPPED_OPS:
        return _SKIPPED_OPS[schema.type]
    if schema.type.startswith(_HANDLED):
        return _HANDLES
    return _BLOCKING if schema.blocking else ""


def op_target(schema: OpSchema, rows: Iterable[Row] = ()) -> Target:
    """Return the target of an op.

    Args:
        schema: The op.
        rows: Samples and reject rows; those of other ops are passed over.
    """
    slots = [
        Slot(p.name, p.kind, variadic=p.variadic, default=None if p.optional else REQUIRED)
        for p in schema.inputs
    ]
    slots += [Slot(a.name, hint=a.hint, default=a.default) for a in schema.attrs]
    names = [p.name for p in schema.inputs]
    seeds = [
        {**dict(zip(names, row.inputs, strict=False)), **row.attrs}
        for row in rows
        if row.op == schema.type
    ]
    return Target(schema.type, schema.function, tuple(slots), tuple(seeds))


def function_target(name: str, function: Callable[..., Any], seeds: Iterable[Seed] = ()) -> Target:
    """Return the target of a function that builds with ops.

    Args:
        name: How reports call it.
        function: The function.
        seeds: Calls that are right, with makers in the places of arrays.
    """
    slots = []
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        if parameter.name == "name" or parameter.kind is parameter.VAR_KEYWORD:
            continue
        default = REQUIRED if parameter.default is parameter.empty else parameter.default
        spread = parameter.kind is parameter.VAR_POSITIONAL
        slots.append(Slot(parameter.name, None, parameter.annotation, default, spread=spread))
    bound = [dict(signature.bind(*row.args, **row.kwargs).arguments) for row in seeds]
    known = {slot.name for slot in slots}
    kept = tuple({k: v for k, v in row.items() if k in known} for row in bound)
    return Target(name, function, tuple(slots), kept)


@functools.cache
def core_targets() -> tuple[dict[str, Target], dict[str, str]]:
    """Return the targets of core by name, and why the other ops and functions are none."""
    # lazy: the samples are many, and who fuzzes ops of a plugin needs none
    from headrace.extend.functions import public_functions
    from headrace_testing.samples import SAMPLES

    rows = [row for listed in SAMPLES.values() for row in listed]
    by_op: dict[str, list[Row]] = {}
    for row in rows:
        by_op.setdefault(row.op, []).append(row)
    targets: dict[str, Target] = {}
    skipped: dict[str, str] = {}
    for schema in sorted(OPS, key=lambda schema: schema.type):
        if not schema.function.__module__.startswith("headrace."):
            continue
        reason = skip_reason(schema)
        if reason:
            skipped[schema.type] = reason
        else:
            targets[schema.type] = op_target(schema, by_op.get(schema.type, ()))
    for public in public_functions():
        name = public.names[0]
        if public.schema is not None:
            continue
        own = name.rpartition(".")[2]
        target = function_target(name, public.function, SEEDS.get(name[3:], ()))
        if own in _SKIPPED_FUNCTIONS:
            skipped[name] = _SKIPPED_FUNCTIONS[own]
        elif not target.slots:
            skipped[name] = "it takes no arguments"
        elif any(slot.name in _SKIPPED_PARAMETERS for slot in target.slots):
            skipped[name] = _FUNCTIONS
        else:
            targets[name] = target
    return targets, skipped
