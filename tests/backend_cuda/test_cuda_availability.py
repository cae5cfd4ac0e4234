"""T0: what the package says where something that it needs is missing."""

from __future__ import annotations

import importlib.util
import re
import sys
import types

import pytest

from headrace.device_name import DeviceName
from headrace.errors import NoDeviceError
from headrace_cuda import driver
from headrace_cuda.availability import availability, diagnose
from headrace_cuda.convolution import cudnn
from headrace_cuda.device import CudaDevice
from tests.children import run_program

NAME = DeviceName("localhost", 0, "cuda", 0)


@pytest.fixture
def no_driver(monkeypatch):
    monkeypatch.setattr(driver, "LIBRARY", "libcuda_that_is_not_there.so")


@pytest.fixture
def no_cupy(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "cupy" else find(name)
    )


@pytest.fixture
def pretended_cupy(monkeypatch, tmp_path):
    """Put a module in the place of CuPy that says it is built for CUDA 13.2 and finds two GPUs."""

    class CUDARuntimeError(RuntimeError):
        pass

    runtime = types.SimpleNamespace(
        runtimeGetVersion=lambda: 13020,
        getDeviceCount=lambda: 2,
        CUDARuntimeError=CUDARuntimeError,
    )
    module = types.ModuleType("cupy")
    module.__version__ = "14.2.0"
    module.__spec__ = importlib.util.spec_from_loader("cupy", None)
    module.cuda = types.SimpleNamespace(
        runtime=runtime,
        nvrtc=types.SimpleNamespace(getVersion=lambda: (13, 5)),
        get_cuda_path=lambda: str(tmp_path),
    )
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cuda_fp16.h").write_text("")
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


def test_loading_the_plugin_imports_no_gpu_library():
    program = (
        "import sys, warnings; warnings.simplefilter('error')\n"
        "import headrace_cuda.plugin as plugin\n"
        "from headrace.plugins.registries.devices import DeviceRegistry\n"
        "from headrace.plugins.registries.kernels import KernelRegistry\n"
        "plugin.headrace_register_devices(DeviceRegistry())\n"
        "plugin.headrace_register_kernels(KernelRegistry())\n"
        "assert not {'cupy', 'cupyx', 'ctypes.util'} & set(sys.modules), 'imported'\n"
    )
    run_program(program)


def test_without_cupy_and_driver_there_is_no_device_and_both_are_named(no_driver, no_cupy):
    found = availability()
    assert found.count == 0
    assert "CuPy is not installed: pip install" in found.why_none
    assert "headrace-backend-cuda[cuda13]" in found.why_none
    assert "there is no NVIDIA driver" in found.why_none
    with pytest.raises(NoDeviceError, match=r"cannot open cuda:0: CuPy is not installed"):
        CudaDevice(NAME)


def test_without_a_driver_cupy_is_not_imported(no_driver):
    program = (
        "import sys\n"
        "from headrace_cuda import driver, plugin\n"
        "driver.LIBRARY = 'libcuda_that_is_not_there.so'\n"
        "assert plugin._count() == 0 and plugin._why_none()\n"
        "assert 'cupy' not in sys.modules\n"
    )
    run_program(program, flags=("-W", "error"))


def test_the_driver_lists_gpus_without_a_context(pretended_driver):
    report = driver.ask_driver()
    assert report.version == (13, 1)
    assert report.problem == ""
    assert [gpu.name for gpu in report.gpus] == ["Pretended GPU 0", "Pretended GPU 1"]
    assert report.gpus[0].capability == (9, 0)
    assert report.gpus[0].memory == 1 << 36


@pytest.mark.parametrize(
    ("code", "count", "problem"),
    [
        ("100", "0", "the NVIDIA driver finds no GPU"),
        ("0", "0", "the NVIDIA driver finds no GPU"),
        ("999", "0", "the NVIDIA driver does not start: CUDA_ERROR_UNKNOWN"),
        ("803", "0", "the NVIDIA driver does not start: error 803"),
    ],
)
def test_a_driver_that_finds_nothing_says_why(pretended_driver, monkeypatch, code, count, problem):
    monkeypatch.setenv("FAKE_INIT", code)
    monkeypatch.setenv("FAKE_COUNT", count)
    report = driver.ask_driver()
    assert (report.gpus, report.problem) == ((), problem)
    assert "nvidia-smi" in report.fix


def test_devices_are_counted_by_cupy_where_the_driver_has_some(pretended_driver, pretended_cupy):
    assert availability().count == 2
    assert availability().why_none == ""


def test_an_old_driver_is_told_from_a_missing_one(pretended_driver, pretended_cupy, monkeypatch):
    monkeypatch.setenv("FAKE_VERSION", "12040")
    found = availability()
    assert found.count == 0
    assert "CuPy 14.2.0 is built for CUDA 13.2, the driver runs programs up to CUDA 12.4" in (
        found.why_none
    )


def test_a_broken_cupy_is_a_reason_not_a_crash(pretended_driver, monkeypatch):
    class Broken(types.ModuleType):
        def __getattr__(self, name):
            raise ImportError(f"libcudart.so.13: cannot open ({name})")

    module = Broken("cupy")
    module.__spec__ = importlib.util.spec_from_loader("cupy", None)
    monkeypatch.setitem(sys.modules, "cupy", module)
    assert "CuPy fails to import: ImportError: libcudart.so.13" in availability().why_none


def test_cuda_that_does_not_start_is_a_reason(pretended_driver, pretended_cupy):
    runtime = pretended_cupy.cuda.runtime

    def fail():
        raise runtime.CUDARuntimeError("cudaErrorDevicesUnavailable")

    runtime.getDeviceCount = fail
    assert "CUDA does not start: cudaErrorDevicesUnavailable" in availability().why_none


def test_a_gpu_beyond_the_last_is_refused(pretended_driver, pretended_cupy):
    with pytest.raises(NoDeviceError, match="cannot open cuda:2: there are 2"):
        CudaDevice(DeviceName("localhost", 0, "cuda", 2))


def test_the_doctor_names_gpus_and_versions(pretended_driver, pretended_cupy):
    report = diagnose()
    assert report["driver"] == "runs programs up to CUDA 13.1"
    assert report["CUDA runtime"] == "13.2"
    assert report["NVRTC"] == "13.5"
    assert report["cuda:1"] == "Pretended GPU 1, compute capability 9.0, 64.0 GiB"
    assert report["problems"] == []


@pytest.mark.parametrize(
    ("version", "told"),
    [("9.19.0", r"9\.19\.0"), (None, r"not installed, .*headrace-backend-cuda\[cuda13\]")],
)
def test_the_doctor_tells_of_cudnn(pretended_driver, pretended_cupy, monkeypatch, version, told):
    monkeypatch.setattr(cudnn, "cudnn_version", lambda: version)
    assert re.match(told, diagnose()["cuDNN"])


def test_the_doctor_gives_a_mend_for_each_problem(no_driver, no_cupy):
    problems = diagnose()["problems"]
    assert problems[0][0] == "CuPy is not installed"
    assert all(fix for _, fix in problems)


def test_the_doctor_survives_a_missing_compiler(pretended_driver, pretended_cupy):
    def fail():
        raise RuntimeError("libnvrtc.so.13 not found\nlong story")

    pretended_cupy.cuda.nvrtc.getVersion = fail
    (what, fix) = diagnose()["problems"][0]
    assert what == "NVRTC, the compiler of kernels, does not load: libnvrtc.so.13 not found"
    assert "headrace-backend-cuda[cuda13]" in fix


@pytest.mark.parametrize("folder", [None, "/nowhere"])
def test_the_doctor_misses_headers(pretended_driver, pretended_cupy, folder):
    pretended_cupy.cuda.get_cuda_path = lambda: folder
    ((what, fix),) = diagnose()["problems"]
    assert what == "CUDA's headers are missing, which CuPy needs to compile its kernels"
    assert "headrace-backend-cuda[cuda13]" in fix


@pytest.mark.needs("cupy")
def test_the_installed_cupy_finds_no_device_or_a_real_one():
    report = diagnose()
    assert "cupy" in report["CuPy"]
    assert report["NVRTC"].startswith("13.")
    if availability().count == 0:
        assert report["problems"]
