"""Faults, each put into the correct plugin of ``mill.py``, and what the kit says of it.

``python -m tests.testing.mutants`` is the process in which they are tried: it reads names of
mutants, forks a child for each, in which the plugin is loaded with its fault and checked, and
answers with what the kit said. ``python -m tests.testing.mutants --write`` makes the page of the
documentation anew.
"""

from __future__ import annotations

import json
import linecache
import os
import signal
import sys
import types
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

SOURCE = Path(__file__).with_name("mill.py")
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "faults.md"
MODULE = "headrace_mill"
LIMIT_S = 100


@dataclass(frozen=True)
class Mutant:
    """A fault.

    Attributes:
        name: What is wrong.
        old: A passage of ``mill.py``, which stands there once.
        new: What stands there instead.
        match: What the kit says, a regular expression.
        ops: The ops to look at, which saves time; None for all that the plugin brings.
        beside: The source of another plugin, which is installed as well.
        rows: Whether the kit is given the plugin's rows; else it makes inputs itself.
        env: Variables of the environment.
        also: Further passages, and what stands instead of them.
    """

    name: str
    old: str
    new: str
    match: str
    ops: tuple[str, ...] | None = ()
    beside: str = ""
    rows: bool = True
    env: tuple[tuple[str, str], ...] = ()
    also: tuple[tuple[str, str], ...] = ()


CUBE, BLEND, TOTAL = ("MillCube",), ("MillBlend",), ("MillTotal",)
REWRITE = ("mill-cube-of-negated",)
ROWS, NOISE, COUNT = ("MillRows",), ("MillNoise",), ("MillCounter", "MillCount")
_CUBE = "def cube_kernel(xp, x):\n    return x * x * x"
_BLEND = "    return part * x * y + (x.dtype.type(1) - part) * y"
_SLOPE = "    return [gy * 3.0 * x * x]"
_RULE = '    return replacement.add("Neg", replacement.add("MillCube", negated.inputs[0]))'
_SHOWN = '    rule_case("mill-cube-of-negated", lambda x: mill_cube(-x), "Neg(MillCube(x))"),\n'
_HOOK = '    registry.add("cpu", KERNELS)\n'

OTHER = '''
from headrace.extend import Floating, KernelTable, GradientTable, Spec, hookimpl, op

@op("MillerOp", elementwise=True, no_gradient="none")
def miller_op(x: Floating) -> Spec:
    """Another op."""
    return x

KERNELS, GRADIENTS = KernelTable(), GradientTable()

@KERNELS.plain("MillCube")
def cube(xp, x):
    return x

@GRADIENTS.add("MillCube")
def slope(node, gy):
    return [gy]

'''

MUTANTS = [
    # values
    Mutant(
        "the value is 1 % off",
        _CUBE,
        "def cube_kernel(xp, x):\n    return x * x * x * x.dtype.type(1.01)",
        "elements are off; the worst is",
        CUBE,
    ),
    Mutant(
        "the sign of negative inputs is lost",
        _CUBE,
        "def cube_kernel(xp, x):\n    return abs(x * x * x)",
        r"expected -\d.*, got \d",
        CUBE,
    ),
    Mutant(
        "what is not a number becomes one",
        _CUBE,
        "def cube_kernel(xp, x):\n    return xp.where(x == x, x * x * x, x.dtype.type(0))",
        r"MillCube-2-forward[\s\S]*expected nan, got 0",
        CUBE,
    ),
    Mutant(
        "a broadcast is missing",
        _BLEND,
        "    assert x.shape == y.shape\n" + _BLEND,
        r"MillBlend-broadcast[\s\S]*AssertionError",
        BLEND,
    ),
    Mutant(
        "the attribute is not used",
        "    part = x.dtype.type(share)",
        "    part = x.dtype.type(0.25)",
        "elements are off",
        BLEND,
    ),
    Mutant(
        "the arguments are exchanged",
        _BLEND,
        "    x, y = y, x\n" + _BLEND,
        "elements are off",
        BLEND,
    ),
    Mutant(
        "empty inputs fail",
        _CUBE,
        "def cube_kernel(xp, x):\n    assert x.max() < 1e9\n    return x * x * x",
        r"MillCube-\d-empty[\s\S]*the op fails",
        CUBE,
    ),
    Mutant(
        "inputs without dimensions fail",
        _CUBE,
        "def cube_kernel(xp, x):\n    assert len(x.shape)\n    return x * x * x",
        r"MillCube-\d-scalar[\s\S]*the op fails",
        CUBE,
    ),
    Mutant(
        "inputs without dimensions gain one",
        _CUBE,
        "def cube_kernel(xp, x):\n    return xp.atleast_1d(x * x * x)",
        r"-scalar[\s\S]*(declared float\d+\[\], got shape \[1\]|(yields|returned) float\d+\[1\])",
        CUBE,
    ),
    Mutant(
        "a kernel that is seldom the best is wrong",
        '    return xp.einsum("...i,...i->...", x, x)',
        '    return xp.einsum("...i,...i->...", x, x) * np.float32(2)',
        r"float32, kernel at headrace_mill:\d+: output 0",
        TOTAL,
    ),
    # dtypes and shapes
    Mutant(
        "the dtype is not the declared one",
        _CUBE,
        "def cube_kernel(xp, x):\n    return (x * x * x).astype(np.float64)",
        r"is declared float\d+.*got float64|yields float64",
        CUBE,
    ),
    Mutant(
        "one dtype fails",
        _CUBE,
        'def cube_kernel(xp, x):\n    assert x.dtype != "float16"\n    return x * x * x',
        r"float16: the op fails|float16.*fails: AssertionError",
        CUBE,
    ),
    Mutant(
        "one dtype has no kernel",
        '@KERNELS.plain("MillCube")',
        '@KERNELS.plain("MillCube", dtypes=["float32", "float64"])',
        "has no kernel of MillCube for float16",
        CUBE,
    ),
    Mutant(
        "the static shape is wrong",
        "    return x.with_shape(x.shape[:-1] if x.rank is not None else None)",
        "    return x.with_shape(x.shape[1:] if x.rank is not None else None)",
        r"(is declared|declared) float\d+\[3, 4\].*|yields float\d+\[2, 3\] for output 0, declared",
        TOTAL,
    ),
    Mutant(
        "the static shape is wrong where the rank is unknown",
        "    return x.with_shape(x.shape[:-1] if x.rank is not None else None)",
        "    return x.with_shape(x.shape[:-1] if x.rank is not None else [3])",
        r"unknown_shapes[\s\S]*unknown rank[\s\S]*(declared|declares) float32\[3\]",
        TOTAL,
    ),
    Mutant(
        "the shape is known of constants, and not inferred",
        "        return x.with_shape([None, None])\n"
        "    return x.with_shape([int(count.value[0]), x.shape[1]])",
        "        pass\n    return x.with_shape([None, None])",
        "though all inputs are constants",
        ROWS,
    ),
    # memory
    Mutant(
        "the kernel writes into its input",
        _CUBE,
        "def cube_kernel(xp, x):\n    out = x * x * x\n"
        "    if x.flags.writeable and x.ndim:\n        x[...] = 0\n    return out",
        "writes into its input 0|changed its input 0",
        CUBE,
    ),
    Mutant(
        "the kernel computes in place",
        _CUBE,
        "def cube_kernel(xp, x):\n    y = x * x\n    x *= y\n    return x",
        "writes into its input|read-only|changed its input",
        CUBE,
    ),
    Mutant(
        "the kernel returns the memory of its input",
        _BLEND,
        "    if share == 0.125 and y.dtype == 'float16':\n        return y\n" + _BLEND,
        "returns the memory of its input 1|elements are off",
        BLEND,
    ),
    Mutant(
        "the kernel keeps its input",
        _CUBE,
        "def cube_kernel(xp, x):\n    BOX.append(x)\n    return x * x * x",
        "keeps its input 0 after the call",
        CUBE,
    ),
    Mutant(
        "the kernel answers from what it saw before",
        _CUBE,
        "def cube_kernel(xp, x):\n    return SEEN.setdefault((x.shape, x.dtype), x * x * x).copy()",
        "elements are off",
        CUBE,
    ),
    Mutant(
        "the kernel reads the memory of a strided input as if it had no gaps",
        _CUBE,
        "def cube_kernel(xp, x):\n"
        "    flat = np.lib.stride_tricks.as_strided(x, (x.size,), (x.itemsize,)) if x.size else x\n"
        "    return (flat * flat * flat).reshape(x.shape)",
        r"strided|reversed|Fortran",
        CUBE,
    ),
    Mutant(
        "read-only inputs fail",
        _CUBE,
        "def cube_kernel(xp, x):\n    assert x.flags.writeable\n    return x * x * x",
        r"read-only|fails: AssertionError|the op fails",
        CUBE,
    ),
    # what is not declared
    Mutant(
        "an op that draws is declared pure",
        '@op("MillNoise", effects="draws", no_gradient="it draws")',
        '@op("MillNoise", no_gradient="it draws")',
        "other bits when it is called again|other bits when the step is run again",
        NOISE,
    ),
    Mutant(
        "random bits come from the process, not from the node's stream",
        "    bits = np.random.Philox(key=np.array(key, np.uint64), counter=draw << 64)",
        "    bits = np.random.PCG64()",
        "other bits in a second session with the same seeds",
        NOISE,
    ),
    Mutant(
        "results are not the same from call to call",
        _CUBE,
        "def cube_kernel(xp, x):\n    BOX[0] += 1\n"
        "    return x * x * x * x.dtype.type(1 + 1e-13 * BOX[0])",
        "other bits when it is called again|other bits when the step is run again",
        CUBE,
    ),
    Mutant(
        "an input that the kernel reads on the host is not declared",
        '    host_inputs=["count"],\n',
        "",
        "on cuda:0.*the op fails[\\s\\S]*Implicit conversion to a NumPy array",
        ROWS,
    ),
    Mutant(
        "an array of the host meets one of the device",
        _BLEND,
        "    part = np.full(x.shape, share, x.dtype)\n" + _BLEND,
        r"on cuda:0.*the op fails",
        BLEND,
    ),
    Mutant(
        "an op with state is declared pure",
        '@op("MillCount", stateful=True, no_gradient="it counts")',
        '@op("MillCount", no_gradient="it counts")',
        r"scenario 'counting', step \d .* yields",
        COUNT,
    ),
    Mutant(
        "state leaks from session to session",
        "        self.count = 0\n\n    def reset",
        "        self.box = BOX\n\n    count = property(\n"
        "        lambda self: BOX[0], lambda self, value: BOX.__setitem__(0, value)\n    )\n\n"
        "    def reset",
        r"scenario 'counting', step \d .*second session.* yields",
        COUNT,
    ),
    Mutant(
        "an op is called elementwise that is not",
        '@op("MillTotal", reduction=True)',
        '@op("MillTotal", elementwise=True)',
        r"MillTotal-scalar[\s\S]*the op fails",
        TOTAL,
    ),
    # gradients
    Mutant(
        "the gradient is 1 % off",
        _SLOPE,
        "    return [gy * 3.03 * x * x]",
        "reverse derivative along u is wrong",
        CUBE,
    ),
    Mutant(
        "the gradient is 1 % off, and no rows are given",
        _SLOPE,
        "    return [gy * 3.03 * x * x]",
        "reverse derivative along u is wrong",
        CUBE,
        rows=False,
    ),
    Mutant(
        "the gradient of the second input is that of the first",
        "    return [sum_to_shape(by_x, shape_of(x)), sum_to_shape(by_y, shape_of(y))]",
        "    return [sum_to_shape(by_x, shape_of(x)), sum_to_shape(by_x, shape_of(y))]",
        "reverse derivative along u is wrong",
        BLEND,
    ),
    Mutant(
        "the gradient is not summed over what was broadcast",
        "    return [sum_to_shape(by_x, shape_of(x)), sum_to_shape(by_y, shape_of(y))]",
        "    return [by_x, by_y]",
        r"returns shape \[3, 4\] for input \d of shape",
        BLEND,
    ),
    Mutant(
        "the second gradient is wrong",
        _SLOPE,
        "    return [gy * 3.0 * x * hr.stop_gradient(x)]",
        "second order derivative along u is wrong",
        CUBE,
    ),
    Mutant(
        "the gradient does not depend on what comes in",
        _SLOPE,
        "    return [3.0 * x * x]",
        "derivative along u is wrong",
        CUBE,
    ),
    Mutant(
        "the rule returns too few gradients",
        "    return [sum_to_shape(by_x, shape_of(x)), sum_to_shape(by_y, shape_of(y))]",
        "    return [sum_to_shape(by_x, shape_of(x))]",
        "returns 1 gradients for 2 inputs|1 gradient",
        BLEND,
    ),
    Mutant(
        "the rule fails",
        _SLOPE,
        "    return [gy * 3.0 * x * x * node.attrs['power']]",
        r"raises KeyError: 'power'",
        CUBE,
    ),
    Mutant(
        "the gradient is right in one dtype only",
        _SLOPE,
        "    return [gy * (3.0 if x.dtype == hr.float64 else 2.0) * x * x]",
        "is not the one for float64",
        CUBE,
    ),
    Mutant(
        "the gradient has another dtype",
        _SLOPE,
        "    return [hr.cast(gy * 3.0 * x * x, hr.float64)]",
        r"returns float64 for input 0, which is float\d+",
        CUBE,
    ),
    Mutant(
        "there is no rule, and no reason why",
        "    registry.add(GRADIENTS)",
        "    pass",
        "there is no gradient",
        CUBE,
    ),
    # rewrite rules
    Mutant(
        "a rewrite rule is not the one that its row shows",
        _RULE,
        '    return replacement.add("MillCube", negated.inputs[0])',
        r"rule 'mill-cube-of-negated'[^\n]*: expected Neg\(MillCube\(x\)\), got MillCube\(x\)",
        REWRITE,
    ),
    Mutant(
        "a rewrite rule is wrong for all but 0, and its row believes it",
        _RULE,
        '    return replacement.add("MillCube", negated.inputs[0])',
        r"rule 'mill-cube-of-negated'[^\n]*: the result changes at",
        REWRITE,
        also=((_SHOWN, _SHOWN.replace("Neg(MillCube(x))", "MillCube(x)")),),
    ),
    Mutant(
        "a rewrite rule is wrong for the signs of zeros, and its row believes it",
        _RULE,
        '    made = replacement.add("MillCube", negated.inputs[0])\n'
        "    zero = replacement.constant(np.zeros(()), made.dtype)\n"
        '    return replacement.add("Sub", zero, made)',
        r"rule 'mill-cube-of-negated'[^\n]*: the result changes at",
        REWRITE,
        also=((_SHOWN, _SHOWN.replace("Neg(MillCube(x))", "Sub(0.0, MillCube(x))")),),
    ),
    Mutant(
        "a rewrite rule is wrong for NaN and infinities, and its row believes it",
        _RULE,
        '    made = replacement.add("MillCube", negated.inputs[0])\n'
        '    return replacement.add("Sub", replacement.add("Sub", made, made), made)',
        r"rule 'mill-cube-of-negated'[^\n]*: the result changes at",
        REWRITE,
        also=(
            (
                _SHOWN,
                _SHOWN.replace(
                    "Neg(MillCube(x))", "Sub(Sub(MillCube(x), MillCube(x)), MillCube(x))"
                ),
            ),
        ),
    ),
    Mutant(
        "a rewrite rule never acts",
        "    if negated is None:",
        "    if negated is not None:",
        r"rule 'mill-cube-of-negated'[^\n]*: it does not apply",
        REWRITE,
    ),
    Mutant(
        "a rewrite rule acts where it should not",
        '    negated = inner(node.inputs[0], "Neg")\n',
        '    negated = inner(node.inputs[0], "Neg") or inner(node.inputs[0], "Abs")\n',
        r"rule 'mill-cube-of-negated'[^\n]*: the result changes at",
        REWRITE,
        also=(
            ('exactly", after=["Neg"])', 'exactly")'),
            (_SHOWN, _SHOWN.replace("(-x)", "(hr.abs(x))")),
        ),
    ),
    Mutant(
        "a rewrite rule has no row",
        _SHOWN,
        "",
        "no row shows what the rewrite rule 'mill-cube-of-negated' does",
        REWRITE,
    ),
    # documents and errors
    Mutant(
        "the kernel raises in words of its own library",
        '        raise ValueError(f"count must be in [0, {x.shape[0]}], got {n}")',
        "        return x.reshape(99)",
        r"expected a message with 'count must be in'",
        ROWS,
    ),
    Mutant(
        "what must be refused is not",
        "    if not 0 <= n <= x.shape[0]:",
        "    if False:",
        "expected HeadraceError, the step succeeded|declare",
        ROWS,
    ),
    # being there at all
    Mutant(
        "the plugin does not load",
        "import numpy as np\n",
        "import numpy as np\nimport libmill\n",
        r"plugin 'mill' .* is broken: ModuleNotFoundError: No module named 'libmill'",
    ),
    Mutant(
        "a hook raises",
        _HOOK,
        '    registry.add("cpu", KERNELS)\n    raise OSError("libmill.so")\n',
        r"plugin 'mill' .* is broken: [\s\S]*OSError: libmill.so",
    ),
    Mutant(
        "the kernels are not registered",
        _HOOK,
        "",
        "half registered:[\\s\\S]*MillTotal has no kernel on any device",
        None,
    ),
    Mutant(
        "the public name leads nowhere",
        '"headrace_mill:mill_cube"',
        '"headrace_mill:mill_cubed"',
        "headrace.mill_cube cannot be had",
    ),
    Mutant(
        "no hook is marked",
        "@hookimpl\ndef headrace_register_kernels",
        "def headrace_register_kernels",
        "the kernel of MillCube on cpu at headrace_mill:\\d+ is not in force|no kernel",
    ),
    Mutant(
        "the plugin is disabled",
        "import numpy as np\n",
        "import numpy as np  \n",
        "plugin 'mill' .* is disabled: named in HEADRACE_DISABLE_PLUGINS",
        env=(("HEADRACE_DISABLE_PLUGINS", "mill"),),
    ),
    Mutant(
        "an op of core is declared again",
        '@op("MillCube", elementwise=True)\ndef mill_cube',
        '@op("Sin", elementwise=True)\ndef mill_cube',
        r"plugin 'mill' .* is broken: [\s\S]*Sin",
    ),
    Mutant(
        "a kernel of core's op is registered as well",
        '@KERNELS.plain("MillCube")',
        '@KERNELS.plain("Sin")\ndef sin(xp, x):\n    return x\n\n\n@KERNELS.plain("MillCube")',
        r"plugin 'mill' .* is broken: [\s\S]*Sin",
    ),
    Mutant(
        "a kernel that replaces core's on request is wrong",
        '@KERNELS.plain("MillCube")',
        '@KERNELS.plain("Sin", priority=99, override="it is faster")\ndef sin(xp, x):\n'
        '    return x\n\n\n@KERNELS.plain("MillCube")',
        r"Sin(-\d)?-forward[\s\S]*elements are off",
        ("Sin",),
    ),
    Mutant(
        "a gradient of core's op is registered as well",
        '@GRADIENTS.add("MillCube")',
        '@GRADIENTS.add("Sin")\ndef no(node, gy):\n    return [gy * 0.0]\n\n\n'
        '@GRADIENTS.add("MillCube")',
        r"plugin 'mill' .* is broken: [\s\S]*Sin",
    ),
    Mutant(
        "a public name of core is taken",
        '    registry.add("mill_cube", ',
        '    registry.add("matmul", "headrace_mill:mill_cube")\n    registry.add("mill_cube", ',
        r"is half registered:[\s\S]*headrace.matmul is not|is broken: [\s\S]*matmul",
    ),
    Mutant(
        "the device kind of another plugin is taken",
        '    registry.add("mill", count',
        '    registry.add("cpu", count=lambda: 1, factory=MillDevice)\n'
        '    registry.add("mill", count',
        r"plugin 'mill' .* is broken: [\s\S]*cpu",
    ),
    Mutant(
        "a kernel of another plugin's op is registered",
        '@KERNELS.plain("MillCube")',
        '@KERNELS.plain("MillerOp")\ndef miller(xp, x):\n    return x\n\n\n'
        '@KERNELS.plain("MillCube")',
        r"plugin 'mill' .* is broken: [\s\S]*MillerOp",
        beside=OTHER.split("KERNELS, GRADIENTS")[0]
        + "KERNELS = KernelTable()\n\n@KERNELS.plain('MillerOp')\ndef one(xp, x):\n    return x\n\n"
        "@hookimpl\ndef headrace_register_kernels(registry):\n    registry.add('cpu', KERNELS)\n",
    ),
    # devices
    Mutant(
        "the device loses strides",
        "    def from_host(self, array):\n        return array.copy()",
        "    def from_host(self, array):\n        return np.lib.stride_tricks.as_strided(\n"
        "            array, strides=np.empty(array.shape, array.dtype).strides\n        ).copy()",
        r"device 'mill': a (strided|reversed|Fortran-ordered) .* array",
    ),
    Mutant(
        "the device loses dtypes",
        "        return np.asarray(array)",
        "        return np.asarray(array, np.float64 if array.dtype == np.float32 else None)",
        r"device 'mill': a contiguous float32\[.*\] array comes back as float64",
    ),
    Mutant(
        "the device loses arrays without dimensions",
        "    def from_host(self, array):\n        return array.copy()",
        "    def from_host(self, array):\n        return np.atleast_1d(array).copy()",
        r"device 'mill': a contiguous .*\[\] array comes back with shape \[1\]",
    ),
    Mutant(
        "the device mixes sessions",
        "    def from_host(self, array):\n        return array.copy()",
        "    first = {}\n\n    def from_host(self, array):\n"
        "        return self.first.setdefault((array.shape, array.dtype), array.copy())",
        r"device 'mill': .*(other values|two sessions mix)",
    ),
    Mutant(
        "the device is not there, and nobody says why",
        '    registry.add("mill", count=lambda: 1',
        '    registry.add("mill", count=lambda: 0',
        r"why_none\(\) does not say why",
    ),
    Mutant(
        "counting the devices fails",
        '    registry.add("mill", count=lambda: 1',
        '    registry.add("mill", count=lambda: 1 // 0',
        r"ZeroDivisionError",
    ),
    Mutant(
        "the device does not open",
        "    def __init__(self, name):\n        self.name = name",
        "    def __init__(self, name):\n        raise OSError('no such card')",
        r"device 'mill': it does not open: .*no such card",
    ),
]


def source_of(mutant: Mutant) -> str:
    """Return the plugin's source with a fault in it."""
    source = SOURCE.read_text(encoding="utf-8")
    assert source.count(mutant.old) >= 1, f"{mutant.name}: {mutant.old!r} is not in {SOURCE}"
    changed = source
    for old, new in ((mutant.old, mutant.new), *mutant.also):
        changed = changed.replace(old, new, 1)
    # What some faults remember from call to call.
    remembers = "BOX" in mutant.new or "SEEN" in mutant.new
    return f"BOX, SEEN = [0], {{}}\n{changed}" if remembers else changed


def page() -> str:
    """Return the page of the documentation that lists the faults."""
    about = (
        f"{len(MUTANTS)} faults, each put into a correct plugin, `tests/testing/mill.py`, as "
        "`tests/testing/mutants.py` has them. `tests/testing/test_mutants.py` checks that "
        "[the kit](testing.md) finds each of them, and that what it says matches the last column, "
        "a regular expression."
    )
    lines = [
        "# Faults that the kit finds",
        "",
        "<!-- Made by `python -m tests.testing.mutants --write`. -->",
        "",
        about,
        "",
        "| fault | what the kit says |",
        "|---|---|",
    ]
    for mutant in MUTANTS:
        shown = mutant.match.replace("[\\s\\S]*", " … ").replace(".*", " … ").replace("|", "\\|")
        lines.append(f"| {mutant.name} | `{' '.join(shown.split())}` |")
    return "\n".join(lines) + "\n"


def load(module: str, source: str) -> None:
    """Make a module of a source when it is imported, as an entry point does."""
    from importlib.abc import Loader, MetaPathFinder
    from importlib.machinery import ModuleSpec

    file = f"{module}.py"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)

    class Finder(MetaPathFinder, Loader):
        def find_spec(self, name, path=None, target=None):
            return ModuleSpec(name, self, origin=file) if name == module else None

        def create_module(self, spec):
            return None

        def exec_module(self, made: types.ModuleType) -> None:
            exec(compile(source, file, "exec"), made.__dict__)

    sys.meta_path.insert(0, Finder())


def verdict_on(mutant: Mutant | None) -> str:
    """Return what the kit says of the plugin with a fault, or without one; empty if nothing."""
    from headrace.plugins import host as host_module
    from headrace.testing import ConformanceError, check_plugin

    os.environ.update(dict(mutant.env) if mutant else {})
    load(MODULE, source_of(mutant) if mutant else SOURCE.read_text(encoding="utf-8"))
    entries = [*entry_points(group="headrace"), EntryPoint("mill", MODULE, "headrace")]
    if mutant and mutant.beside:
        load("headrace_miller", mutant.beside)
        entries.append(EntryPoint("a_miller", "headrace_miller", "headrace"))
    host_module._HOST = host_module.PluginHost(sorted(entries, key=lambda e: e.name))
    host_module._HOST.ask_all()
    plugin = sys.modules.get(MODULE)
    rows = getattr(plugin, "ROWS", ()) if mutant is None or mutant.rows else ()
    without = {} if rows else dict.fromkeys(COUNT, "it counts")
    try:
        check_plugin(
            "mill",
            rows,
            ops=mutant.ops if mutant else None,
            without=without if hasattr(plugin, "ROWS") else None,
        )
    except ConformanceError as error:
        return str(error)
    return ""


def serve() -> None:
    """Read names of mutants, one per line, and answer with what the kit says of each."""
    import headrace
    import headrace.testing

    # A session loads what all children need.
    with headrace.Graph().as_default(), headrace.Session() as session:
        x = headrace.constant([1.0])
        session.run(headrace.gradients(headrace.sin(x) * 2.0, [x]))
    by_name = {mutant.name: mutant for mutant in MUTANTS}
    for line in sys.stdin:
        name = json.loads(line)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            signal.alarm(LIMIT_S)
            try:
                said = verdict_on(by_name.get(name))
            except BaseException as error:
                said = f"the kit itself fails: {error!r}"
            with os.fdopen(write, "w", encoding="utf-8") as stream:
                json.dump(said, stream)
            os._exit(0)
        os.close(write)
        with os.fdopen(read, encoding="utf-8") as stream:
            answer = stream.read()
        os.waitpid(child, 0)
        sys.stdout.write((answer or json.dumps("the process of the check ended")) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        serve()
