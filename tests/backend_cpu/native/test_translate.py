"""The Python of kernels means what Python means."""

from __future__ import annotations

import ast

import numpy as np
import pytest

from headrace_cpu.native.build import build
from headrace_cpu.native.compiler import KernelError
from headrace_cpu.native.memory import address
from headrace_cpu.native.source import KernelSource, Vocabulary
from headrace_cpu.native.threads import launch
from headrace_cpu.native.translate import translate

# Bodies that read ``a`` and ``b`` and leave a whole number in ``out``.
BODIES = {
    "arithmetic": "out = a * 3 - b + (1 << 4)",
    "negative": "out = -a * b",
    "division": "out = a // b",
    "division of the negative": "out = -a // b",
    "division by the negative": "out = a // -b",
    "choices": "out = minimum(a, b) + 100 * maximum(a, b)",
    "several at once": "x, y = a, b\nx, y = y, x\nout = x * 10 + y",
    "increments": "out = a\nout += b\nout *= 2\nout -= 1",
    "range": "out = 0\nfor i in range(a):\n    out += i",
    "range from": "out = 0\nfor i in range(b, a):\n    out += i * i",
    "range by steps": "out = 0\nfor i in range(0, a, b):\n    out = out * 10 + i",
    "vectors": "out = 0\nfor i in vectors(0, a):\n    out += i * b",
    "two of vectors": (
        "out = 0\nfor i in range(a):\n    for j in vectors(0, i):\n        out += j\n"
        "    for j in vectors(i, a):\n        out += j * b"
    ),
    "empty range": "out = 7\nfor i in range(a, 0):\n    out += i",
    "nested": "out = 0\nfor i in range(a):\n    for j in range(i):\n        out += j * b",
    "continue": (
        "out = 0\nfor i in range(a):\n    if i // 2 * 2 == i:\n        continue\n    out += i"
    ),
    "continue inside": (
        "out = 0\nfor i in range(a):\n    for j in range(a):\n        if j > i:\n"
        "            continue\n        out += 1\n    out += 1000"
    ),
    "while": "out = a\nwhile out < 100:\n    out += b",
    "while with continue": (
        "out, i = 0, 0\nwhile i < a:\n    i += 1\n    if i == b:\n        continue\n    out += i"
    ),
    "while never": "out = a\nwhile out < 0:\n    out += 1",
    "alternatives": "if a > b:\n    out = 1\nelse:\n    out = 2",
    "many alternatives": (
        "if a < b:\n    out = 1\nelif a == b:\n    out = 2\nelse:\n    if b > 2:\n"
        "        out = 3\n    else:\n        out = 4"
    ),
    "logic": (
        "out = 0\nif a > 0 and b > 0 and a != b:\n    out += 1\n"
        "if a < b or not a == b:\n    out += 2"
    ),
    "flags": (
        "fresh = True\nout = 0\nfor i in range(a):\n"
        "    if fresh:\n        fresh = False\n    else:\n        out += 1"
    ),
}  # fmt: skip
INTEGERS = [(0, 1), (1, 1), (7, 2), (7, 3), (2, 7), (-7, 2), (-6, 3), (9, 4)]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_kernels_compute_what_python_computes(body):
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    text = f"def kernel(block):\n    a = word(block, 0)\n    b = word(block, 1)\n{lines}"
    (place,) = build([KernelSource("kernel", f"{text}    set_word(block, 2, out)\n")])
    for a, b in INTEGERS:
        names = {"a": a, "b": b, "minimum": min, "maximum": max, "vectors": range}
        exec(body, names)
        block = np.array([a, b, 0], np.int64)
        launch(place, address(block))()
        assert block[2] == names["out"], (a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_keep_their_dtype(dtype):
    code = {"float32": "f32", "float64": "f64"}[dtype]
    text = (
        f"third = np.{dtype}(0.3333333333333333)\n\n\ndef kernel(block):\n"
        f"    x = load_{code}(block, 0, 0)\n    half = 0.5\n    half += 0.25\n"
        f"    store_{code}(block, 1, (x - third) / to_{code}(half) * -x, 0)\n"
    )
    (place,) = build([KernelSource("kernel", text)])
    block = np.array([0.7, 0], dtype)
    launch(place, address(block))()
    x, third = block[0], block.dtype.type(1 / 3)
    assert block[1] == (x - third) / block.dtype.type(0.75) * -x


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("x = [1]", r"kernels have no '\[1\]'"),
        ("x = 'text'", "kernels have no \"'text'\""),
        ("x = missing", "the kernel has no variable 'missing'"),
        ("x = missing(1)", "kernels have no function 'missing'"),
        ("x = 1 + 0.5", r"'1 \+ 0.5' mixes i64 and f64: convert one of them"),
        ("x = 1 < 0.5", "'1 < 0.5' mixes i64 and f64"),
        ("if 1:\n        x = 1", "'1' is no condition"),
        ("x = True and 1", "'1' is no condition"),
        ("x = not 1", "kernels have no 'not 1'"),
        ("x = 1 / 2", "kernels have no '1 / 2'"),
        ("x = 1 < 2 < 3", "kernels have no '1 < 2 < 3'"),
        ("for i in [1]:\n        x = i", "kernels have no"),
        ("for i in zip(1):\n        x = i", "kernels have no"),
        ("return 1", "kernels have no 'return 1'"),
        ("x[0] = 1", r"kernels have no 'x\[0\]'"),
    ],
)
def test_what_kernels_have_not_is_refused(body, message):
    with pytest.raises(KernelError, match=message):
        build([KernelSource("kernel", f"def kernel(block):\n    {body}\n")])


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (
            "f = FUNCTIONS['Missing', 'float32']",
            r"kernels have no function \('Missing', 'float32'\)",
        ),
        ("x = 1", "kernels have no 'x = 1'"),
        ("import os", "kernels have no 'import os'"),
    ],
)
def test_what_stands_before_a_kernel_is_checked(head, message):
    with pytest.raises(KernelError, match=message):
        build([KernelSource("kernel", f"{head}\n\ndef kernel(block):\n    x = 1\n")])


def test_a_text_is_parsed_again_where_threads_of_the_program_disturb_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text, parse, attempts = "def kernel(block):\n    set_word(block, 0, 1)\n", ast.parse, []

    def disturbed(text: str) -> ast.Module:
        attempts.append(text)
        if len(attempts) < 3:
            raise SystemError("AST constructor recursion depth mismatch (before=45, after=42)")
        return parse(text)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert "@kernel(" in translate(text, "kernel", Vocabulary())
    assert len(attempts) == 3

    def broken(text: str) -> ast.Module:
        raise SystemError("something else")

    monkeypatch.setattr(ast, "parse", broken)
    with pytest.raises(SystemError, match="something else"):
        translate(text, "kernel", Vocabulary())
