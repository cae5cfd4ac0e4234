"""Rows of few elements: what is computed of each of them, and that it is vector code."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import numpy as np
import pytest

import headrace as hr
from headrace_cpu.fusion.vocabulary import ELEMENTARY_FUNCTIONS
from headrace_cpu.native.compiler import optimize, target_machine
from headrace_cpu.native.translate import translate

# What is computed of rows, and the same by NumPy.
PROGRAMS = {
    "sum": (lambda x: hr.reduce_sum(x, 1), lambda x: x.sum(1)),
    "mean": (lambda x: hr.reduce_mean(x, -1), lambda x: x.mean(-1)),
    "largest": (lambda x: hr.reduce_max(x, 1), lambda x: x.max(1)),
    "smallest": (lambda x: hr.reduce_min(x, 1), lambda x: x.min(1)),
    "product": (lambda x: hr.reduce_prod(x * 0.01 + 1, 1), lambda x: (x * 0.01 + 1).prod(1)),
    "norm": (
        lambda x: hr.sqrt(hr.reduce_sum(hr.square(x), 1)),
        lambda x: np.sqrt((x * x).sum(1)),
    ),
    "unit": (
        lambda x: x / hr.sqrt(hr.reduce_sum(hr.square(x), 1, keepdims=True)),
        lambda x: x / np.sqrt((x * x).sum(1, keepdims=True)),
    ),
    "variance": (
        lambda x: hr.reduce_mean(hr.square(x - hr.reduce_mean(x, 1, keepdims=True)), 1),
        lambda x: x.var(1),
    ),
    "softmax": (
        lambda x: hr.nn.softmax(x),
        lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True),
    ),
    "of columns": (lambda x: x - hr.reduce_mean(x, 0), lambda x: x - x.mean(0)),
}


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 8, 10, 16, 17, 31, 32, 63, 64, 65, 200])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_short_rows_are_what_numpy_computes(dtype, columns):
    x = hr.placeholder(dtype, (37, columns))
    given = np.random.default_rng(columns).normal(size=(37, columns)).astype(dtype)
    programs = {name: build(x) for name, (build, _) in PROGRAMS.items()}
    with hr.Session(config=hr.Config(compile_after=0, compile_wait=True)) as session:
        found = session.run(programs, {x: given})
    eps = 64 * np.finfo(dtype).eps
    for name, (_, oracle) in PROGRAMS.items():
        want = oracle(given.astype("float64"))
        np.testing.assert_allclose(found[name], want, rtol=eps, atol=eps, err_msg=name)


@pytest.mark.parametrize("name", ["largest", "smallest"])
@pytest.mark.parametrize("columns", [3, 16, 40, 64])
def test_extremes_of_short_rows_keep_nan(columns, name):
    x = hr.placeholder("float32", (columns, columns))
    given = np.random.default_rng(0).normal(size=(columns, columns)).astype("float32")
    # Row i has its NaN at element i; the last row has none.
    given[np.arange(columns - 1), np.arange(columns - 1)] = np.nan
    build, oracle = PROGRAMS[name]
    with hr.Session(config=hr.Config(compile_after=0, compile_wait=True)) as session:
        found = session.run(build(x), {x: given})
    np.testing.assert_array_equal(found, oracle(given))


@pytest.mark.parametrize("steps", [16, 48, 64])
def test_loops_over_vectors_are_vector_code(steps):
    """Unrolled, the sums of neighbouring rows would be gathered."""
    features = llvm.get_host_cpu_features()
    if not features.get("avx2"):
        pytest.skip("looks for instructions of AVX2")
    text = (
        "zero = np.float32(0)\n\n\ndef kernel(block):\n    rows = word(block, 0)\n"
        "    given = word(block, 1)\n    made = word(block, 2)\n"
        "    for row in range(0, rows):\n        total_ = zero\n"
        f"        here = given + row * {4 * steps}\n"
        f"        for j in vectors(0, {steps}):\n"
        "            total_ = total(total_, load_f32(here, j, 0))\n"
        "        store_f32(made, row, total_, 1)\n"
    )
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(translate(text, "kernel", ELEMENTARY_FUNCTIONS))
    machine = target_machine()
    assembly = machine.emit_assembly(optimize(module, machine))
    assert re.search(r"\tvaddps\s.*%[yz]mm", assembly)
    assert not re.search(r"\tvgather", assembly)
