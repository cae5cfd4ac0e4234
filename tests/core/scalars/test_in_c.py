"""Another compiler than the CPU's: every expression of our ops as C, which the host's cc compiles.

C is what CUDA's compiler takes, but for the spelling of some functions.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace.extend import OPS
from headrace.extend.scalars import CONSTANT, INPUT, Expression, Scalar, expression_of

COMPILER = shutil.which("cc")
pytestmark = [
    pytest.mark.needs("backend-cpu"),
    pytest.mark.skipif(COMPILER is None, reason="there is no C compiler"),
]

TYPES = {
    "bool": "_Bool",
    "uint8": "unsigned char",
    "int32": "int",
    "int64": "long long",
    "float32": "float",
    "float64": "double",
}
# A number of bits to shift by, kept from 0 to all bits but one.
_PLACES = "({1} < 0 ? 0 : {1} < 8 * (int)sizeof {0} ? {1} : 8 * (int)sizeof {0} - 1)"
# Functions that C writes as an expression of its arguments; others are those of math.h.
C = {
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / {1}",
    "negative": "-{0}",
    "equal": "{0} == {1}",
    "not_equal": "{0} != {1}",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "greater": "{0} > {1}",
    "greater_equal": "{0} >= {1}",
    "logical_and": "{0} & {1}",
    "logical_or": "{0} | {1}",
    "logical_xor": "{0} ^ {1}",
    "logical_not": "!{0}",
    "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}",
    "bitwise_xor": "{0} ^ {1}",
    "invert": "~{0}",
    "left_shift": "{0} << " + _PLACES,
    "right_shift": "{0} >> " + _PLACES,
    "where": "{0} ? {1} : {2}",
    "maximum": "{0} != {0} || {0} >= {1} ? {0} : {1}",
    "minimum": "{0} != {0} || {0} <= {1} ? {0} : {1}",
    "sigmoid": "1 / (1 + exp(-{0}))",
}
# What math.h has not.
BEYOND_C = {
    *("betainc", "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "digamma", "erfinv"),
    *("igamma", "igamma_grad_a", "igammac", "ndtri", "polygamma", "zeta"),
}


def written(step: Scalar, args: list[str]) -> str:
    """Return a step of an expression as C."""
    if step.function == INPUT:
        return f"x{step.value}[i]"
    if step.function == CONSTANT:
        names = {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN", "True": "1", "False": "0"}
        return names.get(str(step.value), repr(step.value))
    if step.function == "cast":
        return f"{args[0]} != 0" if step.dtype.is_bool else args[0]
    if step.function == "abs" and not step.dtype.is_floating:
        return f"{args[0]} < 0 ? -{args[0]} : {args[0]}"
    if step.function in C:
        return C[step.function].format(*args)
    name = "fabs" if step.function == "abs" else step.function
    return f"{name}({', '.join(args)})"


def source_of(name: str, expression: Expression, inputs: list[str]) -> str:
    """Return a C function that computes an expression for arrays of the inputs' dtypes."""
    names = {step: f"v{place}" for place, step in enumerate(expression.steps)}
    lines = [
        f"    const {TYPES[step.dtype.name]} {names[step]} = "
        f"{written(step, [names[arg] for arg in step.args])};"
        for step in expression.steps
    ]
    given = ", ".join(f"const {TYPES[dtype]} *x{i}" for i, dtype in enumerate(inputs))
    result = TYPES[expression.result.dtype.name]
    return "\n".join(
        [
            f"void {name}(long n, {result} *y, {given}) {{",
            "  for (long i = 0; i < n; i++) {",
            *lines,
            f"    y[i] = {names[expression.result]};",
            "  }",
            "}",
        ]
    )


def numbers(dtype: str, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, 64).astype(bool)
    if dtype.startswith(("int", "uint")):
        return random.integers(0 if dtype == "uint8" else -50, 50, 64).astype(dtype)
    values = random.normal(0, 3, 64)
    values[:8] = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5]
    return values[random.permutation(64)].astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_expression_can_be_written_in_c(dtype: str, tmp_path: Path) -> None:
    kind, cases, sources = hr.as_dtype(dtype), [], ["#include <math.h>"]
    for schema in [s for s in OPS if s.expression and s.where.startswith("headrace.")]:
        bools = [not p.kind.accepts(kind) and p.kind.accepts(hr.bool) for p in schema.inputs]
        if not all(b or p.kind.accepts(kind) for b, p in zip(bools, schema.inputs, strict=True)):
            continue
        dtypes = ["bool" if b else dtype for b in bools]
        inputs = [hr.placeholder(name, [64]) for name in dtypes]
        given = [inputs] if schema.inputs[0].variadic else inputs
        node = schema.function(*given, **({"dtype": hr.float64} if schema.attrs else {}))
        expression = expression_of(node.op)
        if expression is None or any(step.function in BEYOND_C for step in expression.steps):
            continue
        arrays = [numbers(name, i) for i, name in enumerate(dtypes)]
        with hr.Session(config=hr.Config(executor="plain")) as session:
            wanted = session.run(node, dict(zip(inputs, arrays, strict=True)))
        sources.append(source_of(f"compute_{schema.type}", expression, dtypes))
        cases.append((schema.type, arrays, wanted))
    library = compiled("\n".join(sources), tmp_path)
    for name, arrays, wanted in cases:
        found = np.empty_like(wanted)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (found, *arrays)]
        library[f"compute_{name}"](ctypes.c_long(64), *pointers)
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=1e-6, err_msg=name)
    assert len(cases) >= {"bool": 7, "uint8": 15, "float32": 50, "float64": 50}.get(dtype, 18)


def compiled(source: str, folder: Path) -> ctypes.CDLL:
    """Return the library that the host's compiler makes of a source."""
    file, library = folder / "expressions.c", folder / "expressions.so"
    file.write_text(source)
    command = [str(COMPILER), "-shared", "-fPIC", "-O1", "-o", library, file, "-lm"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return ctypes.CDLL(str(library))
