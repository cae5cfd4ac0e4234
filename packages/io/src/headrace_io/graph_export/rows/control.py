"""Operations that only order others, and random numbers."""

from __future__ import annotations

from headrace_io.graph_export.node import ExportedNode, ExportTable

ROWS = ExportTable()

ROWS.same("NoOp", types="")


@ROWS.add("Assert")
def _assert(node: ExportedNode) -> list[str]:
    kinds = [tensor.dtype for tensor in node.op.inputs[1:]]
    node.emit("Assert", *node.inputs, T=kinds, summarize=node.attr("summarize"))
    return []


@ROWS.add("RandomUniform", "RandomStandardNormal", "TruncatedNormal")
def _random(node: ExportedNode) -> str:
    first, second = _seeds(node)
    return node.emit(
        node.op.type,
        *node.inputs,
        T=node.dtype(),
        dtype=node.attr("dtype"),
        seed=first,
        seed2=second,
    )


@ROWS.add("StatelessRandomUniform", "StatelessRandomNormal", "StatelessTruncatedNormal")
def _stateless(node: ExportedNode) -> str:
    return node.emit(
        node.op.type,
        *node.inputs,
        T=node.dtype(),
        Tseed=node.dtype(1),
        dtype=node.attr("dtype"),
    )


def _seeds(node: ExportedNode) -> tuple[int, int]:
    """Return the seeds of the graph and of the operation; the numbers drawn differ anyway."""
    seeds = node.attr("seeds")
    if not isinstance(seeds, tuple) or len(seeds) != 2:
        return 0, 0
    return tuple(0 if seed is None else int(seed) for seed in seeds)  # type: ignore[return-value]
