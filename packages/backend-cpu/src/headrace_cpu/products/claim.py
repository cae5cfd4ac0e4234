"""Which operations of a segment are computed as products of matrices.

Two functions: one for what others must not take apart, called before oneDNN claims, and one for
the products that oneDNN left.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace_cpu.products import narrow, panels, streamed
from headrace_cpu.products.blas import Blas, Product, loaded_blas
from headrace_cpu.products.instruction import ProductInstruction, Rate
from headrace_cpu.program.claims import Claims
from headrace_cpu.program.settings import CompileSettings
from headrace_cpu.program.values import VIEWS

_DTYPES = ("float32", "float64")
# How the sign of an update enters.
_SIGNS = {"AssignAddVariable": 1.0, "AssignSubVariable": -1.0}


def claim_uneven(claims: Claims, settings: CompileSettings) -> None:
    """Claim products of uneven sizes, for which there are kernels of our own.

    These are products of few columns and what adds one to a variable, of few rows with a large
    matrix, and of very many columns. To be called before oneDNN's claims, which would take some.
    """
    _claim(claims, settings, uneven_only=True)


def claim_products(claims: Claims, settings: CompileSettings) -> None:
    """Claim the products of matrices that are left, and what adds them to variables.

    Where BLAS cannot be called by hand, and for batches of products, NumPy stays.
    """
    _claim(claims, settings, uneven_only=False)


def _claim(claims: Claims, settings: CompileSettings, *, uneven_only: bool) -> None:
    blas = loaded_blas()
    if blas is None:
        return

    threads = settings.threads

    def wanted(product: Product) -> bool:
        return not uneven_only or narrow.pays(product, threads)

    for op in claims.operations:
        if op.type in _SIGNS and claims.free(op):
            found = _accumulation(claims, op)
            if found is not None and wanted(found.product):
                claims.add(found.instruction(blas, settings))
    for op in claims.operations:
        product = _free_product(claims, op)
        if product is None:
            continue
        handed_out = _handed_out(claims, op.outputs[0])
        wide = panels.pays(product) and not handed_out
        if wanted(product) or streamed.pays(product, threads) or wide:
            claims.add(stored(op, product, blas, settings, handed_out=handed_out))


def _handed_out(claims: Claims, tensor: Tensor) -> bool:
    """Whether a tensor, or the same memory under another shape, is wanted outside."""
    return tensor in claims.results or any(
        user.type in VIEWS and user.inputs[0] is tensor and _handed_out(claims, user.outputs[0])
        for user in claims.users(tensor)
    )


def stored(
    op: Operation,
    product: Product,
    blas: Blas,
    settings: CompileSettings,
    *,
    handed_out: bool = False,
) -> ProductInstruction:
    """Return what computes a product into a buffer of its own."""
    a, b = op.inputs
    return ProductInstruction(
        (op,),
        product,
        (a, b),
        op.outputs[0],
        blas=blas,
        threads=settings.threads,
        handed_out=handed_out,
    )


def _free_product(claims: Claims, op: Operation) -> Product | None:
    """Return the sizes of a product that nobody computes yet."""
    if op.type != "MatMul" or op.control_inputs or not claims.free(op):
        return None
    return product_of(op)


def product_of(op: Operation) -> Product | None:
    """Return the sizes of a ``MatMul`` of known shapes, None where it is not one product.

    A batch of left matrices times one right matrix is one product of more rows.
    """
    a, b = op.inputs
    dtype = a.dtype.name
    if dtype not in _DTYPES:
        return None
    left, right = a.shape.known, b.shape.known
    turned_a, turned_b = bool(op.attrs["transpose_a"]), bool(op.attrs["transpose_b"])
    if math.prod(right[:-2]) != 1 or (turned_a and math.prod(left[:-2]) != 1):
        return None
    out = op.outputs[0].shape.known
    rows, columns = math.prod(out[:-1]), out[-1]
    inner = right[-1] if turned_b else right[-2]
    if not rows or not columns or not inner:
        return None
    return Product(rows, columns, inner, turned_a, turned_b, dtype)


@dataclass(frozen=True, slots=True)
class _Accumulation:
    """An update ``handle += rate * (a @ b)``, and the operations that it is made of."""

    ops: tuple[Operation, ...]
    product: Product
    handle: Tensor
    rate: Rate

    def instruction(self, blas: Blas, settings: CompileSettings) -> ProductInstruction:
        a, b = self.ops[0].inputs
        return ProductInstruction(
            self.ops,
            self.product,
            (a, b),
            self.handle,
            blas=blas,
            threads=settings.threads,
            rate=self.rate,
        )


def _accumulation(claims: Claims, update: Operation) -> _Accumulation | None:
    """Return what an update of a variable adds, if it is a product that nobody else reads."""
    handle, value = update.inputs
    content = handle.spec.content
    if update.control_inputs or claims.needed_outside(update.outputs[0], ()):
        return None
    if content is None or content.shape.dims != value.shape.dims or content.dtype != value.dtype:
        return None
    factor = _SIGNS[update.type]
    scalar: Tensor | None = None
    chain = [update]
    while True:
        op = value.op
        if not claims.free(op) or op.control_inputs or claims.needed_outside(value, chain[-1:]):
            return None
        chain.append(op)
        if op.type == "MatMul":
            break
        step = _scaled(op)
        if step is None or value.shape.dims != step.value.shape.dims:
            return None
        if step.scalar is not None:
            if scalar is not None:
                return None
            scalar = step.scalar
        factor *= step.factor
        value = step.value
    product = product_of(chain[-1])
    if product is None:
        return None
    return _Accumulation(tuple(reversed(chain)), product, handle, Rate(factor, scalar))


@dataclass(frozen=True, slots=True)
class _Scaled:
    """An operation that multiplies a tensor by a number and perhaps by a scalar tensor."""

    value: Tensor
    factor: float = 1.0
    scalar: Tensor | None = None


def _scaled(op: Operation) -> _Scaled | None:
    if op.type == "Neg":
        return _Scaled(op.inputs[0], -1.0)
    if op.type != "Mul":
        return None
    # The product is the operand that a MatMul, or another factor, made.
    for value, other in (op.inputs, op.inputs[::-1]):
        if math.prod(other.shape.known) != 1 or value.op.type not in ("MatMul", "Mul", "Neg"):
            continue
        number = _number(other)
        if number is not None:
            return _Scaled(value, number)
        return _Scaled(value, scalar=other)
    return None


def _number(tensor: Tensor) -> float | None:
    """Return the value of a constant of one element."""
    if tensor.op.type != "Const" or tensor.op.control_inputs:
        return None
    value: Any = np.asarray(tensor.op.attrs["value"])
    return float(value.reshape(-1)[0])
