"""T2: kernels compile without a GPU, spill nothing, and are kept on disk."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ExecutionError
from headrace_cuda import nvrtc
from headrace_cuda.kernels.philox import philox_program
from headrace_cuda.nvrtc import Program, compile_cubin, cubin
from headrace_cuda.program.prelude import PRELUDE
from headrace_cuda.testing.platform import FakePlatform

PROGRAMS = {"philox": philox_program}
TINY = Program("tiny.cu", 'extern "C" __global__ void tiny(int *x) { *x = 7; }', "sm_90")


@pytest.mark.needs("cupy")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_kernel_compiles_without_spills(name, arch):
    program = PROGRAMS[name](arch)
    verbose = replace(program, options=(*program.options, "--ptxas-options=-v"))
    image, log = compile_cubin(verbose)
    assert image[:4] == b"\x7fELF"
    spills = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes", log)
    assert spills, log
    assert all(numbers == ("0", "0", "0") for numbers in spills), log


def _elementary(x):
    """Return all functions of a number that kernels have."""
    names = (
        "exp expm1 log log1p sigmoid erf erfc lgamma sin cos tan asin acos atan sinh cosh tanh "
        "asinh acosh atanh sqrt floor ceil rint abs sign square rsqrt reciprocal"
    )
    return [getattr(hr.math, name)(x) for name in names.split()]


def _reductions(x):
    folds = (hr.reduce_sum, hr.reduce_max, hr.reduce_min, hr.reduce_prod, hr.reduce_mean)
    axes = (None, 0, 1, 2, [0, 1], [1, 2], [0, 2])
    made = [fold(x, along) for fold in folds for along in axes]
    return [*made, hr.nn.softmax(x), hr.nn.log_softmax(x), hr.nn.softmax(x, axis=1)]


def _moves(x):
    whole = hr.cast(x, hr.int32)
    return [
        *(hr.transpose(x, [2, 0, 1]) * 2, hr.concat([x, x * 2], 1), x[1:, ::2, ::-1] * 2),
        *(
            hr.pad(x, [[1, 2], [0, 0], [3, 1]]),
            whole // 3,
            whole % (whole + 9),
            hr.bitwise.left_shift(whole, 3),
        ),
        *(hr.one_hot(whole, 7), hr.where(x > 0, x, -x), hr.cast(whole, hr.int64) // 5),
    ]


def _training(x):
    rows = hr.reshape(x, [-1, 2000])
    w = hr.get_variable("w", [2000, 7], x.dtype)
    labels = hr.zeros([rows.shape[0].value], hr.int64)
    logits = hr.nn.batch_normalization(hr.matmul(rows, w), 0.0, 1.0, None, None, 1e-3)
    losses = hr.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return [hr.train.AdamOptimizer().minimize(hr.reduce_mean(losses))]


BUILDERS = {f.__name__[1:]: f for f in (_elementary, _reductions, _moves, _training)}


@pytest.mark.needs("cupy", "autodiff", "train")
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("built", BUILDERS)
def test_generated_kernels_compile_without_spills(built, dtype, arch, compiling_gpus, monkeypatch):
    compiled = {}

    def load(self, sources):
        compiled.update({source.name: source.text for source in sources})
        return {source.name: lambda *words: None for source in sources}

    monkeypatch.setattr(FakePlatform, "load", load)
    with hr.Graph().as_default(), hr.device("/device:cuda:0"):
        # More rows than blocks take at once, so that reductions are cut into parts, too.
        x = hr.placeholder(dtype, [300, 20, 40])
        results = BUILDERS[built](x)
        with hr.Session(config=hr.Config(compile_after=0, verify=True)) as session:
            session.explain(results, {x: np.zeros(x.shape, dtype)})
    assert compiled
    options = ("--std=c++17", "--ptxas-options=-v")
    text = "\n".join([PRELUDE, *compiled.values()])
    _, log = compile_cubin(Program("generated.cu", text, arch, options))
    spills = re.findall(r"(\d+) bytes spill stores, (\d+) bytes", log)
    assert len(spills) >= len(compiled)
    assert set(spills) == {("0", "0")}, log


@pytest.mark.needs("cupy")
def test_a_compiled_program_is_read_back(tmp_path, monkeypatch):
    first = cubin(TINY, tmp_path)
    monkeypatch.setattr(nvrtc, "compile_cubin", lambda program: pytest.fail("compiled again"))
    assert cubin(TINY, tmp_path) == first
    assert [path.suffix for path in tmp_path.iterdir()] == [".cubin"]


@pytest.mark.needs("cupy")
@pytest.mark.parametrize("kept", [0, 10, 1000, -1])
def test_a_damaged_file_is_made_anew(tmp_path, kept):
    first = cubin(TINY, tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:kept])
    assert cubin(TINY, tmp_path) == first
    assert cubin(TINY, tmp_path) == first


@pytest.mark.needs("cupy")
def test_a_folder_that_cannot_be_made_only_costs_the_time(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert cubin(TINY, blocked / "folder")[:4] == b"\x7fELF"


@pytest.mark.needs("cupy")
def test_an_error_quotes_the_compiler():
    with pytest.raises(ExecutionError, match=r"bad\.cu does not compile for sm_90") as caught:
        compile_cubin(Program("bad.cu", "__global__ void f() { int x = nothing; }", "sm_90"))
    assert 'identifier "nothing" is undefined' in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 12


@pytest.mark.needs("cupy")
def test_processes_that_compile_at_once_share_one_whole_file(tmp_path):
    program = (
        "from headrace_cuda.nvrtc import *\n"
        "tiny = Program('tiny.cu', 'extern \"C\" __global__ void tiny(int *x) { *x = 7; }', "
        "'sm_90')\n"
        "print(len(cubin(tiny)))"
    )
    env = {**os.environ, "HEADRACE_CACHE": str(tmp_path)}
    jobs = [
        subprocess.Popen([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    sizes = {job.communicate(timeout=50)[0] for job in jobs}
    assert len(sizes) == 1
    assert [path.suffix for path in (tmp_path / "cuda").iterdir()] == [".cubin"]


def test_the_key_tells_programs_apart():
    keys = {
        TINY.key((13, 0)),
        TINY.key((13, 1)),
        replace(TINY, arch="sm_80").key((13, 0)),
        replace(TINY, source=TINY.source + " ").key((13, 0)),
        replace(TINY, options=("--std=c++20",)).key((13, 0)),
        replace(TINY, options=("--std=", "c++17")).key((13, 0)),
    }
    assert len(keys) == 6
    assert replace(TINY, name="other.cu").key((13, 0)) in keys
