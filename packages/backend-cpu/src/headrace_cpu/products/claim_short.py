"""Which products of a segment are computed by the kernel for a few rows."""

from __future__ import annotations

from contextlib import suppress

from headrace.graph.operation import Operation
from headrace_cpu.native.assembly import vector_bytes
from headrace_cpu.native.threads import open_mp
from headrace_cpu.onednn.claim_product import claim_product
from headrace_cpu.onednn.instruction import PrimitiveInstruction
from headrace_cpu.onednn.library import Library, OnednnError, load
from headrace_cpu.products.blas import Product, loaded_blas
from headrace_cpu.products.claim import product_of, stored
from headrace_cpu.products.packing import ShortInstruction
from headrace_cpu.products.short import LANES, Short
from headrace_cpu.program.claims import Claims
from headrace_cpu.program.instruction import Instruction
from headrace_cpu.program.patterns import chains
from headrace_cpu.program.settings import CompileSettings

_FEWEST_ROWS, _MOST_ROWS = 8, 64
_FEWEST_FLOPS = 2_000_000
# What two cores have in their second caches.
_MOST_BYTES = 4 << 20


def claim_short(claims: Claims, settings: CompileSettings) -> None:
    """Claim products of a few rows with a matrix in near caches, and what follows them.

    To be called before oneDNN's claims.
    """
    if vector_bytes() < 32 or open_mp() is None:
        return
    found = {}
    for op in claims.operations:
        if op.type == "MatMul" and claims.free(op) and not op.control_inputs:
            product = product_of(op)
            if product is not None and pays(product):
                found[op] = product
    library = load() if found and settings.onednn else None
    for op, product in found.items():
        instead = _instead(claims, op, product, library, settings) if claims.free(op) else None
        if instead is not None:
            claims.add(_instruction(claims, op, product, settings.threads, instead))


def pays(product: Product) -> bool:
    """Whether the kernel is quicker than others.

    On two cores with AVX-512 [20, 400] @ [400, 800] took 84 us where oneDNN's took 93, and
    [20, 800] @ [800, 400] with the right matrix turned 88 where it took 174.
    """
    p = product
    step = LANES if p.turned_b else 1
    if p.turned_a or p.dtype != "float32" or p.columns % LANES or p.inner % step:
        return False
    if not _FEWEST_ROWS <= p.rows <= _MOST_ROWS or min(p.inner, p.columns) < 4 * LANES:
        return False
    return p.flops >= _FEWEST_FLOPS and 4 * p.inner * p.columns <= _MOST_BYTES


def _instruction(
    claims: Claims, op: Operation, product: Product, threads: int, instead: Instruction
) -> ShortInstruction:
    possible = chains(claims, op, len(op.outputs[0].shape.known) - 1)
    chain = next(c for c in possible if c.ops == instead.ops)
    operands = {"a": op.inputs[0], "b": op.inputs[1], "c": chain.result}
    operands |= {} if chain.bias is None else {"bias": chain.bias}
    operands |= {} if chain.addend is None else {"addend": chain.addend}
    kernel = Short(
        product.rows,
        product.inner,
        product.columns,
        turned=product.turned_b,
        bias=chain.bias is not None,
        addend=chain.addend is not None,
        relu=chain.relu,
    )
    return ShortInstruction(kernel, operands, threads=threads, instead=instead)


def _instead(
    claims: Claims,
    op: Operation,
    product: Product,
    library: Library | None,
    settings: CompileSettings,
) -> Instruction | None:
    """Return what computes it until the kernel is compiled, or where it cannot be."""
    if library is not None:
        with suppress(OnednnError):
            found = claim_product(claims, op, library, settings.threads)
            if isinstance(found, PrimitiveInstruction):
                return found
    blas = loaded_blas()
    return None if blas is None else stored(op, product, blas, settings)
