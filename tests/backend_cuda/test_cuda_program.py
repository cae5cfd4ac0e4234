"""T1: steps that a pretended GPU compiles: graphs, variables in place, checks, and equal values.

Kernels are CUDA C++ that runs on the host (``headrace_cuda.testing.host_compiler``).
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace as hr
from headrace.runtime.state import containers
from headrace_cuda.program.platform import CudaSource
from headrace_cuda.testing.host_compiler import host_compiler, host_functions
from headrace_cuda.testing.platform import FakePlatform

pytestmark = [
    pytest.mark.needs("autodiff", "train"),
    pytest.mark.skipif(host_compiler() is None, reason="there is no C++ compiler"),
]

GPU = "/device:cuda:0"
COMPILED = hr.Config(compile_after=0, verify=True)
PLAIN = hr.Config(executor="plain")


@pytest.fixture(autouse=True)
def graph(compiling_gpus):
    with hr.Graph().as_default() as graph, hr.device(GPU):
        yield graph


@pytest.fixture
def platforms(monkeypatch):
    """The pretended GPUs that are opened, in order."""
    opened = []
    begin = FakePlatform.__init__

    def noted(self, *arguments):
        begin(self, *arguments)
        opened.append(self)

    monkeypatch.setattr(FakePlatform, "__init__", noted)
    return opened


def perceptron():
    x = hr.placeholder(hr.float32, [None, 6], name="x")
    labels = hr.placeholder(hr.int64, [None], name="labels")
    w = hr.Variable(np.linspace(-1, 1, 48, dtype=np.float32).reshape(6, 8), name="w")
    b = hr.Variable(np.zeros(8, np.float32), name="b")
    v = hr.Variable(np.linspace(1, -1, 32, dtype=np.float32).reshape(8, 4), name="v")
    logits = hr.matmul(hr.nn.relu(hr.matmul(x, w) + b), v)
    losses = hr.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return x, labels, [w, b, v], hr.reduce_mean(losses)


def batch(rows, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, 6)).astype(np.float32), rng.integers(0, 4, rows)


def train(config, optimizer, steps=6, rows=5):
    x, labels, variables, loss = perceptron()
    step = optimizer.minimize(loss)
    with hr.Session(config=config) as session:
        session.run(hr.global_variables_initializer())
        losses = []
        for number in range(steps):
            images, wanted = batch(rows, number)
            losses.append(session.run([loss, step], {x: images, labels: wanted})[0])
        return losses, session.run(variables), session


OPTIMIZERS = {
    "descent": lambda: hr.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: hr.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: hr.train.AdamOptimizer(0.01),
    "rmsprop": lambda: hr.train.RMSPropOptimizer(0.01),
}


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_training_gives_the_values_of_the_plain_executor(optimizer):
    found = [train(config, OPTIMIZERS[optimizer]()) for config in (COMPILED, PLAIN)]
    for one, other in zip(*(run[0] + run[1] for run in found), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


def test_a_whole_training_step_is_one_graph(platforms):
    x, labels, _, loss = perceptron()
    step = hr.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
    images, wanted = batch(5)
    with hr.Session(config=COMPILED) as session:
        session.run(hr.global_variables_initializer())
        run = session.make_callable([loss, step], [x, labels])
        for _ in range(4):
            run(images, wanted)
        (platform,) = platforms
        started, replayed, captured = platform.started, platform.replayed, platform.captured
        for _ in range(5):
            run(images, wanted)
        assert platform.started == started
        assert platform.captured == captured
        assert platform.replayed == replayed + 5


def test_other_addresses_get_other_graphs_up_to_some(platforms):
    x = hr.placeholder(hr.float32, [4, 4])
    y = hr.matmul(hr.exp(hr.matmul(x, x)), x)
    rng = np.random.default_rng(2)
    given = [rng.normal(size=(4, 4)).astype(np.float32) / 4 for _ in range(12)]
    with hr.Session(config=COMPILED) as session:
        # What is fetched and kept has an address of its own in each step.
        kept = [(array, session.run(y, {x: array})) for array in [*given, *given, *given]]
        for array, result in kept:
            np.testing.assert_allclose(result, np.exp(array @ array) @ array, rtol=1e-4)
        assert platforms[0].started > 0


def test_variables_are_updated_where_they_are(platforms, monkeypatch):
    x, labels, variables, loss = perceptron()
    step = hr.train.GradientDescentOptimizer(0.1).minimize(loss)
    images, wanted = batch(5)
    copies = []
    copy = containers._copied
    monkeypatch.setattr(containers, "_copied", lambda value: copies.append(1) or copy(value))
    with hr.Session(config=COMPILED) as session:
        session.run(hr.global_variables_initializer())
        for _ in range(3):
            session.run([loss, step], {x: images, labels: wanted})
        assert not copies
        # Who has read a value keeps it.
        before = session.run(variables)
        kept = [value.copy() for value in before]
        session.run(step, {x: images, labels: wanted})
        for value, same in zip(before, kept, strict=True):
            np.testing.assert_array_equal(value, same)
        assert not np.array_equal(session.run(variables[0]), before[0])


def test_a_value_read_before_an_update_is_the_old_one_in_the_same_step():
    v = hr.Variable(np.arange(6, dtype=np.float32))
    old = hr.identity(v.read_value())
    with hr.control_dependencies([old]):
        update = hr.assign_add(v, hr.ones([6]) * 10)
    with hr.control_dependencies([update]):
        late = old * 1.0
        new = v.read_value() * 1.0
    with hr.Session(config=COMPILED) as session:
        session.run(v.initializer)
        for turn in range(4):
            first, then = session.run([late, new])
            np.testing.assert_array_equal(first, np.arange(6) + 10 * turn)
            np.testing.assert_array_equal(then, np.arange(6) + 10 * (turn + 1))


@pytest.mark.parametrize("fetch", [True, False], ids=["loss fetched", "nothing fetched"])
def test_a_failed_check_names_the_operation_and_changes_nothing(fetch):
    x, labels, variables, loss = perceptron()
    step = hr.train.AdamOptimizer(0.01).minimize(loss)
    images, wanted = batch(5)
    wrong = wanted.copy()
    wrong[3] = 4
    asked = [loss, step] if fetch else step
    with hr.Session(config=COMPILED) as session:
        session.run(hr.global_variables_initializer())
        for turn in range(4):
            session.run(asked, {x: images, labels: wanted})
            before = session.run(list(hr.global_variables()))
            with pytest.raises(
                hr.errors.InvalidInputError,
                match=r"SparseSoftmax.*failed: IndexError: index 4 is out of range: a label",
            ) as caught:
                session.run(asked, {x: images, labels: wrong})
            assert "test_cuda_program.py" in str(caught.value), turn
            for one, other in zip(session.run(list(hr.global_variables())), before, strict=True):
                np.testing.assert_array_equal(one, other)
        assert np.isfinite(session.run(variables[0])).all()


def test_a_division_by_zero_is_told():
    x = hr.placeholder(hr.int32, [3])
    y = hr.constant([12, 13, 14]) // x
    with hr.Session(config=COMPILED) as session:
        assert session.run(y, {x: [5, 4, 3]}).tolist() == [2, 3, 4]
        for _ in range(3):
            with pytest.raises(hr.errors.InvalidInputError, match="a divisor is 0"):
                session.run(y, {x: [5, 0, 3]})
        assert session.run(y, {x: [-5, 4, 3]}).tolist() == [-3, 3, 4]


def test_shapes_that_depend_on_data_cut_the_step():
    x = hr.placeholder(hr.float32, [None])
    picked = hr.boolean_mask(x * 2.0, x > 0.0)
    total = hr.reduce_sum(hr.exp(picked)) + hr.reduce_sum(x)
    with hr.Session(config=COMPILED) as session:
        for given in ([1.0, -1.0, 0.5], [-1.0, -2.0], [3.0, 1.0, 0.5, 0.25]):
            array = np.array(given, np.float32)
            values, found = session.run([picked, total], {x: array})
            np.testing.assert_allclose(values, 2 * array[array > 0])
            expected = np.exp(2 * array[array > 0]).sum() + array.sum()
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_conditions_and_loops_hold_compiled_regions():
    x = hr.placeholder(hr.float32, [3])
    turned = hr.cond(hr.reduce_sum(x) > 0, lambda: hr.exp(x) * 2.0, lambda: x - 1.0)
    last = hr.while_loop(
        lambda i, y: hr.reduce_max(y) < 50.0, lambda i, y: (i + 1, y * 2.0 + 1.0), [0, turned]
    )
    (gradient,) = hr.gradients(hr.reduce_sum(last[1]), [x])
    found = []
    for config in (COMPILED, PLAIN):
        with hr.Session(config=config) as session:
            feeds = [np.array(a, np.float32) for a in ([1, 0.5, 0], [-1, 0.5, 0])]
            found.append([session.run([last, gradient], {x: a}) for a in feeds for _ in range(3)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one[0][1], other[0][1], rtol=1e-5)
        np.testing.assert_allclose(one[1], other[1], rtol=1e-5)
        assert one[0][0] == other[0][0]


def test_steps_of_many_threads_get_their_own_memory():
    x = hr.placeholder(hr.float32, [8, 8])
    y = hr.reduce_sum(hr.nn.softmax(hr.matmul(x, x) * 0.1) * x, 1)
    rng = np.random.default_rng(5)
    given = [rng.normal(size=(8, 8)).astype(np.float32) for _ in range(8)]
    with hr.Session(config=PLAIN) as session:
        expected = [session.run(y, {x: a}) for a in given]
    wrong = []
    with hr.Session(config=COMPILED) as session:
        session.run(y, {x: given[0]})

        def work(number):
            for _ in range(12):
                found = session.run(y, {x: given[number]})
                if not np.allclose(found, expected[number], rtol=1e-4):
                    wrong.append(number)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    assert wrong == []


def test_profiles_have_a_row_for_each_kernel():
    x, labels, _, loss = perceptron()
    step = hr.train.GradientDescentOptimizer(0.1).minimize(loss)
    images, wanted = batch(5)
    config = hr.Config(compile_after=0, profile=True)
    with hr.Session(config=config) as session:
        session.run(hr.global_variables_initializer())
        for _ in range(3):
            session.run([loss, step], {x: images, labels: wanted})
        text = str(session.profile())
    assert "MatMul, Add, Relu" in text, text
    assert "AssignSubVariable" in text


def test_explanations_show_the_kernels():
    x, labels, _, loss = perceptron()
    images, wanted = batch(5)
    with hr.Session(config=COMPILED) as session:
        session.run(hr.global_variables_initializer())
        explained = session.explain(loss, {x: images, labels: wanted})
        (part,) = explained.parts
        source = "\n".join(work.source for work in part.report.works)
    assert "__global__ void" in source
    assert "headrace-backend-cuda" in str(explained)


def test_what_runs_once_needs_no_compiler(platforms):
    x = hr.placeholder(hr.float32, [4])
    y = hr.exp(x) * 2.0
    with hr.Session(config=hr.Config(compile_after=2)) as session:
        for turn in range(4):
            session.run(y, {x: np.zeros(4, np.float32)})
            assert bool(platforms[0].started) == (turn >= 2)


def test_a_kernel_that_does_not_compile_leaves_the_step_to_others(monkeypatch):
    def refuse(self, sources):
        raise hr.errors.ExecutionError("no compiler today")

    said = []
    monkeypatch.setattr(FakePlatform, "load", refuse)
    monkeypatch.setattr("headrace_cpu.native.compiler.notice", said.append)
    x = hr.placeholder(hr.float32, [4])
    y = hr.exp(x) * 2.0
    given = {x: np.zeros(4, np.float32)}
    with hr.Session(config=hr.Config(compile_after=0)) as session:
        for _ in range(2):
            assert session.run(y, given).tolist() == [2.0] * 4
    assert "Exp, Mul" in said[0]
    assert "so plain kernels do its work: no compiler today" in said[0]


def test_the_precision_is_an_option():
    with pytest.raises(hr.errors.ConfigError, match='precision must be "highest" or "tf32", got'):
        hr.Config(precision="bf16")
    a = hr.constant(np.full((4, 4), 1 + 2**-12, np.float32))
    for precision in ("highest", "tf32"):
        with hr.Session(config=hr.Config(compile_after=0, precision=precision)) as session:
            assert session.run(hr.matmul(a, a)).shape == (4, 4)


def test_what_threads_hand_to_each_other_is_not_told_to_be_alone():
    """A compiler may read what is alone before a barrier, behind which it is written."""
    x = hr.placeholder(hr.float32, [6, 5])
    y = hr.exp(x - hr.reduce_max(x)) / hr.reduce_sum(x)
    given = {x: np.ones((6, 5), np.float32)}
    with hr.Session(config=COMPILED) as session:
        session.run(y, given)
        (part,) = session.explain(y, given).parts
    (work,) = part.report.works
    assert work.source.count("__global__") == 1
    assert "__syncthreads();" in work.source
    assert "__restrict__" not in work.source


DIMS = (1, 2, 3, 5, 8)


def random_program(rng):
    """Return tensors of a random program over a few inputs, with what they are fed."""
    dtype = rng.choice(["float32", "float64", "int32"], p=[0.6, 0.2, 0.2])
    shape = [int(rng.choice(DIMS)) for _ in range(rng.integers(1, 4))]
    if rng.random() < 0.1:
        shape[int(rng.integers(len(shape)))] = 0
    if rng.random() < 0.1:
        shape.append(int(rng.choice([300, 700, 1100])))
    floats = dtype != "int32"

    def draw(size):
        array = rng.normal(size=size) if floats else rng.integers(-5, 6, size)
        return np.asarray(array).astype(dtype)

    feeds, pool = {}, []
    for _ in range(2):
        x = hr.placeholder(dtype, shape)
        feeds[x] = draw(shape)
        pool.append(x)
    pool.append(hr.constant(draw(shape[-1:])))
    results = []
    for _ in range(rng.integers(3, 12)):
        a, b = (pool[int(rng.integers(len(pool)))] for _ in range(2))
        kind = rng.integers(10)
        rank = a.shape.ndims
        if kind < 3:
            if not a.shape.is_compatible_with(b.shape):
                b = a
            made = (a + b, a * b, hr.maximum(a, b))[kind]
        elif kind == 3 and floats:
            made = (hr.exp(-hr.abs(a)), hr.tanh(a), hr.sigmoid(a))[int(rng.integers(3))]
        elif kind == 4 and rank:
            axes = [i for i in range(rank) if rng.random() < 0.5] or [int(rng.integers(rank))]
            fold = (hr.reduce_sum, hr.reduce_max, hr.reduce_min)[int(rng.integers(3))]
            if 0 in a.shape.as_list():
                fold = hr.reduce_sum
            made = fold(a, axes, keepdims=True) + hr.zeros_like(a)
        elif kind == 5 and rank:
            made = hr.transpose(a, rng.permutation(rank).tolist())
        elif kind == 6 and rank and floats and 0 not in a.shape.as_list():
            made = hr.nn.softmax(a, axis=int(rng.integers(rank)))
        elif kind == 7 and rank:
            made = hr.concat([a, a - b if a.shape.is_compatible_with(b.shape) else a], 0)
        elif kind == 8 and rank:
            made = a[..., ::-1]
        else:
            made = hr.where(a > a * 0, a, -a)
        pool.append(made)
        if rng.random() < 0.4:
            results.append(hr.reduce_sum(made, list(range(made.shape.ndims))[:1]))
        results.append(made)
    return results, feeds


@pytest.mark.parametrize("seed", range(16))
def test_random_programs_give_the_values_of_the_plain_executor(seed):
    results, feeds = random_program(np.random.default_rng(seed))
    found = []
    for config in (COMPILED, PLAIN):
        with hr.Session(config=config) as session:
            for _ in range(3 if config is COMPILED else 1):
                values = session.run(results, feeds)
            found.append(values)
    for one, other in zip(*found, strict=True):
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


FOLD = """extern "C" __global__ void KERNEL(const float *given, float *made) {
    __shared__ float shared[256];
    shared[threadIdx.x] = given[threadIdx.x];
    BARRIER
    if (threadIdx.x == 0) {
        *made = 0;
        for (int n = 0; n < 256; ++n) *made += shared[n];
    }
    // Threads take turns where there is some barrier.
    __syncthreads();
}
"""


@pytest.mark.parametrize("barrier", ["__syncthreads();", ""])
def test_the_host_shows_where_a_barrier_is_missing(barrier):
    given, made = np.arange(256, dtype=np.float32), np.zeros(1, np.float32)
    source = CudaSource.of(FOLD.replace("BARRIER", barrier))
    function = host_functions([source])[source.name]
    function((1, 1, 1), (256, 1, 1), given.ctypes.data, made.ctypes.data)
    assert (made[0] == given.sum()) == bool(barrier)


def test_a_kernel_that_is_no_cpp_is_told_with_its_text():
    source = CudaSource.of('extern "C" __global__ void KERNEL(float *p) { nonsense; }')
    with pytest.raises(RuntimeError, match=r"(?s)refuses a kernel:\n.*nonsense"):
        host_functions([source])
