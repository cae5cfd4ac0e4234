"""Which operations of a segment oneDNN computes."""

from __future__ import annotations

import logging

from headrace_cpu.onednn.claim_convolution import claim_convolution
from headrace_cpu.onednn.claim_product import claim_product
from headrace_cpu.onednn.library import OnednnError, load
from headrace_cpu.program.claims import Claims
from headrace_cpu.program.settings import CompileSettings

_LOG = logging.getLogger(__name__)


def claim_onednn(claims: Claims, settings: CompileSettings) -> None:
    """Add instructions of oneDNN for the operations that it computes well.

    Does nothing where the library is not there, or is not wanted. What oneDNN refuses stays
    unclaimed.
    """
    library = load() if settings.onednn else None
    if library is None:
        return
    for op in claims.operations:
        if not claims.free(op) or op.control_inputs:
            continue
        for claim in (claim_convolution, claim_product):
            try:
                instruction = claim(claims, op, library, settings.threads)
            except OnednnError as problem:
                _LOG.debug("%s stays with other kernels: %s", op.name, problem)
                continue
            if instruction is not None and claims.add(instruction):
                break
