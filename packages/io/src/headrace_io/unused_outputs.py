"""The pass that drops unused outputs: keys of records, and strings that are parsed again at once.

Records go from a reader to a parser, and their values to ``decode_raw``, as rows of bytes where all
that read them take these. A string of Python's for each would only be made to be joined again.
"""

from __future__ import annotations

from typing import Any

from headrace import Operation, Tensor
from headrace.extend.passes import PassContext, Rewriter, StepGraph

_READS = frozenset(("ReaderRead", "ReaderReadUpTo"))
_MAKERS = _READS | {"ParseExample"}
# Ops whose first input may be rows of bytes.
_TAKERS = frozenset(("DecodeRaw", "ParseExample"))


def spare_unlooked(step: StepGraph, context: PassContext) -> StepGraph:
    """Let readers make no keys, and readers and parsers no strings, that nothing else looks at."""
    makers = [op for op in step.graph.operations if op.type in _MAKERS]
    if not makers:
        return step
    uses: dict[Tensor, list[Operation | None]] = {tensor: [None] for tensor in step.fetches}
    for op in step.graph.operations:
        for i, tensor in enumerate(op.inputs):
            takes = i == 0 and op.type in _TAKERS and not op.attrs.get("single", False)
            uses.setdefault(tensor, []).append(op if takes else None)
    changes = {op: found for op in makers if (found := _changes(op, uses))}
    if not changes:
        return step
    rewriter = Rewriter("spare-unlooked")
    for op in step.graph.operations:
        changed = changes.get(op)
        if changed is None:
            rewriter.copy(op)
            continue
        new = rewriter.graph.add_operation(
            op.schema,
            name=op.name,
            inputs=[rewriter.tensor(tensor) for tensor in op.inputs],
            arity=op.arity,
            attrs={**op.attrs, **changed},
            specs=[tensor.spec for tensor in op.outputs],
            control_inputs=rewriter.controls(op.control_inputs),
            device=op.device_name,
            colocated_with=rewriter.controls(op.colocated_with),
            site=op.site,
            origin=op.origin,
        )
        rewriter.stand_for(op, new)
    return rewriter.finish(step)


def _changes(op: Operation, uses: dict[Tensor, list[Operation | None]]) -> dict[str, Any]:
    """Return the attributes that an operation gets."""
    found: dict[str, Any] = {}
    if op.type == "ParseExample":
        keys, shapes = op.attrs["dense_keys"], op.attrs["dense_shapes"]
        dense = op.outputs[len(op.outputs) - len(keys) :]
        rows = tuple(
            key
            for key, shape, tensor in zip(keys, shapes, dense, strict=True)
            if tensor.dtype.kind == "string" and shape.rank == 0 and _goes_to_takers(tensor, uses)
        )
        if rows and not op.attrs["single"]:
            found["in_rows"] = rows
        return found
    if op.outputs[0] not in uses:
        found["keyed"] = False
    if op.type == "ReaderReadUpTo" and _goes_to_takers(op.outputs[1], uses):
        found["in_rows"] = True
    return found


def _goes_to_takers(tensor: Tensor, uses: dict[Tensor, list[Operation | None]]) -> bool:
    """Whether rows of bytes do for all that read a tensor, on the device where they are made.

    What goes from device to device is of the kinds that all tensors are of.
    """
    maker = tensor.op
    # A reader is where its handle is.
    beside = [maker, *(t.op for t in maker.inputs if t.dtype.kind == "resource")]
    takers = uses.get(tensor, [])
    return (
        bool(takers)
        and all(
            op is not None
            and op.device_name == maker.device_name
            and not (op.colocated_with or maker.colocated_with)
            for op in takers
        )
        and all(op.device_name == maker.device_name for op in beside)
    )
