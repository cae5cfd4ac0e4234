"""Matrix multiplications by BLAS and by kernels for few columns, against NumPy in float64."""

from __future__ import annotations

import dataclasses
from ctypes import c_double, c_void_p

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.matmul import blas as blas_module
from headrace_cpu.matmul import double, narrow, shared, streamed
from headrace_cpu.matmul.blas import Matmul, Operands, loaded_blas
from headrace_cpu.matmul.instruction import MatmulInstruction
from headrace_cpu.matmul.match import matmul_of
from headrace_cpu.native.memory import address, allocate
from headrace_cpu.native.threads import Share
from headrace_cpu.program.instruction import Addresses
from headrace_cpu.program.matchers import MATCHERS
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.matching import match
from headrace_cpu.program.settings import CompileSettings

SCRATCH = allocate(1 << 17)
TOLERANCES = {"float32": 2e-5, "float64": 1e-13}

# rows, inner, columns
SIZES = [(1, 1, 1), (3, 4, 5), (1, 64, 33), (40, 1, 7), (33, 65, 17), (128, 70, 96)]
NARROW = [(100, 784, 10), (784, 100, 10), (13, 300, 16), (257, 64, 9), (64, 333, 32), (200, 40, 20)]

pytestmark = pytest.mark.skipif(loaded_blas() is None, reason="NumPy's BLAS cannot be called")


class Buffers(Addresses):
    """Arrays of tensors, of which some are pointed to only when a step runs."""

    def __init__(self, arrays, varying=()):
        self.arrays = arrays
        self.varying = varying

    def of(self, tensor):
        return None if tensor in self.varying else address(self.arrays[tensor])

    def scratch(self):
        # Bound matmuls outlive this.
        return address(SCRATCH)


def random(shape, dtype, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def matched(graph, results, threads=2, kind="blas"):
    """Return the instructions of what a graph holds, each a matmul."""
    matches = Matches(graph.operations, results)
    names = {f"{kind} update", f"{kind} matmul"}
    match(matches, CompileSettings(threads=threads), MATCHERS, names)
    assert all(isinstance(i, MatmulInstruction) for i in matches.instructions)
    return matches.instructions


def run(instruction, arrays, varying=()):
    """Run a bound instruction; what it points to moves before every run."""
    bound = instruction.bind(Buffers(arrays, varying))
    assert set(bound.point) == set(varying)
    for tensor, point in bound.point.items():
        point(address(arrays[tensor]))
    bound.call()
    return bound


def check(actual, expected, dtype, inner):
    scale = TOLERANCES[dtype] * max(1.0, inner**0.5)
    np.testing.assert_allclose(actual, expected, rtol=scale, atol=scale)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transposed_b", [False, True])
@pytest.mark.parametrize("transposed_a", [False, True])
@pytest.mark.parametrize(("rows", "inner", "columns"), [*SIZES, *NARROW])
@pytest.mark.parametrize("threads", [1, 2])
def test_matmuls(graph, rows, inner, columns, transposed_a, transposed_b, dtype, threads):
    x = random((inner, rows) if transposed_a else (rows, inner), dtype, 1)
    y = random((columns, inner) if transposed_b else (inner, columns), dtype, 2)
    a, b = hr.placeholder(dtype, x.shape), hr.placeholder(dtype, y.shape)
    c = hr.matmul(a, b, transposed_a, transposed_b)
    (instruction,) = matched(graph, [c], threads)
    assert instruction.flops() == 2 * rows * inner * columns
    left, right = np.float64(x.T if transposed_a else x), np.float64(y.T if transposed_b else y)
    # A kernel may compute the matmul only once it is prepared.
    for _ in range(2):
        out = np.full((rows, columns), np.nan, dtype)
        run(instruction, {a: x, b: y, c: out})
        check(out, left @ right, dtype, inner)
        instruction.prepare()
    assert instruction.source()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rows", "inner", "columns"), [(5, 6, 7), *NARROW])
@pytest.mark.parametrize("form", ["sub", "add", "rate", "rate first", "negated", "scalar", "both"])
def test_matmuls_into_variables(graph, rows, inner, columns, form, dtype):
    x, y = random((inner, rows), dtype, 1), random((inner, columns), dtype, 2)
    old = random((rows, columns), dtype, 3)
    variable = hr.Variable(np.zeros((rows, columns), dtype))
    a, b = hr.placeholder(dtype, x.shape), hr.placeholder(dtype, y.shape)
    rate = hr.placeholder(dtype, [])
    matmul = hr.matmul(a, b, transpose_a=True)
    build, factor = {
        "sub": (lambda: matmul, -1.0),
        "add": (lambda: matmul, 1.0),
        "rate": (lambda: matmul * 0.25, -0.25),
        "rate first": (lambda: hr.constant(0.25, dtype) * matmul, -0.25),
        "negated": (lambda: -matmul, 1.0),
        "scalar": (lambda: matmul * rate, -0.125),
        "both": (lambda: 0.5 * (matmul * rate), -0.0625),
    }[form]
    value = build()
    update = (hr.assign_add if form == "add" else hr.assign_sub)(variable, value)
    (instruction,) = matched(graph, [])
    assert instruction.updates == (variable.handle,)
    assert instruction.writes == ()
    assert instruction.ops[0] is matmul.op
    assert instruction.ops[-1] is update.op
    expected = old + factor * (np.float64(x).T @ np.float64(y))
    arrays = {a: x, b: y, variable.handle: old.copy(), rate: np.array(0.125, dtype)}
    varying = {a, variable.handle} | ({rate} & set(instruction.reads))
    for _ in range(2):
        arrays[variable.handle] = old.copy()
        bound = run(instruction, arrays, varying)
        check(arrays[variable.handle], expected, dtype, inner)
        # The variable's buffer may be another in the next step, and the scalar have another value.
        moved = old.copy()
        bound.point[variable.handle](address(moved))
        arrays[rate][...] *= 2
        bound.call()
        arrays[rate][...] /= 2
        again = expected if rate not in instruction.reads else 2 * expected - old
        check(moved, again, dtype, inner)
        instruction.prepare()


def test_updates_that_are_read_stay_apart(graph):
    variable = hr.Variable(np.zeros((4, 4), "f"))
    x = hr.placeholder("float32", [4, 4])
    update = hr.assign_sub(variable, hr.matmul(x, x))
    (instruction,) = matched(graph, [update])
    assert instruction.updates == ()


def test_gradients_that_are_read_are_materialised(graph):
    variable = hr.Variable(np.zeros((4, 4), "f"))
    x = hr.placeholder("float32", [4, 4])
    gradient = hr.matmul(x, x)
    hr.assign_sub(variable, 0.1 * gradient)
    (instruction,) = matched(graph, [gradient])
    assert instruction.writes == (gradient,)


def test_ordered_updates_stay_apart(graph):
    variable = hr.Variable(np.zeros((4, 4), "f"))
    x = hr.placeholder("float32", [4, 4])
    with hr.control_dependencies([hr.no_op()]):
        hr.assign_sub(variable, hr.matmul(x, x))
    assert all(not i.updates for i in matched(graph, []))


def test_updates_with_rates_that_are_no_scalars_stay_apart(graph):
    variable = hr.Variable(np.zeros((4, 4), "f"))
    x = hr.placeholder("float32", [4, 4])
    rates = hr.placeholder("float32", [4, 1])
    hr.assign_sub(variable, rates * hr.matmul(x, x))
    (instruction,) = matched(graph, [])
    assert instruction.updates == ()


def test_the_same_operand_twice(graph):
    x = random((5, 5), "float64")
    a = hr.placeholder("float64", [5, 5])
    c = hr.matmul(a, a, transpose_b=True)
    (instruction,) = matched(graph, [c])
    out = np.empty((5, 5))
    run(instruction, {a: x, c: out}, {a, c})
    check(out, x @ x.T, "float64", 5)


def test_batches_of_rows_are_one_matmul(graph):
    a, b = hr.placeholder("float32", [2, 3, 4]), hr.placeholder("float32", [4, 5])
    c = hr.matmul(a, b)
    assert matmul_of(c.op) == Matmul(6, 5, 4)
    x, y = random((2, 3, 4), "float32"), random((4, 5), "float32", 1)
    out = np.empty((2, 3, 5), "f")
    (instruction,) = matched(graph, [c])
    run(instruction, {a: x, b: y, c: out})
    check(out, np.float64(x) @ np.float64(y), "float32", 4)


@pytest.mark.parametrize(
    ("left", "right", "transposed", "dtype"),
    [
        ([2, 3, 4], [2, 4, 5], False, "float32"),
        ([2, 4, 3], [4, 5], True, "float32"),
        ([3, 0], [0, 5], False, "float32"),
        ([0, 4], [4, 5], False, "float32"),
        ([3, 4], [4, 0], False, "float64"),
        ([3, 4], [4, 5], False, "int32"),
        ([3, 4], [4, 5], False, "complex64"),
        ([3, 4], [4, 5], False, "float16"),
    ],
)
def test_matmuls_left_to_numpy(graph, left, right, transposed, dtype):
    a, b = hr.placeholder(dtype, left), hr.placeholder(dtype, right)
    c = hr.matmul(a, b, transpose_a=transposed)
    assert not matched(graph, [c])


def test_nan_in_the_old_result_does_not_matter_and_in_operands_does(graph):
    x = random((64, 40), "float32")
    x[3, 5] = np.nan
    a, b = hr.placeholder("float32", [64, 40]), hr.placeholder("float32", [40, 10])
    c = hr.matmul(a, b)
    (instruction,) = matched(graph, [c])
    for _ in range(2):
        out = np.full((64, 10), np.inf, "f")
        run(instruction, {a: x, b: np.ones((40, 10), "f"), c: out})
        assert np.isnan(out[3]).all()
        assert np.isfinite(np.delete(out, 3, 0)).all()
        instruction.prepare()


NARROW = [(37, 64, 10), (16, 40, 40), (8, 16, 16), (50, 33, 64), (5, 200, 48), (200, 70, 32)]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("rows", "inner", "columns"), NARROW)
def test_narrow_kernels_write_nothing_behind_their_result(graph, rows, inner, columns, transposed):
    matmul = Matmul(rows, columns, inner, transposed)
    if not narrow.pays(matmul):
        pytest.skip("this processor's vectors are too short")
    x, y = random((rows, inner), "float32"), random((inner, columns), "float32", 1)
    given = np.ascontiguousarray(x.T) if transposed else x
    a, b = hr.placeholder("float32", given.shape), hr.placeholder("float32", y.shape)
    c = hr.matmul(a, b, transpose_a=transposed)
    (instruction,) = matched(graph, [c], kind="uneven")
    instruction.prepare()
    size = rows * columns
    around = np.full(3 * size, 7.0, "f")
    run(instruction, {a: given, b: y, c: around[size : 2 * size]})
    found = around[size : 2 * size].reshape(rows, columns)
    check(found, np.float64(x) @ np.float64(y), "float32", inner)
    assert (around[:size] == 7).all()
    assert (around[2 * size :] == 7).all()


@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(3, 4096, 512), (4, 1032, 2048), (16, 2056, 1024)]
)
def test_few_rows_times_a_large_matrix(graph, rows, inner, columns):
    matmul = Matmul(rows, columns, inner)
    assert streamed.pays(matmul, 2)
    x, y = random((rows, inner), "float32", 1), random((inner, columns), "float32", 2)
    a, b = hr.placeholder("float32", x.shape), hr.placeholder("float32", y.shape)
    (instruction,) = matched(graph, [hr.matmul(a, b)], kind="uneven")
    instruction.prepare()
    assert "prefetch" in instruction.source()
    (c,) = instruction.writes
    size = rows * columns
    around = np.full(3 * size, np.nan, "f")
    results = []
    for threads in (1, 2):
        share = Share(threads)
        share.enter()
        try:
            run(instruction, {a: x, b: y, c: around[size : 2 * size]}, {b})
        finally:
            share.leave()
        results.append(around[size : 2 * size].reshape(rows, columns).copy())
    check(results[0], np.float64(x) @ np.float64(y), "float32", inner)
    np.testing.assert_array_equal(*results)
    assert np.isnan(around[:size]).all()
    assert np.isnan(around[2 * size :]).all()


@pytest.mark.parametrize(
    "matmul",
    [
        Matmul(17, 1024, 4096),
        Matmul(1, 1024, 4096),
        Matmul(16, 1024, 1024),
        Matmul(16, 1000, 4096),
        Matmul(16, 1024, 4099),
        Matmul(16, 1024, 4096, transposed_a=True),
        Matmul(16, 1024, 4096, transposed_b=True),
        Matmul(16, 1024, 4096, dtype="float64"),
    ],
)
def test_matmuls_that_are_not_streamed(matmul):
    assert streamed.pays(Matmul(16, 1024, 4096), 2)
    assert not streamed.pays(matmul, 2)


def test_streamed_matmuls_are_not_added_to_variables(graph):
    x, y = random((8, 4096), "float32", 1), random((4096, 1024), "float32", 2)
    a, b = hr.placeholder("float32", x.shape), hr.placeholder("float32", y.shape)
    hr.assign_add(hr.Variable(np.zeros((8, 1024), "f")), hr.matmul(a, b))
    (instruction,) = matched(graph, [])
    assert instruction.rate is not None
    instruction.prepare()
    (handle,) = instruction.updates
    out = np.ones((8, 1024), "f")
    run(instruction, {a: x, b: y, handle: out}, {handle})
    check(out, 1 + np.float64(x) @ np.float64(y), "float32", 4096)


def test_narrow_kernels_leave_wide_matmul(graph):
    a, b = hr.placeholder("float32", [128, 512]), hr.placeholder("float32", [512, 512])
    assert not matched(graph, [hr.matmul(a, b)], kind="uneven")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transposed_b", [False, True])
@pytest.mark.parametrize("transposed_a", [False, True])
@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(67, 90, 301), (301, 90, 67), (1, 900, 901), (513, 1100, 1)]
)
@pytest.mark.parametrize("threads", [2, 3, 70])
def test_threads_share_a_matmul(
    graph, rows, inner, columns, transposed_a, transposed_b, dtype, threads
):
    x = random((inner, rows) if transposed_a else (rows, inner), dtype, 1)
    y = random((columns, inner) if transposed_b else (inner, columns), dtype, 2)
    a, b = hr.placeholder(dtype, x.shape), hr.placeholder(dtype, y.shape)
    c = hr.matmul(a, b, transpose_a=transposed_a, transpose_b=transposed_b)
    (instruction,) = matched(graph, [c], threads)
    alone = double.pays(matmul_of(c.op))
    assert alone or "several threads" in instruction.source()
    left, right = (x.T if transposed_a else x), (y.T if transposed_b else y)
    for _ in range(2):
        around = np.full(3 * rows * columns, 7.0, dtype)
        out = around[rows * columns : 2 * rows * columns]
        run(instruction, {a: x, b: y, c: out}, {b, c})
        check(out.reshape(rows, columns), np.float64(left) @ np.float64(right), dtype, inner)
        assert (around[: rows * columns] == 7).all()
        assert (around[2 * rows * columns :] == 7).all()
        instruction.prepare()


def test_threads_share_what_is_added_to_a_variable(graph):
    x, y = random((80, 301), "float32", 1), random((80, 67), "float32", 2)
    a, b = hr.placeholder("float32", x.shape), hr.placeholder("float32", y.shape)
    rate = hr.placeholder("float32", [])
    weights = hr.Variable(np.zeros((301, 67), "f"))
    step = hr.assign_sub(weights, rate * hr.matmul(a, b, transpose_a=True))
    (instruction,) = matched(graph, [])
    assert step.op in instruction.ops
    instruction.prepare()
    (handle,) = instruction.updates
    old = random((301, 67), "float32", 3)
    out = old.copy()
    run(instruction, {a: x, b: y, rate: np.float32([0.5]), handle: out}, {a, handle})
    expected = np.float64(old) - 0.5 * np.float64(x).T @ np.float64(y)
    check(out, expected, "float32", 80)


def test_parts_of_a_matmul_do_not_depend_on_who_computes_them(graph):
    x, y = random((130, 200), "float32", 1), random((200, 170), "float32", 2)
    a, b = hr.placeholder("float32", x.shape), hr.placeholder("float32", y.shape)
    c = hr.matmul(a, b)
    (instruction,) = matched(graph, [c], 4)
    instruction.prepare()
    results = []
    for threads in (1, 2):
        results.append(np.empty((130, 170), "f"))
        share = Share(threads)
        share.enter()
        try:
            run(instruction, {a: x, b: y, c: results[-1]})
        finally:
            share.leave()
    np.testing.assert_array_equal(*results)


def test_matmuls_worth_sharing():
    blas = dataclasses.replace(loaded_blas(), threads=4, set_threads=lambda count: None)
    assert shared.pays(Matmul(100, 100, 100), blas, 2)
    assert not shared.pays(Matmul(100, 100, 100), blas, 1)
    assert not shared.pays(Matmul(10, 10, 10), blas, 2)
    fixed = dataclasses.replace(blas, set_threads=None)
    assert not shared.pays(Matmul(100, 100, 100), fixed, 2)


def test_blas_stays_on_its_callers_threads_while_they_share_a_matmul():
    told = []
    blas = dataclasses.replace(loaded_blas(), threads=4, set_threads=told.append)

    def nested():
        assert told == [1]
        blas.alone(lambda: None)()

    blas.alone(nested)()
    assert told == [1, 1, 4]
    blas.alone(lambda: None)()
    assert told == [1, 1, 4, 1, 4]


def test_blas_runs_on_the_threads_that_a_session_allows():
    blas = loaded_blas()
    told = []
    four = dataclasses.replace(blas, threads=4, set_threads=told.append)
    x, out = random((8, 8), "float64"), np.empty((8, 8))
    places = (c_void_p(address(x)), c_void_p(address(x)), c_void_p(address(out)))
    operands = Operands(*places, c_double(1), c_double(0))
    matmul = Matmul(8, 8, 8, dtype="float64")
    for threads, expected in ((None, []), (4, []), (9, []), (2, [2, 4])):
        out[:] = 0
        four.bind(matmul, operands, threads)()
        check(out, x @ x, "float64", 8)
        assert told == expected


def test_blas_stays_within_the_share_of_the_process(monkeypatch):
    told = []
    monkeypatch.setattr(blas_module, "thread_count", lambda: 3)
    assert blas_module._shared(lambda: 8, told.append) == 3
    assert blas_module._shared(lambda: 2, told.append) == 2
    assert blas_module._shared(None, None) == 1
    assert told == [3]


def test_training_with_matmuls_equals_the_plain_executor():
    x = random((50, 30), "float32")
    labels = random((50, 10), "float32", 1)

    def losses(executor):
        with hr.Graph().as_default():
            data = hr.placeholder("float32", [50, 30])
            wanted = hr.placeholder("float32", [50, 10])
            weights = hr.Variable(np.zeros((30, 10), "f"))
            error = hr.matmul(data, weights) - wanted
            step = hr.assign_sub(weights, 0.01 * hr.matmul(data, error, transpose_a=True))
            train, loss = hr.group(step), hr.reduce_mean(error * error)
            with hr.Session(config=hr.Config(executor=executor)) as session:
                session.run(hr.global_variables_initializer())
                feeds = {data: x, wanted: labels}
                values = [session.run([loss, train], feeds)[0] for _ in range(6)]
                return [*values, *session.run(weights).ravel()]

    np.testing.assert_allclose(losses("plan"), losses("plain"), rtol=1e-4, atol=1e-6)
