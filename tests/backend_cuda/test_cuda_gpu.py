"""T4: on a machine with an NVIDIA GPU. The samples of all ops run in ``tests/conformance``."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import headrace as hr
from headrace.device_name import DeviceName
from headrace.errors import DTypeError
from headrace_cuda.plugin import DTYPES
from tests.children import run_program

pytestmark = pytest.mark.gpu

GPU = "/device:cuda:0"
NAME = DeviceName("localhost", 0, "cuda", 0)


@pytest.fixture
def device():
    from headrace_cuda.device import CudaDevice

    return CudaDevice(NAME)


@pytest.fixture
def session():
    with hr.Graph().as_default(), hr.Session() as session:
        yield session


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0, 3), (5, 7)], ids=str)
def test_arrays_travel_there_and_back(device, dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    back = device.to_host(device.from_host(array))
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(back, array)


def test_strided_arrays_travel_and_copies_are_independent(device):
    array = np.arange(24.0).reshape(4, 6)
    there = device.from_host(array[::2, ::-1])
    array[...] = -1
    np.testing.assert_array_equal(device.to_host(there)[0], [5, 4, 3, 2, 1, 0])


def test_strings_are_refused(device):
    with pytest.raises(DTypeError, match="cannot hold strings"):
        device.from_host(np.array([b"x"], object))


def test_listing_devices_makes_no_context():
    program = (
        "import ctypes, headrace_cuda.plugin as plugin\n"
        "assert plugin._count() >= 1\n"
        "from headrace_cuda.availability import diagnose\n"
        "assert diagnose()['problems'] == []\n"
        "driver, active = ctypes.CDLL('libcuda.so.1'), ctypes.c_int()\n"
        "flags = ctypes.c_uint()\n"
        "code = driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active))\n"
        "assert (code, active.value) == (0, 0), (code, active.value)\n"
    )
    run_program(program, flags=("-W", "error"))


def test_two_sessions_share_the_stream_and_named_containers(device):
    from headrace_cuda.hardware import hardware

    assert hardware(0) is hardware(0)
    with hr.Graph().as_default() as graph, hr.device(GPU), hr.container("two sessions"):
        v = hr.Variable(np.zeros(1000, np.float32))
        add = hr.assign_add(v, np.ones(1000, np.float32))
        with hr.Session(graph=graph) as first, hr.Session(graph=graph) as second:
            first.run(v.initializer)
            for _ in range(50):
                first.run(add.op)
                second.run(add.op)
            np.testing.assert_array_equal(second.run(v), np.full(1000, 100))


@pytest.mark.parametrize("count", [1, 5, 1000, 3_000_001])
def test_random_words_are_numpys(device, count):
    from headrace_cuda.kernels.philox import philox_words

    counter = (1 << 192) - 7
    with device.activate():
        words = philox_words(device.xp, (11, 22), counter, count)
    expected = np.random.Philox(key=[11, 22], counter=counter).random_raw(count)
    np.testing.assert_array_equal(device.to_host(words), expected)


def test_uniform_numbers_are_those_of_the_cpu(session):
    drawn = []
    for name in (GPU, "/cpu:0"):
        with hr.device(name):
            drawn.append(hr.random_uniform([1001], seed=5))
    # The same graph and op seed: each session starts every stream anew.
    a, b = session.run(drawn)
    np.testing.assert_array_equal(a, b)


def test_many_threads_add_up(session):
    with hr.device(GPU):
        v = hr.Variable(0.0)
        add = hr.assign_add(v, 1.0)
    session.run(v.initializer)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: session.run(add.op), range(8000)))
    assert session.run(v) == 8000


def test_running_out_of_memory_says_what_was_asked_and_is_there():
    program = (
        "import headrace as hr, pytest\n"
        "with hr.Session() as session, hr.device('/device:cuda:0'):\n"
        "    with pytest.raises(hr.errors.ExecutionError, match='cuda:0 is out of memory: 128.0 "
        "MiB asked for.*HEADRACE_CUDA_MEMORY_LIMIT is 64.0 MiB') as caught:\n"
        "        x = hr.placeholder(hr.float32, [])\n"
        "        session.run(hr.fill([32, 1024, 1024], x), {x: 1})\n"
        "    assert len(str(caught.value).splitlines()) <= 12\n"
        "    assert session.run(hr.fill([2], x), {x: 1}).tolist() == [1, 1]\n"
    )
    run_program(program, env={"HEADRACE_CUDA_MEMORY_LIMIT": "64MiB"})


def test_a_step_computes_what_numpy_does(session):
    rng = np.random.default_rng(3)
    images = rng.normal(size=(4, 9, 9, 3)).astype(np.float32)
    taps = rng.normal(size=(3, 3, 3, 5)).astype(np.float32)
    results = []
    for name in (GPU, "/cpu:0"):
        with hr.device(name):
            y = hr.nn.relu(
                hr.nn.conv2d(hr.constant(images), hr.constant(taps), [1, 1, 1, 1], "SAME")
            )
            results.append(session.run(hr.nn.max_pool(y, 2, 2, "SAME")))
    np.testing.assert_allclose(results[0], results[1], rtol=1e-4, atol=1e-4)


@pytest.mark.needs("autodiff", "train")
@pytest.mark.parametrize("optimizer", ["GradientDescent", "Momentum", "Adam"])
def test_training_on_the_digits(session, optimizer):
    data = hr.train.datasets.load_digits(one_hot=False)
    arguments = {"GradientDescent": (0.5,), "Momentum": (0.1, 0.9), "Adam": (0.01,)}[optimizer]
    with hr.device(GPU):
        x, t = hr.placeholder(hr.float32, [None, 64]), hr.placeholder(hr.int64, [None])
        w, b = hr.Variable(hr.zeros([64, 10])), hr.Variable(hr.zeros([10]))
        logits = hr.matmul(x, w) + b
        loss = hr.reduce_mean(
            hr.nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=logits)
        )
        step = getattr(hr.train, f"{optimizer}Optimizer")(*arguments).minimize(loss)
        right = hr.reduce_mean(hr.cast(hr.equal(hr.argmax(logits, 1), t), hr.float32))
    session.run(hr.global_variables_initializer())
    for _ in range(300):
        images, labels = data.train.next_batch(100)
        session.run(step, {x: images, t: labels})
    test = {x: data.test.images, t: data.test.labels}
    assert session.run(right, test) >= 0.93
    assert {name.kind for name in session._planner._pinned.values()} == {"cuda"}
