"""Elementary functions of generated kernels: their errors, special results and vector form.

The documented table of errors is what the functions are held to. Its figures are made by
tools/measure_functions.py, whose samples and references these tests share.
"""

from __future__ import annotations

import importlib.util
import itertools
import re
import sys
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest

from headrace_cpu.fusion.constants import ODD as ODD_IN_KERNELS
from headrace_cpu.fusion.functions import COST, WRITTEN
from headrace_cpu.fusion.vocabulary import ELEMENTARY_FUNCTIONS
from headrace_cpu.native.build import build
from headrace_cpu.native.compiler import optimize, target_machine
from headrace_cpu.native.memory import address
from headrace_cpu.native.source import KernelSource
from headrace_cpu.native.threads import launch
from headrace_cpu.native.translate import translate

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/reference/elementary-functions.md"


def _tool(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


measuring = _tool("measure_functions")

DTYPES = ["float32", "float64"]
ROW = re.compile(r"^\| (\w+) \| (float\d\d) \| ([\d.]+) \| ([\d.]+) \| ([^|]+) \|$", re.MULTILINE)
PROMISED = {(op, dtype): float(bound) for op, dtype, bound, *_ in ROW.findall(PAGE.read_text())}
APPROXIMATED = {*measuring.UNARY, *measuring.BINARY, *measuring.SPECIALS}
MEASURED = sorted((op, dtype) for op in APPROXIMATED for dtype in DTYPES)
# Those that are a few exact or correctly rounded instructions, and NumPy's names of them.
EXACT = {
    "Abs": np.absolute,
    "Ceil": np.ceil,
    "Floor": np.floor,
    "Reciprocal": np.reciprocal,
    "Relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "Rint": np.rint,
    "Sign": np.sign,
    "Sqrt": np.sqrt,
    "Square": np.square,
}
EXACT_OF_TWO = ["DivNoNan", "FloorDiv", "Maximum", "Minimum", "MulNoNan", "TruncateDiv", "Xdivy"]
TESTS = {"IsFinite": np.isfinite, "IsInf": np.isinf, "IsNan": np.isnan}
# Functions with f(-x) = -f(x), exactly.
ODD = {
    **{name.title(): name for name in ("asin", "asinh", "atan", "atanh", "erf", "erfinv", "sin")},
    **{name.title(): name for name in ("sinh", "tan", "tanh")},
    "BesselI1": "bessel_i1",
    "BesselI1e": "bessel_i1e",
}
BOUNDED = ["Cos", "Erf", "Sin", "Tanh"]


def run(op, *arguments, result=None):
    dtype = arguments[0].dtype.name
    got = np.empty(arguments[0].shape, result or dtype)
    measuring.loop_of(op, dtype, result, len(arguments))(*arguments, got)
    return got


def assert_identical(got, want):
    """The same numbers with the same signs of zeros, or both NaN."""
    same = (got == want) & (np.signbit(got) == np.signbit(want))
    same |= np.isnan(got) & np.isnan(want)
    places = np.flatnonzero(~same)[:5]
    assert not places.size, f"at {places}: got {got[places]}, expected {want[places]}"


def pairs(dtype):
    values = np.concatenate([measuring.special(dtype), np.arange(-6, 7).astype(dtype)])
    x, y = np.meshgrid(values, values)
    return x.ravel(), y.ravel()


def wide_reference_missing(dtype):
    return dtype == "float64" and not measuring.LONG_DOUBLE


def test_the_page_lists_every_function_that_is_approximated():
    assert sorted(PROMISED) == MEASURED
    exact = {*EXACT, *EXACT_OF_TWO, *TESTS, "Xlogy"}
    assert {op for op, _ in WRITTEN} == {op for op, _ in MEASURED} | exact


def test_every_function_has_a_cost():
    assert COST.keys() == WRITTEN.keys()
    assert min(COST.values()) >= 1
    assert COST["Exp", "float32"] > COST["Square", "float32"]


@pytest.mark.parametrize(("op", "dtype"), MEASURED)
def test_errors_are_within_the_documented_ones(op, dtype):
    if wide_reference_missing(dtype):
        pytest.skip("long double is no wider than float64 here")
    error, where = measuring.measure(
        op, measuring.loop_of(op, dtype), measuring.arguments_of(op, dtype, 70_000)
    )
    assert error <= PROMISED[op, dtype], f"at {where}"


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("op", sorted(measuring.UNARY))
def test_errors_of_every_float32_are_within_the_documented_ones(op):
    error, where = measuring.measure_all(op, measuring.loop_of(op, "float32"))
    assert error <= PROMISED[op, "float32"], f"at {where}"


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_measure_finds_errors(dtype):
    exact = np.array([1.0, 3.0, 1e-45, 0.0, np.inf, np.nan, -2.5], np.float64)
    if dtype == "float64":
        exact = exact.astype(np.longdouble)
    right = exact.astype(dtype)
    assert measuring.errors(right, exact).max() <= 0.5
    for place in range(4):
        wrong = right.copy()
        wrong[place] = np.nextafter(wrong[place], np.finfo(dtype).max)
        assert 0.5 <= measuring.errors(wrong, exact).max() <= 1.5
    for place, value in [(4, np.finfo(dtype).max), (5, 0.0), (6, np.nan), (0, np.inf)]:
        wrong = right.copy()
        wrong[place] = value
        assert measuring.errors(wrong, exact).max() > 1e6


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", sorted(measuring.UNARY))
def test_special_results_are_numpys(op, dtype, kernel):
    """Where a result is 0, infinite or NaN, so it is in the plain kernel, signs of zeros too."""
    x = measuring.special(dtype)
    with np.errstate(all="ignore"):
        want = kernel(op, x)
    got = run(op, x)
    ends = ~np.isfinite(want) | (want == 0)
    assert_identical(got[ends], want[ends])
    assert np.isfinite(got[~ends]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", sorted([*measuring.BINARY, "Xlogy"]))
def test_special_results_of_two_numbers_are_numpys(op, dtype, kernel):
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        want = kernel(op, x, y)
    got = run(op, x, y)
    ends = ~np.isfinite(want) | (want == 0)
    assert_identical(got[ends], want[ends])
    info = np.finfo(dtype)
    np.testing.assert_allclose(
        got[~ends], want[~ends], rtol=16 * info.eps, atol=info.smallest_subnormal
    )


def _special_arguments(op, dtype):
    if op == "Betainc":
        ends = [-0.5, 0.0, 0.3, 1.0, 7.0, 300.0, np.inf, np.nan]
        given = np.meshgrid(ends, ends, [-0.5, 0.0, 0.25, 0.75, 1.0, 1.5, np.nan])
    else:
        ends = [-np.inf, -2.5, -1.0, -0.0, 0.0, 0.1, 1.0, 1.5, 2.0, 5.0, 30.0, 150.0, np.inf]
        given = np.meshgrid([*ends, np.nan], [*ends, np.nan])
    return [each.ravel().astype(dtype) for each in given]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", sorted(measuring.SPECIALS))
def test_special_functions_end_as_the_plain_kernels_do(op, dtype, kernel):
    given = _special_arguments(op, dtype)
    with np.errstate(all="ignore"):
        want = kernel(op, *given)
    got = run(op, *given)
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    info = np.finfo(dtype)
    np.testing.assert_allclose(
        got[finite], want[finite], rtol=max(1e-12, 4 * info.eps), atol=info.tiny
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["Digamma", "Igamma", "Lgamma", "Polygamma"])
def test_what_is_computed_for_some_numbers_of_a_vector_changes_no_other(op, dtype):
    """Branches and loops take whole vectors: each number comes out as if it stood alone."""
    given = measuring.arguments_of(op, dtype, 300)
    together = run(op, *given)
    alone = np.concatenate(
        [run(op, *(x[i : i + 1].copy() for x in given)) for i in range(given[0].size)]
    )
    assert_identical(together, alone)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", sorted(EXACT))
def test_simple_functions_are_numpys(op, dtype):
    x = measuring.sample(dtype, 5000)
    with np.errstate(all="ignore"):
        assert_identical(run(op, x), EXACT[op](x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", EXACT_OF_TWO)
def test_simple_functions_of_two_are_the_plain_kernels(op, dtype, kernel):
    x, y = pairs(dtype)
    with np.errstate(all="ignore"):
        assert_identical(run(op, x, y), kernel(op, x, y))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", sorted(TESTS))
def test_questions_are_numpys(op, dtype):
    x = measuring.sample(dtype, 1000)
    np.testing.assert_array_equal(run(op, x, result="bool_"), TESTS[op](x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ODD)
def test_odd_functions_are_odd(op, dtype):
    x = measuring.sample(dtype, 5000)
    assert_identical(run(op, -x), -run(op, x))


def test_fused_kernels_take_no_other_function_for_odd():
    assert set(ODD.values()) == ODD_IN_KERNELS


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", BOUNDED)
def test_bounded_functions_stay_within_one(op, dtype):
    got = run(op, measuring.sample(dtype, 20_000))
    assert 0.999 < np.nanmax(np.abs(got)) <= 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_sigmoid_stays_between_zero_and_one(dtype):
    got = run("Sigmoid", measuring.sample(dtype, 20_000))
    assert np.nanmin(got) == 0
    assert np.nanmax(got) == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_small_powers_of_whole_numbers_are_exact(dtype):
    exponents = range(9)
    bases = range(-31, 32)
    rows = [(b, n, b**n) for b, n in itertools.product(bases, exponents)]
    rows = [row for row in rows if abs(row[2]) < 2 ** np.finfo(dtype).nmant]
    x, y, want = (np.array(column, dtype) for column in zip(*rows, strict=True))
    np.testing.assert_array_equal(run("Pow", x, y), want)


def _known_features():
    import llvmlite.binding

    return llvmlite.binding.get_host_cpu_features()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", sorted({op for op, _ in MEASURED}))
def test_loops_become_vector_code(op, dtype):
    """Fused products of whole vectors occur, and nothing is called."""
    features = _known_features()
    if not (features.get("avx2") and features.get("fma")):
        pytest.skip("looks for instructions of AVX2 and FMA")
    assembly = assembly_of(measuring.source_of_loop(op, dtype, measuring.arity_of(op), dtype))
    packed = r"\tv(fmadd|fmsub|fnmadd|fnmsub)\d+p[sd]\s.*%[yz]mm"
    if op == "Rsqrt":
        packed = r"\tvsqrtp[sd]\s.*%[yz]mm"
    assert re.search(packed, assembly)
    for name in ("exp", "log", "sin", "cos", "tan", "pow", "erf", "fma", "sqrt", "rint"):
        assert not re.search(rf"\tcallq?\t.*\b{name}f?\b", assembly)


def assembly_of(source):
    """The machine's assembly of a kernel."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(translate(source.text, source.name, source.vocabulary))
    machine = target_machine()
    module = optimize(module, machine)
    return machine.emit_assembly(module)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("op", ["Cos", "Sin", "Tan"])
def test_rare_arguments_change_no_result_beside_them(op, dtype):
    """Huge arguments take another way, wherever they stand in a vector or behind the last one."""
    usual = np.linspace(-9, 9, 83).astype(dtype)
    huge = (np.geomspace(2.0**20, 2.0**100, 83) * 1.37).astype(dtype)
    alone_usual, alone_huge = run(op, usual), run(op, huge)
    for step in (1, 2, 7, 64, 82):
        rare = np.arange(83) % step == step - 1
        got = run(op, np.where(rare, huge, usual))
        assert_identical(got, np.where(rare, alone_huge, alone_usual))


@pytest.mark.parametrize("op", ["Cos", "Sin", "Tan"])
def test_arguments_near_the_bound_of_rare_ones(op):
    """Both ways are within the promise where one gives way to the other."""
    for dtype in DTYPES:
        if wide_reference_missing(dtype):
            continue
        near = (2.0**20 + np.linspace(-300, 300, 4001)).astype(dtype)
        x = np.concatenate([near, -near])
        error, where = measuring.measure(op, measuring.loop_of(op, dtype), (x,))
        assert error <= PROMISED[op, dtype], f"{dtype} at {where}"


CHAIN = """
sin = FUNCTIONS["Sin", "float64"]
cos = FUNCTIONS["Cos", "float64"]
exp = FUNCTIONS["Exp", "float64"]
one = np.float64(1.0)


def chain(block):
    given, made = word(block, 1), word(block, 2)
    for i in range(word(block, 0)):
        x = load_f64(given, i, 0)
        store_f64(made, i, sin(x) * cos(x + one) + exp(-x), 1)
"""


def test_one_kernel_may_use_several_functions():
    """A chain compiles as one loop; what rare arguments need stands in a module but once."""
    x = np.linspace(0, 50, 999)
    out = np.empty_like(x)
    (place,) = build([KernelSource("chain", CHAIN, vocabulary=ELEMENTARY_FUNCTIONS)])
    block = np.array([x.size, address(x), address(out)], np.int64)
    launch(place, address(block))()
    np.testing.assert_allclose(out, np.sin(x) * np.cos(x + 1) + np.exp(-x), rtol=1e-12, atol=1e-15)
