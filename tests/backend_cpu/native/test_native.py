"""Kernels from source to address, the thread policy, and memory."""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import sys
import threading
import weakref

import numpy as np
import pytest

from headrace_cpu.native import build as build_module
from headrace_cpu.native import memory, threads
from headrace_cpu.native.build import KernelSource, Vocabulary, build
from headrace_cpu.native.choice import Choice
from headrace_cpu.native.compiler import KernelError
from headrace_cpu.native.load import load
from headrace_cpu.native.memory import address, allocate, view
from headrace_cpu.native.threads import Share, launch, open_mp
from tests.children import run_program

pytestmark = pytest.mark.needs("backend-cpu")

WORDS = """
from llvmlite import ir

from headrace_cpu.native.instructions import Held


def square(machine, args):
    return Held("i64", machine.builder.mul(args[0].value, args[0].value))


def calling(name):
    def make(machine, args):
        kind = ir.FunctionType(ir.IntType(32), [])
        function = machine.module.globals.get(name) or ir.Function(machine.module, kind, name)
        found = machine.builder.call(function, [])
        return Held("i64", machine.builder.sext(found, ir.IntType(64)))

    return make


FOUND = {
    "square": square,
    "thread": calling("omp_get_thread_num"),
    "threads": calling("omp_get_num_threads"),
}
"""

SQUARES = """
def squares(block):
    n = word(block, 0)
    for i in range(n):
        set_word(block, i + 1, square(i))
"""

PARTS = """
def parts(block):
    n, me, all = word(block, 0), thread(), threads()
    for i in range(n * me // all, n * (me + 1) // all):
        set_word(block, 2 + i, me)
    if me == 0:
        set_word(block, 1, all)
"""


def vocabulary_of(name):
    return Vocabulary((name,), lambda: importlib.import_module(name).FOUND)


@pytest.fixture
def words(tmp_path, monkeypatch):
    """A vocabulary of a module of the test's, with a cache of its own."""
    name = f"kernel_words_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(WORDS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HEADRACE_QUIET", "1")
    monkeypatch.setattr(build_module, "_ADDRESSES", {})
    yield vocabulary_of(name)
    sys.modules.pop(name, None)


def called(place, words, threads=1):
    block = np.array(words, np.int64)
    launch(place, address(block), threads)()
    return block.tolist()


def test_kernels_of_python(words):
    first, second = build(
        [
            KernelSource("squares", SQUARES, vocabulary=words),
            KernelSource("parts", PARTS, vocabulary=words),
        ]
    )
    assert called(first, [4, 0, 0, 0, 0, 7]) == [4, 0, 1, 4, 9, 7]
    assert called(second, [2, 0, -1, -1, 5]) == [2, 1, 0, 0, 5]


def test_kernels_of_one_name_and_other_texts(words):
    texts = [SQUARES, SQUARES.replace("square(i)", "square(i) + 1")]
    one, other = build([KernelSource("squares", t, vocabulary=words) for t in texts])
    assert called(one, [2, 0, 0]) == [2, 0, 1]
    assert called(other, [2, 0, 0]) == [2, 1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def bad(block):\n    set_word(block, 0, unknown(1))\n", "unknown"),
        ("def bad(block):\n    set_word(block, 0\n", "never closed"),
        ("def bad(block):\n    set_word(block, 0, 'text')\n", "kernel bad does not compile"),
    ],
)
def test_mistakes_in_kernels_show_their_source(words, text, message):
    with pytest.raises(KernelError, match=message) as caught:
        build([KernelSource("bad", text, vocabulary=words)])
    assert text in str(caught.value)


def test_mistakes_in_assembly_show_their_source(words):
    with pytest.raises(KernelError, match="kernel bad does not compile"):
        build([KernelSource("bad", "define void @bad(i64 %b) { ret i64 0 }", "llvm")])


def test_kernels_load_without_what_translates_them(words, tmp_path):
    build([KernelSource("squares", SQUARES, vocabulary=words)])
    code = (
        "import sys, numpy as np\n"
        "from headrace_cpu.native.build import KernelSource, Vocabulary, build\n"
        "from headrace_cpu.native.threads import launch\n"
        "from headrace_cpu.native.memory import address\n"
        f"words = Vocabulary({words.modules!r})\n"
        f"place, = build([KernelSource('squares', {SQUARES!r}, vocabulary=words)])\n"
        "block = np.array([3, 0, 0, 0]); launch(place, address(block))()\n"
        "late = ['headrace_cpu.native.translate', *words.modules]\n"
        "print(block.tolist(), [name in sys.modules for name in late])\n"
    )
    done = run_program(code, env={"PYTHONPATH": str(tmp_path)})
    assert done.stdout.strip() == "[3, 0, 1, 4] [False, False]", done.stderr


@pytest.mark.parametrize("code", [b"", b"no object file", b"\x7fELF" + bytes(60)])
def test_what_is_no_object_file_cannot_be_loaded(code):
    with pytest.raises(RuntimeError):
        load(code, "kernel")


# -- threads


needs_openmp = pytest.mark.skipif(open_mp() is None, reason="no GNU OpenMP here")


@pytest.fixture(autouse=True)
def all_threads(monkeypatch):
    """Let steps have all their threads, also where other programs want the cores."""
    monkeypatch.setattr(Choice, "several", lambda self: True)


@needs_openmp
def test_parallel_kernels_share_their_work(words):
    (place,) = build([KernelSource("parts", PARTS, vocabulary=words)])
    share = Share(2)
    assert share.enter() == 2
    try:
        assert called(place, [4, 0, -1, -1, -1, -1], threads=2) == [4, 2, 0, 0, 1, 1]
    finally:
        share.leave()


@needs_openmp
@pytest.mark.parametrize(("asked", "allowed", "expected"), [(2, 8, 2), (8, 3, 3), (4, 1, 1)])
def test_kernels_never_run_on_more_threads_than_they_asked_for(words, asked, allowed, expected):
    (place,) = build([KernelSource("parts", PARTS, vocabulary=words)])
    share = Share(allowed)
    seen = []

    def step():
        share.enter()
        open_mp().limit(allowed)
        seen.append(called(place, [1, 0, -1], threads=asked)[1])
        share.leave()

    thread = threading.Thread(target=step)
    thread.start()
    thread.join()
    assert seen == [expected]


@needs_openmp
def test_steps_that_run_at_once_share_the_threads(words):
    (place,) = build([KernelSource("parts", PARTS, vocabulary=words)])
    share = Share(4)
    counts = []

    def step():
        counts.append((share.enter(), called(place, [1, 0, -1], threads=4)[1]))
        share.leave()

    assert share.enter() == 4
    other = threading.Thread(target=step)
    other.start()
    other.join()
    share.leave()
    step()
    assert counts == [(2, 2), (4, 4)]


def test_more_steps_than_threads_run_on_one_each():
    share = Share(2)
    taken = [share.enter() for _ in range(8)]
    for _ in taken:
        share.leave()
    assert taken == [2, 1, 1, 1, 1, 1, 1, 1]
    assert share.enter() == 2
    share.leave()


FORKED = """
import os, threading, numpy as np
import importlib
from headrace_cpu.native.build import KernelSource, Vocabulary, build
from headrace_cpu.native.memory import address
from headrace_cpu.native.threads import Share, launch
words = Vocabulary((WORDS,), lambda: importlib.import_module(WORDS).FOUND)
place, = build([KernelSource("parts", PARTS, vocabulary=words)])
share, block = Share(2), np.array([2, 0, -1, -1])
def step():
    share.enter()
    launch(place, address(block), 2)()
    share.leave()
    print(block[1], flush=True)
step()
if not os.fork():
    step()
    other = threading.Thread(target=step)
    other.start()
    other.join()
    os._exit(0)
os.wait()
"""


@needs_openmp
def test_forked_processes_do_not_wait_for_threads_that_are_not_there(words, tmp_path):
    code = f"PARTS, WORDS = {PARTS!r}, {words.modules[0]!r}\n{FORKED}"
    done = run_program(code, flags=("-W", "ignore"), env={"PYTHONPATH": str(tmp_path)})
    assert done.stdout.split() == ["2", "1", "1"], done.stderr


@needs_openmp
def test_onednn_and_kernels_have_one_pool():
    from headrace_cpu.onednn.library import load as load_onednn

    if load_onednn() is None:
        pytest.skip("oneDNN is not installed")
    code = (
        "from headrace_cpu.onednn.library import load; load()\n"
        "from headrace_cpu.native.threads import open_mp; open_mp()\n"
        "maps = open('/proc/self/maps').read().splitlines()\n"
        "print(len({line.split()[-1] for line in maps if 'gomp' in line.split('/')[-1]}))"
    )
    done = run_program(code)
    assert done.stdout.strip() == "1"


@pytest.mark.parametrize(
    ("given", "cores", "expected"),
    [
        ({}, 8, 8),
        ({"OMP_NUM_THREADS": "3"}, 8, 3),
        ({"OMP_NUM_THREADS": "4,2"}, 8, 4),
        ({"OMP_NUM_THREADS": "many"}, 8, 8),
        ({"HEADRACE_THREADS": "5", "OMP_NUM_THREADS": "3"}, 8, 5),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, 8, 2),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "16"}, 8, 1),
        ({"MPI_LOCALNRANKS": "2"}, 8, 4),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "4", "HEADRACE_THREADS": "8"}, 8, 8),
    ],
)
def test_number_of_threads(monkeypatch, given, cores, expected):
    names = ("OMP_NUM_THREADS", "HEADRACE_THREADS", "OMPI_COMM_WORLD_LOCAL_SIZE")
    for name in (*names, "MPI_LOCALNRANKS", "SLURM_NTASKS_PER_NODE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(threads, "_quota", lambda: None)
    assert threads.thread_count() == expected


def test_ranks_that_are_bound_to_cores_use_them_all(monkeypatch):
    monkeypatch.delenv("HEADRACE_THREADS", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "4")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {4, 5})
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(threads, "_quota", lambda: None)
    assert threads.thread_count() == 2


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "nonsense"}, None),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2.0),
    ],
    ids=["none", "no limit", "limit", "nonsense", "old, no limit", "old, limit"],
)
def test_limits_of_containers(tmp_path, monkeypatch, files, expected):
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert threads._quota(tmp_path) == expected
    monkeypatch.setattr(threads, "_quota", lambda: 1.5)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert threads.available_cores() == 2


def test_the_environment_is_left_as_it_was(monkeypatch):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    with threads._defaults({"GOMP_SPINCOUNT": "5"}):
        assert os.environ["GOMP_SPINCOUNT"] == "5"
    assert "GOMP_SPINCOUNT" not in os.environ
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.setenv(name, "active")
        with threads._defaults({"GOMP_SPINCOUNT": "5"}):
            assert os.environ.get("GOMP_SPINCOUNT") in (None, "active")
        monkeypatch.delenv(name)


# -- memory


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(3),
        np.zeros((4, 5), np.int8)[1:, 2:],
        np.zeros((0, 3)),
        np.array(7.0),
        np.zeros((3, 4)).T,
        np.frombuffer(b"read only", np.uint8),
        np.zeros(5)[::-1],
    ],
    ids=["plain", "part", "empty", "scalar", "turned", "read-only", "backwards"],
)
def test_addresses(array):
    expected = array.__array_interface__["data"][0]
    assert address(array) == expected
    assert memory._documented_address(array) == expected


def test_addresses_are_read_as_documented_where_they_must(monkeypatch):
    monkeypatch.setattr(memory, "_read_address", lambda array: 0)
    assert memory._quickest() is memory._documented_address


@pytest.mark.parametrize("size", [0, 1, 1000, 2**20, 40 * 2**20])
def test_blocks_are_aligned(size):
    block = allocate(size)
    assert block.shape == (size,)
    assert block.dtype == np.uint8
    if size:
        assert address(block) % 64 == 0
        block[0] = block[-1] = 1
    if size >= 2**25:
        assert address(block) % 2**21 == 0


def test_views_show_memory_and_keep_its_owner():
    class Owner(np.ndarray):
        pass

    owner = np.arange(12.0).view(Owner)
    place, alive = address(owner), weakref.ref(owner)
    shown = view(place + 16, (2, 3), np.float64, owner)
    assert shown.tolist() == [[2, 3, 4], [5, 6, 7]]
    shown[0, 0] = 70
    assert owner[2] == 70
    part = shown[1:]
    del owner, shown
    gc.collect()
    assert alive() is not None
    assert part.tolist() == [[5, 6, 7]]
    del part
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2)])
def test_views_of_any_shape(shape):
    block = allocate(64)
    assert view(address(block), shape, np.int32, block).shape == shape


def test_kernels_are_called_on_their_block():
    seen = []
    kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(seen.append)
    place = ctypes.cast(kernel, ctypes.c_void_p).value
    launch(place, 4096)()
    assert seen == [4096]
