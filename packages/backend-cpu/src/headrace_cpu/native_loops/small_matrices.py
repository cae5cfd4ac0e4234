"""Equations, inverses, determinants and Cholesky factors of small matrices.

A call of LAPACK takes longer than the work on a matrix of a few rows. So matrices of a batch go
side by side: a vector holds the same element of each of them, and rows are exchanged by choosing
element by element. A few matrices are computed one by one, by the same statements on numbers. Where
a matrix is not finite, or there is no result, the plain kernel computes all, or says what is wrong.

References:
    G. H. Golub, C. F. Van Loan, Matrix Computations, fourth edition, 2013, 3.1 (substitution),
    3.4 (partial pivoting), 4.2 (Cholesky factors)
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from math import prod
from typing import NamedTuple

import numpy as np

from headrace import Operation
from headrace_cpu.native.memory import Array
from headrace_cpu.native.threads import open_mp
from headrace_cpu.native_loops import instruction
from headrace_cpu.native_loops.instruction import BoundNativeLoop, Plan, Step
from headrace_cpu.native_loops.native_loop import SIZES, NativeLoop, code_of, set_status, team_for
from headrace_cpu.program.instruction import ALIGNMENT, Instruction
from headrace_cpu.program.matching import Candidate

# So many rows a matrix may have, of a few matrices and of many, and so many right sides.
_MOST, _MOST_OF_MANY, _MOST_SIDES = 8, 16, 32
# From so many matrices on they go side by side.
_MANY = 4
# Up to so many rows and right sides the sizes are written into the kernel, which LLVM writes out
# without loops; others share one.
_WRITTEN_OUT = 5
_VECTOR_BYTES = 64

# Lanes behind the last matrix hold it, too.
_BLOCKS = """\
zero, one = SPREAD(to_T(0.0)), SPREAD(to_T(1.0))
own = scratch + me * ROOM
side = own + N * N * LANES * SIZE_T
blocks = (batch + LANES - 1) // LANES
for unit in range(me * blocks // team, (me + 1) * blocks // team):
    first = unit * LANES
    for lane in range(LANES):
        source = matrix + minimum(first + lane, batch - 1) * N * N * SIZE_T
        for i in range(N):
            for j in range(N):
                store_T(own, PLACE * LANES + lane, load_T(source, i * N + j, 0), 2)
    SIDES
    bad, sign = zero, one
    for e in range(N * N):
        x = load_V(own, e * LANES, 2)
        bad = where(x - x == zero, bad, one)
    ELIMINATE
    COMPUTE
    for lane in range(minimum(LANES, batch - first)):
        target = out + (first + lane) * COUNT * SIZE_T
        for e in range(COUNT):
            store_T(target, e, load_T(FOUND, e * LANES + lane, 2), 1)
    store_V(own, 0, bad, 2)
    for lane in range(minimum(LANES, batch - first)):
        if load_T(own, lane, 2) != to_T(0.0):
            STATUS
"""
_GIVEN_SIDES = """\
for lane in range(LANES):
    source = rhs + minimum(first + lane, batch - 1) * N * M * SIZE_T
    for e in range(N * M):
        store_T(side, e * LANES + lane, load_T(source, e, 3), 2)
"""
_UNIT_SIDES = """\
for i in range(N):
    for j in range(N):
        store_V(side, (i * N + j) * LANES, zero, 2)
    store_V(side, (i * N + i) * LANES, one, 2)
"""
# The largest element of each column goes up, and what is below becomes 0, which is not written.
_ELIMINATE = """\
for k in range(N):
    best, at = abs(load_V(own, (k * N + k) * LANES, 2)), NUMBERS(to_K(k))
    for i in range(k + 1, N):
        other = abs(load_V(own, (i * N + k) * LANES, 2))
        at = where(other > best, NUMBERS(to_K(i)), at)
        best = where(other > best, other, best)
    sign = where(at == NUMBERS(to_K(k)), sign, negative(sign))
    for i in range(k + 1, N):
        for j in range(k, N):
            x, y = load_V(own, (k * N + j) * LANES, 2), load_V(own, (i * N + j) * LANES, 2)
            store_V(own, (k * N + j) * LANES, where(at == NUMBERS(to_K(i)), y, x), 2)
            store_V(own, (i * N + j) * LANES, where(at == NUMBERS(to_K(i)), x, y), 2)
        for j in range(M):
            x, y = load_V(side, (k * M + j) * LANES, 2), load_V(side, (i * M + j) * LANES, 2)
            store_V(side, (k * M + j) * LANES, where(at == NUMBERS(to_K(i)), y, x), 2)
            store_V(side, (i * M + j) * LANES, where(at == NUMBERS(to_K(i)), x, y), 2)
    pivot = load_V(own, (k * N + k) * LANES, 2)
    for i in range(k + 1, N):
        factor = load_V(own, (i * N + k) * LANES, 2) / pivot
        for j in range(k + 1, N):
            x = load_V(own, (i * N + j) * LANES, 2) - factor * load_V(own, (k * N + j) * LANES, 2)
            store_V(own, (i * N + j) * LANES, x, 2)
        for j in range(M):
            x = load_V(side, (i * M + j) * LANES, 2)
            store_V(side, (i * M + j) * LANES, x - factor * load_V(side, (k * M + j) * LANES, 2), 2)
"""
# Each row is solved and taken out of those that are left: from the last one up, or the first down.
_SUBSTITUTE = """\
for turn in range(N):
    k = ROW
    pivot = load_V(own, (k * N + k) * LANES, 2)
    bad = where(pivot == zero, one, bad)
    for j in range(M):
        x = load_V(side, (k * M + j) * LANES, 2) / pivot
        store_V(side, (k * M + j) * LANES, x, 2)
        for i in range(LEFT):
            y = load_V(side, (i * M + j) * LANES, 2) - load_V(own, (i * N + k) * LANES, 2) * x
            store_V(side, (i * M + j) * LANES, y, 2)
"""
_UP = _SUBSTITUTE.replace("ROW", "N - 1 - turn").replace("LEFT", "k")
_DOWN = _SUBSTITUTE.replace("ROW", "turn").replace("LEFT", "k + 1, N")
# A product that leaves the range of numbers on its way is left to the plain kernel.
_MULTIPLY = """\
found, singular, lost = sign, zero, zero
for k in range(N):
    pivot = load_V(own, (k * N + k) * LANES, 2)
    found = found * pivot
    singular = where(pivot == zero, one, singular)
    lost = where(abs(found) > SPREAD(to_T(TINY)), lost, one)
lost = where(found - found == zero, lost, one)
bad = where(singular == one, bad, where(lost == one, one, bad))
store_V(side, 0, where(singular == one, zero, found), 2)
"""
# Column by column; what is above the diagonal becomes 0.
_CHOLESKY = """\
for k in range(N):
    for i in range(k, N):
        x = load_V(own, (i * N + k) * LANES, 2)
        for j in range(k):
            x = x - load_V(own, (i * N + j) * LANES, 2) * load_V(own, (k * N + j) * LANES, 2)
        store_V(own, (i * N + k) * LANES, x, 2)
    pivot = load_V(own, (k * N + k) * LANES, 2)
    bad = where(pivot > zero, bad, one)
    root = sqrt(pivot)
    store_V(own, (k * N + k) * LANES, root, 2)
    for i in range(k + 1, N):
        store_V(own, (i * N + k) * LANES, load_V(own, (i * N + k) * LANES, 2) / root, 2)
        store_V(own, (k * N + i) * LANES, zero, 2)
"""


class _Method(NamedTuple):
    """How an operation is computed.

    Attributes:
        name: What its native loop is called.
        sides: What fills the right sides, if there are any.
        eliminates: Whether rows are eliminated first.
        compute: What follows.
        turned: Whether matrices are transposed.
    """

    name: str
    sides: str
    eliminates: bool
    compute: str
    turned: bool = False

    def columns(self, op: Operation) -> int:
        """Return how many right sides a matrix has."""
        if self.sides == _UNIT_SIDES:
            return op.inputs[0].shape.known[-1]
        return op.inputs[1].shape.known[-1] if self.sides else 0


def _turned(op: Operation) -> bool:
    return bool(op.attrs["adjoint"])


def _substitution(op: Operation) -> _Method:
    turned = _turned(op)
    down = op.attrs["lower"] != turned
    name = "substituted_down" if down else "substituted_up"
    return _Method(name, _GIVEN_SIDES, False, _DOWN if down else _UP, turned)


# How an operation is computed, by its type.
METHODS: dict[str, Callable[[Operation], _Method]] = {
    "MatrixInverse": lambda op: _Method("inverses", _UNIT_SIDES, True, _UP, _turned(op)),
    "MatrixSolve": lambda op: _Method("solutions", _GIVEN_SIDES, True, _UP, _turned(op)),
    "MatrixDeterminant": lambda op: _Method("determinants", "", True, _MULTIPLY),
    "Cholesky": lambda op: _Method("factors", "", False, _CHOLESKY),
    "MatrixTriangularSolve": _substitution,
}
_NUMBERS = ("batch", "rows", "sides", "room")


def _room(n: int, m: int, lanes: int, code: str) -> int:
    """Return the bytes of scratch memory of a thread."""
    size = (n * n + max(n * m, 1)) * lanes * SIZES[code]
    return -(-size // ALIGNMENT) * ALIGNMENT


@lru_cache(maxsize=256)
def _native_loop(method: _Method, code: str, n: int, m: int, lanes: int) -> NativeLoop:
    """Return the loop for matrices of ``n`` rows with ``m`` right sides, so many side by side."""
    whole = "i32" if code == "f32" else "i64"
    vector = code if lanes == 1 else f"{code}x{lanes}"
    factors = method.compute == _CHOLESKY
    words = {
        "PLACE": "(j * N + i)" if method.turned else "(i * N + j)",
        "COUNT": "N * N" if factors else "N * M" if method.sides else "1",
        "FOUND": "own" if factors else "side",
        "SPREAD": f"to_{vector}" if lanes == 1 else f"spread_{vector}",
        "NUMBERS": f"to_{whole}" if lanes == 1 else f"spread_{whole}x{lanes}",
        "TINY": float(np.finfo(np.float32 if code == "f32" else np.float64).tiny),
    }  # fmt: skip
    parts = {
        "SIDES": method.sides, "ELIMINATE": _ELIMINATE if method.eliminates else "",
        "COMPUTE": method.compute, "STATUS": set_status(),
    }  # fmt: skip
    text = NativeLoop("", (), _BLOCKS, {}, parts).written()
    name = f"{method.name}{'_turned' * method.turned}_by_{lanes}"
    sizes = {"N": "rows", "M": "sides", "LANES": lanes, "ROOM": "room"}
    if max(n, m) <= _WRITTEN_OUT:
        sizes |= {"N": n, "M": m}
        name = f"{name}_of_{n}x{m}"
    for word, meaning in (*words.items(), *sizes.items()):
        text = re.sub(rf"\b{word}\b", str(meaning), text)
    given = ("matrix", "rhs") if method.sides == _GIVEN_SIDES else ("matrix",)
    types = {"T": code, "V": vector, "K": whole}
    return NativeLoop(name, (*given, "out", "scratch", *_NUMBERS), text, types)


def _computed(
    method: _Method, op: Operation, matrix: Array, rhs: Array | None = None
) -> Array | None:
    """Compute in NumPy what the native loop computes, in the same order: until the kernel is there.

    Returns:
        The result; None where the plain kernel computes it.
    """
    n, m, shape = matrix.shape[-1], method.columns(op), op.outputs[0].shape.known
    a = matrix.reshape(-1, n, n)
    a = (a.swapaxes(1, 2) if method.turned else a).copy()
    if not np.isfinite(a).all():
        return None
    side = np.zeros((len(a), n, m), a.dtype)
    side[...] = np.eye(n, m) if rhs is None else rhs.reshape(-1, n, m)
    with np.errstate(all="ignore"):
        sign = _eliminated(a, side) if method.eliminates else None
        if method.compute == _CHOLESKY:
            found = _factored(a)
        elif method.compute == _MULTIPLY:
            assert sign is not None
            found = _multiplied(a, sign)
        else:
            found = _substituted(a, side, down=method.compute == _DOWN)
    return None if found is None else found.reshape(shape)


def _eliminated(a: Array, side: Array) -> Array:
    """Eliminate rows in place, and return the signs of their exchanges."""
    sign, each = np.ones(len(a), a.dtype), np.arange(len(a))
    for k in range(a.shape[1]):
        at = k + np.abs(a[:, k:, k]).argmax(1)
        sign[at != k] *= -1
        for rows in (a, side):
            rows[each, k], rows[each, at] = rows[each, at], rows[each, k]
        factors = a[:, k + 1 :, k] / a[:, k, k, None]
        a[:, k + 1 :, k + 1 :] -= factors[:, :, None] * a[:, k, None, k + 1 :]
        side[:, k + 1 :] -= factors[:, :, None] * side[:, k, None]
    return sign


def _substituted(a: Array, side: Array, *, down: bool) -> Array | None:
    n = a.shape[1]
    for k in range(n) if down else range(n - 1, -1, -1):
        pivots = a[:, k, k, None]
        if not pivots.all():
            return None
        side[:, k] /= pivots
        left = slice(k + 1, n) if down else slice(k)
        side[:, left] -= a[:, left, k, None] * side[:, k, None]
    return side


def _multiplied(a: Array, sign: Array) -> Array | None:
    pivots, found = np.diagonal(a, axis1=1, axis2=2), sign
    singular = (pivots == 0).any(1)
    small = np.finfo(a.dtype).tiny
    lost = np.zeros(len(a), bool)
    for pivot in pivots.T:
        found = found * pivot
        lost |= ~(np.abs(found) > small)
    lost |= ~np.isfinite(found)
    return None if (lost & ~singular).any() else np.where(singular, np.zeros_like(found), found)


def _factored(a: Array) -> Array | None:
    for k in range(a.shape[1]):
        for j in range(k):
            a[:, k:, k] -= a[:, k:, j] * a[:, k, j, None]
        pivots = a[:, k, k]
        if not (pivots > 0).all():
            return None
        roots = np.sqrt(pivots)
        a[:, k:, k] /= roots[:, None]
        a[:, k, k], a[:, k, k + 1 :] = roots, 0
    return a


def wants(candidate: Candidate) -> bool:
    """Whether an operation is one on small matrices of float32 or float64."""
    op = candidate.op
    if op.control_inputs or not instruction.wants(candidate):
        return False
    matrix, *others = (t.shape.known for t in op.inputs)
    dtype = op.inputs[0].dtype
    if code_of(dtype.numpy) not in ("f32", "f64") or any(t.dtype is not dtype for t in op.inputs):
        return False
    if len(matrix) < 2 or not all(matrix) or matrix[-1] != matrix[-2]:
        return False
    if matrix[-1] > (_MOST if prod(matrix[:-2]) < _MANY else _MOST_OF_MANY):
        return False
    # Right sides have the batch of the matrices.
    return all(s[:-1] == matrix[:-1] and 0 < s[-1] <= _MOST_SIDES for s in others)


def make(candidate: Candidate) -> Instruction | None:
    """Return the instruction."""
    op = candidate.op
    *batch, n, _ = op.inputs[0].shape.known
    count, method = prod(batch), METHODS[op.type](op)
    m, code = method.columns(op), code_of(op.inputs[0].dtype.numpy)
    assert code is not None
    lanes = 1 if count < _MANY else _VECTOR_BYTES // SIZES[code]
    native_loop = _native_loop(method, code, n, m, lanes)
    flops = count * n * n * (n + 3 * m)
    threads = candidate.settings.threads if open_mp() is not None else 1
    team = team_for(flops // lanes, min(threads, -(-count // lanes)))
    tensors = {"matrix": op.inputs[0], "out": op.outputs[0]}
    if len(op.inputs) == 2:
        tensors["rhs"] = op.inputs[1]
    room = _room(n, m, lanes, code)
    numbers = dict(zip(_NUMBERS, (count, n, m, room), strict=True))
    step = Step(native_loop, team, numbers, tensors, {"scratch": 0})
    return BoundNativeLoop(op, Plan([step], team * room, flops), partial(_computed, method, op))
