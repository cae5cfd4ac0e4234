"""Which operations of a segment oneDNN computes."""

from __future__ import annotations

import logging

from headrace.graph.operation import Operation
from headrace_cpu.onednn.claim_convolution import CONVOLUTIONS, claim_convolution
from headrace_cpu.onednn.claim_product import claim_product, worthwhile
from headrace_cpu.onednn.library import Library, OnednnError, load
from headrace_cpu.program.claims import Claims
from headrace_cpu.program.instruction import Instruction
from headrace_cpu.program.settings import CompileSettings

_LOG = logging.getLogger(__name__)


def claim_onednn(claims: Claims, settings: CompileSettings) -> None:
    """Add instructions of oneDNN for the operations that it computes well.

    Does nothing where the library is not there, or is not wanted. What oneDNN refuses stays
    unclaimed. The library is loaded only where there is something for it to compute.
    """
    if not settings.onednn:
        return
    wanted = [op for op in claims.operations if _wanted(claims, op)]
    library = load() if wanted else None
    if library is None:
        return
    for op in wanted:
        if not claims.free(op):
            continue
        try:
            instruction = _instruction(claims, op, library, settings.threads)
        except OnednnError as problem:
            _LOG.debug("%s stays with other kernels: %s", op.name, problem)
            continue
        if instruction is not None:
            claims.add(instruction)


def _wanted(claims: Claims, op: Operation) -> bool:
    if not claims.free(op) or op.control_inputs:
        return False
    return op.type in CONVOLUTIONS or worthwhile(op)


def _instruction(
    claims: Claims, op: Operation, library: Library, threads: int
) -> Instruction | None:
    if op.type in CONVOLUTIONS:
        return claim_convolution(claims, op, library, threads)
    return claim_product(claims, op, library, threads)
