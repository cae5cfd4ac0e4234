"""Matrix products of compiled steps: which are taken, with what, and what cublasLt is asked for."""

from __future__ import annotations

import ctypes
import gc
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ExecutionError
from headrace_cuda.matmul import cublaslt
from headrace_cuda.matmul.library import MatmulPlaces, MatmulShape
from headrace_cuda.testing.instructions import matched, run
from headrace_cuda.testing.libraries import NumpyMatmuls
from headrace_cuda.testing.platform import FakePlatform

pytestmark = pytest.mark.usefixtures("graph")

ONLY = {"matmul"}


@pytest.fixture
def platform():
    return FakePlatform()


def holder(*shape, dtype="float32"):
    return hr.placeholder(dtype, shape)


def check(results, platform, precision="highest"):
    """Check the one instruction of a graph beside the plain kernels; return it."""
    (instruction,) = matched(results, platform, ONLY, precision=precision)
    rng = np.random.default_rng(0)
    # Whole numbers, so that the order of sums does not matter.
    holders = [op.outputs[0] for op in results[0].op.graph.operations if op.type == "Placeholder"]
    feeds = {t: rng.integers(-4, 5, t.shape.as_list()).astype(t.dtype.numpy) for t in holders}
    with hr.Session() as session:
        tensors = [*instruction.reads, *instruction.writes]
        values = dict(zip(tensors, session.run(tensors, feeds), strict=True))
    written = run(instruction, values, platform)
    for tensor, array in written.items():
        np.testing.assert_array_equal(array, values[tensor])
    elements = instruction.writes[0].shape.num_elements()
    assert instruction.flops() == 2 * elements * instruction.shape.depth
    assert instruction.source().endswith(str(instruction.shape))
    return instruction


FLAGS = [(False, False), (False, True), (True, False), (True, True)]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(("transpose_a", "transpose_b"), FLAGS)
def test_products(platform, transpose_a, transpose_b, dtype):
    a = holder(*((3, 5) if transpose_a else (5, 3)), dtype=dtype)
    b = holder(*((7, 3) if transpose_b else (3, 7)), dtype=dtype)
    y = hr.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    shape = check([y], platform).shape
    assert (shape.rows, shape.columns, shape.depth, shape.batch) == (5, 7, 3, 1)
    assert (shape.transpose_left, shape.transpose_right) == (transpose_a, transpose_b)
    assert shape.dtype == dtype


@pytest.mark.parametrize(
    ("a", "b", "batch", "steps"),
    [
        ((2, 5, 3), (2, 3, 7), 2, (15, 21)),
        ((2, 4, 5, 3), (2, 4, 3, 7), 8, (15, 21)),
        ((5, 3), (4, 3, 7), 4, (0, 21)),
        ((1, 5, 3), (4, 3, 7), 4, (0, 21)),
        # One matrix on the right makes one large product.
        ((2, 4, 5, 3), (3, 7), 1, (0, 0)),
        ((2, 4, 5, 3), (1, 3, 7), 1, (0, 0)),
        ((1, 1, 5, 3), (3, 7), 1, (0, 0)),
    ],
    ids=str,
)
def test_batches(platform, a, b, batch, steps):
    shape = check([hr.matmul(holder(*a), holder(*b))], platform).shape
    assert (shape.batch, shape.left_step, shape.right_step) == (batch, *steps)


@pytest.mark.parametrize("addend", [False, True])
@pytest.mark.parametrize(
    ("a", "b", "starts", "batch"),
    [
        ((2, 1, 5, 3), (1, 4, 3, 7), 2, 4),
        ((2, 1, 6, 5, 3), (4, 1, 3, 7), 8, 6),
        ((3, 1, 5, 3), (3, 4, 3, 7), 3, 4),
        ((2, 3, 1, 5, 3), (3, 4, 3, 7), 6, 4),
        ((4, 5, 3), (2, 1, 3, 7), 2, 4),
        ((2, 5, 1, 5, 3), (2, 1, 4, 3, 7), 10, 4),
    ],
    ids=str,
)
def test_what_broadcasts_both_ways_is_several_products(platform, a, b, starts, batch, addend):
    y = hr.matmul(holder(*a), holder(*b))
    if addend:
        y = y + holder(*y.shape.as_list())
    instruction = check([y], platform)
    assert instruction.shape.batch == batch
    assert f"{starts} times [5, 3] @ [3, 7]" in instruction.source()
    assert len(instruction.ops) == 1 + addend


def test_one_transposed_matrix_on_the_left_for_a_batch_of_columns(platform):
    y = hr.matmul(holder(2, 3, 5), holder(3, 7), transpose_a=True)
    shape = check([y], platform).shape
    assert (shape.batch, shape.left_step, shape.right_step) == (2, 15, 0)


@pytest.mark.parametrize(
    ("a", "b"),
    [((65, 1, 5, 3), (1, 4, 3, 7)), ((0, 3), (3, 7)), ((5, 0), (0, 7)), ((5, 3), (3, 0))],
    ids=str,
)
def test_products_that_stay_with_others(platform, a, b):
    assert not matched([hr.matmul(holder(*a), holder(*b))], platform, ONLY)


def test_whole_numbers_stay_with_others(platform):
    y = hr.matmul(holder(2, 3, dtype="int32"), holder(3, 2, dtype="int32"))
    assert not matched([y], platform, ONLY)


def product(bias, addend, relu, batch=()):
    y = hr.matmul(holder(*batch, 5, 3), holder(*batch, 3, 7))
    if bias:
        y = y + holder(7)
    if addend:
        y = holder(*batch, 5, 7) + y
    return hr.nn.relu(y) if relu else y


@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("addend", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_what_follows_is_part_of_the_product(platform, bias, addend, relu, batch):
    instruction = check([product(bias, addend, relu, batch)], platform)
    shape = instruction.shape
    assert (shape.bias, shape.addend, shape.relu) == (bias, addend, relu)
    types = ["MatMul", *["Add"] * (bias + addend), *["Relu"] * relu]
    assert [op.type for op in instruction.ops] == types
    assert len(instruction.reuses) == addend


def test_what_a_library_does_not_take_stays_with_others(platform):
    platform.matmuls = NumpyMatmuls(lambda shape: not shape.relu)
    instruction = check([product(True, False, True)], platform)
    assert [op.type for op in instruction.ops] == ["MatMul", "Add"]
    platform.matmuls = NumpyMatmuls(lambda shape: False)
    assert not matched([product(True, False, True)], platform, ONLY)


def test_a_product_that_others_read_is_not_hidden(platform):
    y = hr.matmul(holder(5, 3), holder(3, 7))
    z = hr.nn.relu(y)
    (instruction,) = matched([y, z], platform, ONLY)
    assert [op.type for op in instruction.ops] == ["MatMul"]


def test_a_product_that_is_added_to_its_operand_has_a_buffer_of_its_own(platform):
    a = holder(4, 4)
    assert not check([hr.matmul(a, holder(4, 4)) + a], platform).reuses


@pytest.mark.needs("autodiff")
def test_gradients_are_products_with_transposed_operands(platform):
    x, w = holder(5, 3), holder(3, 7)
    grads = hr.gradients(hr.matmul(x, w), [x, w], grad_ys=holder(5, 7))
    shapes = [i.shape for i in matched(grads, platform, ONLY)]
    kinds = {(s.rows, s.columns, s.transpose_left, s.transpose_right) for s in shapes}
    assert {(5, 3, False, True), (3, 7, True, False)} <= kinds


def test_the_precision_is_the_sessions(platform):
    y = hr.matmul(holder(5, 3), holder(3, 7))
    assert check([y], platform, precision="tf32").shape.precision == "tf32"
    assert platform.matmuls.shapes[-1].precision == "tf32"


# -- the binding of cublasLt, beside one that computes on the host


class Gpu:
    """Has memory of the host, and a time for each of what is measured.

    Args:
        times: Seconds.
        room: Bytes that can be allocated at a time.
    """

    stream = 77

    def __init__(self, times=(), room=1 << 20):
        self.times, self.room, self.platform = list(times), room, FakePlatform()

    def allocate(self, size):
        if size > self.room:
            raise ExecutionError("out of memory")
        return self.platform.allocate(size)

    def address(self, array):
        return self.platform.address(array)

    def measure(self, work):
        time = self.times.pop(0)
        work()
        return time


@pytest.fixture(scope="module")
def pretended(tmp_path_factory, build_library):
    folder = tmp_path_factory.mktemp("cublaslt")
    source = Path(__file__).parent / "pretended_cublaslt.cpp"
    return str(build_library(source, folder / "libpretended.so"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
@pytest.mark.parametrize(("transpose_a", "transpose_b"), FLAGS)
def test_cublaslt_multiplies(platform, pretended, transpose_a, transpose_b, batch, dtype):
    platform.matmuls = cublaslt.CublasLt(Gpu(), pretended)
    a = holder(*batch, *((3, 5) if transpose_a else (5, 3)), dtype=dtype)
    b = holder(*batch, *((7, 3) if transpose_b else (3, 7)), dtype=dtype)
    y = hr.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)
    assert check([y], platform).scratch == 4096
    assert check([y], platform, precision="tf32").source().startswith("cublasLt: ")


@pytest.mark.parametrize("sizes", [(1, 4, 3), (4, 1, 3), (4, 3, 1), (1, 1, 3), (4, 1, 1)], ids=str)
@pytest.mark.parametrize(("transpose_a", "transpose_b"), FLAGS)
def test_cublaslt_multiplies_vectors(platform, pretended, transpose_a, transpose_b, sizes):
    platform.matmuls = cublaslt.CublasLt(Gpu(), pretended)
    rows, columns, depth = sizes
    a = holder(*((depth, rows) if transpose_a else (rows, depth)))
    b = holder(*((columns, depth) if transpose_b else (depth, columns)))
    check([hr.matmul(a, b, transpose_a=transpose_a, transpose_b=transpose_b)], platform)


def test_only_what_lies_differently_is_transposed():
    def flags(**sizes):
        plain = cublaslt._untransposed(
            MatmulShape(transpose_left=True, transpose_right=True, **sizes)
        )
        return plain.transpose_left, plain.transpose_right

    assert flags(rows=4, columns=5, depth=6) == (True, True)
    assert flags(rows=1, columns=5, depth=6) == (False, True)
    assert flags(rows=4, columns=1, depth=6) == (True, False)
    assert flags(rows=4, columns=5, depth=1) == (False, False)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("addend", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_cublaslt_does_what_follows(platform, pretended, bias, addend, relu):
    platform.matmuls = cublaslt.CublasLt(Gpu(), pretended)
    assert len(check([product(bias, addend, relu)], platform).ops) == 1 + bias + addend + relu


def test_what_cublaslt_has_no_algorithm_for_stays_with_others(platform, pretended, monkeypatch):
    platform.matmuls = cublaslt.CublasLt(Gpu(), pretended)
    y = hr.nn.relu(hr.matmul(holder(5, 3, dtype="float64"), holder(3, 7, dtype="float64")))
    assert [op.type for op in check([y], platform).ops] == ["MatMul"]
    monkeypatch.setenv("FAKE_LT_HEURISTIC", "15")
    # Not asked again: the answer is kept.
    assert matched([y], platform, ONLY)
    platform.matmuls = cublaslt.CublasLt(Gpu(), pretended)
    assert not matched([y], platform, ONLY)
    assert platform.matmuls.plan(replace(SHAPE, dtype="int32")) is None


@pytest.mark.parametrize(
    ("times", "chosen"), [([3.0, 1.0, 2.0], 1), ([1.0, 1.0, 1.0], 0), ([3.0, 2.0, 1.0], 2)]
)
@pytest.mark.parametrize("addend", [False, True])
def test_the_quickest_algorithm_is_chosen(pretended, monkeypatch, times, chosen, addend):
    monkeypatch.setenv("FAKE_LT_COUNT", "3")
    library = cublaslt.CublasLt(Gpu(times), pretended)
    assert library.plan(replace(SHAPE, addend=addend)).scratch == 4096 + chosen
    # Once for each product.
    assert library.plan(replace(SHAPE, addend=addend)).scratch == 4096 + chosen


def test_no_more_than_some_algorithms_are_tried(pretended, monkeypatch):
    monkeypatch.setenv("FAKE_LT_COUNT", "100")
    library = cublaslt.CublasLt(Gpu([float(100 - i) for i in range(100)]), pretended)
    assert library.plan(SHAPE).scratch == 4096 + cublaslt._ALGORITHMS - 1


def test_algorithms_that_do_not_work_are_left_out(pretended, monkeypatch):
    monkeypatch.setenv("FAKE_LT_COUNT", "2")
    monkeypatch.setenv("FAKE_LT_BROKEN", "0")
    assert cublaslt.CublasLt(Gpu([1.0, 2.0]), pretended).plan(SHAPE).scratch == 4097


def test_without_room_to_try_the_first_algorithm_is_taken(pretended, monkeypatch):
    monkeypatch.setenv("FAKE_LT_COUNT", "2")
    assert cublaslt.CublasLt(Gpu(room=8), pretended).plan(SHAPE).scratch == 4096


def test_nothing_is_timed_where_equal_runs_must_give_equal_bits(pretended, monkeypatch):
    monkeypatch.setenv("FAKE_LT_COUNT", "2")
    plan = cublaslt.CublasLt(Gpu(), pretended).plan(replace(SHAPE, deterministic=True))
    assert plan.scratch == 4096


def test_sessions_that_are_deterministic_ask_for_that(platform):
    y = hr.matmul(holder(5, 3), holder(3, 7))
    for flag in (False, True):
        (instruction,) = matched([y], platform, ONLY, deterministic=flag)
        assert instruction.shape.deterministic is flag


def test_descriptors_are_freed(pretended):
    alive = ctypes.CDLL(pretended).headrace_alive
    library = cublaslt.CublasLt(Gpu(), pretended)
    before = alive()
    plan = library.plan(SHAPE)
    assert alive() > before
    del plan
    gc.collect()
    assert alive() == before


def started(library, skipped):
    """Start a product of which every operand lies some bytes behind an aligned address."""
    shape = replace(SHAPE, transpose_left=False, batch=1, left_step=0)
    plan = library.plan(shape)
    rng = np.random.default_rng(0)
    rooms, places = [], {}
    sizes = {"left": (3, 7), "right": (7, 5), "bias": (5,), "out": (3, 5)}
    for name, size in sizes.items():
        rooms.append(np.zeros(1000, np.uint8))
        start = -rooms[-1].ctypes.data % 16 + skipped
        view = rooms[-1][start : start + 4 * math.prod(size)].view(np.float32).reshape(size)
        view[...] = rng.integers(-4, 5, size)
        places[name] = view
    scratch = np.zeros(plan.scratch, np.uint8)
    addresses = {name: view.ctypes.data for name, view in places.items()}
    plan.start(MatmulPlaces(**addresses), scratch.ctypes.data)
    expected = np.maximum(places["left"] @ places["right"] + places["bias"], 0)
    np.testing.assert_array_equal(places["out"], expected)


@pytest.mark.parametrize("skipped", [0, 4, 8])
def test_operands_that_are_aligned_to_less_get_another_algorithm(pretended, skipped):
    started(cublaslt.CublasLt(Gpu(), pretended), skipped)


def test_without_such_an_algorithm_it_says_so(pretended, monkeypatch):
    monkeypatch.setenv("FAKE_LT_ALIGNED", "1")
    library = cublaslt.CublasLt(Gpu(), pretended)
    started(library, 0)
    with pytest.raises(ExecutionError, match=r"no algorithm for \[3, 7\] @ .*, unaligned"):
        started(library, 4)


def test_failures_say_what_was_asked_for(pretended, monkeypatch):
    class Elsewhere:
        stream = 78

    with pytest.raises(
        ExecutionError, match=r"cublasLtMatmul fails with CUBLAS_STATUS_INVALID_VALUE for \[3, 7\]"
    ):
        started(cublaslt.CublasLt(Elsewhere(), pretended), 0)
    monkeypatch.setenv("FAKE_LT_HEURISTIC", "7")
    with pytest.raises(
        ExecutionError,
        match=r"AlgoGetHeuristic fails with CUBLAS_STATUS_INVALID_VALUE for \[3, 7\]",
    ):
        started(cublaslt.CublasLt(Gpu(), pretended), 0)
    monkeypatch.setenv("FAKE_LT_CREATE", "1")
    with pytest.raises(ExecutionError, match=r"cublasLtCreate fails with .* for this GPU"):
        cublaslt.CublasLt(Gpu(), pretended)


# -- the binding of cublasLt, beside the real one: what can be checked without a GPU


SHAPE = MatmulShape(
    rows=3, columns=5, depth=7, transpose_left=True, batch=2, left_step=21, bias=True, relu=True
)


def test_structures_have_the_sizes_of_the_header():
    assert ctypes.sizeof(cublaslt._Algorithm) == 64
    assert ctypes.sizeof(cublaslt._Heuristic) == 96
    offsets = {name: getattr(cublaslt._Heuristic, name).offset for name in ("workspace", "state")}
    assert offsets == {"workspace": 64, "state": 72}


@pytest.fixture(scope="module")
def functions():
    pytest.importorskip("cuda.pathfinder")
    try:
        return cublaslt.Functions(cublaslt.library_path())
    except (ExecutionError, OSError) as error:
        pytest.skip(f"there is no cublasLt: {error}")


def read(functions, name, made, attribute, kind):
    value, written = kind(), ctypes.c_size_t()
    function = getattr(functions._library, name)
    function.argtypes = (
        *(ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t),
        ctypes.POINTER(ctypes.c_size_t),
    )
    size = ctypes.sizeof(value)
    assert function(made, attribute, ctypes.byref(value), size, ctypes.byref(written)) == 0
    assert written.value == size
    return value.value


def test_descriptors_say_what_they_should(functions):
    made = cublaslt._Descriptors(functions, SHAPE)
    made.set_bias(0x7F0000001000)
    get = "cublasLtMatmulDescGetAttribute"
    words = [read(functions, get, made.operation, a, ctypes.c_int32) for a in (0, 1, 3, 4, 7)]
    # Computed and scaled in float32; A, our right one, as it is, and B transposed; both epilogues.
    assert words == [68, 0, 0, 1, 6]
    assert read(functions, get, made.operation, 8, ctypes.c_uint64) == 0x7F0000001000
    get = "cublasLtMatrixLayoutGetAttribute"
    for layout, sizes in (
        (made.right, [5, 7, 5, 0]),
        (made.left, [3, 7, 3, 21]),
        (made.out, [5, 3, 5, 15]),
    ):
        found = [read(functions, get, layout, a, ctypes.c_int64) for a in (2, 3, 4, 6)]
        assert found == sizes
        assert read(functions, get, layout, 5, ctypes.c_int32) == 2
        assert read(functions, get, layout, 0, ctypes.c_int32) == 0


def test_a_failing_function_says_for_what(functions):
    made = cublaslt._Descriptors(functions, SHAPE)
    with pytest.raises(
        ExecutionError,
        match=r"cublasLtMatmulDescSetAttribute fails with CUBLAS_STATUS_INVALID_VALUE for "
        r"\[3, 7\] @ \[7, 5\] of float32 \(highest\), left transposed, 2 times, bias, relu",
    ):
        made._attribute("cublasLtMatmulDescSetAttribute", made.operation, 8, ctypes.c_int32(1))


def test_a_missing_library_says_what_to_install(monkeypatch):
    pathfinder = pytest.importorskip("cuda.pathfinder")

    def missing(name):
        raise pathfinder.DynamicLibNotFoundError(name)

    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", missing)
    with pytest.raises(ExecutionError, match="cublasLt, which multiplies matrices"):
        cublaslt.library_path()
