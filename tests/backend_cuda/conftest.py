"""A driver in a few lines of C, and the device pretended by ``headrace_cuda.testing``."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pytest

from headrace.plugins import host as host_module
from headrace.plugins.host import PluginHost
from headrace_cuda import availability as availability_module
from headrace_cuda import driver

DRIVER = r"""
#include <cstdlib>
#include <cstring>
#include <cstdio>

static int setting(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}

extern "C" {
int cuDriverGetVersion(int *version) { *version = setting("FAKE_VERSION", 13010); return 0; }
int cuInit(unsigned) { return setting("FAKE_INIT", 0); }
int cuDeviceGetCount(int *count) { *count = setting("FAKE_COUNT", 2); return 0; }
int cuGetErrorName(int code, const char **name) {
    *name = code == 999 ? "CUDA_ERROR_UNKNOWN" : nullptr;
    return code == 999 ? 0 : 1;
}
int cuDeviceGet(int *device, int index) { *device = index; return 0; }
int cuDeviceGetName(char *name, int length, int device) {
    snprintf(name, length, "Pretended GPU %d", device);
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int) { *bytes = 1ull << 36; return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int) {
    *value = attribute == 75 ? 9 : 0;
    return 0;
}
int cuCtxCreate_v2(void *, unsigned, int) { abort(); }
int cuDevicePrimaryCtxRetain(void *, int) { abort(); }
}
"""


def cxx() -> str:
    """Return the C++ compiler, or skip the test."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no C++ compiler")
    return compiler


def build(source: Path, library: Path, *flags: str) -> Path:
    """Compile a shared library."""
    command = [cxx(), "-std=c++20", "-O1", "-shared", "-fPIC", *flags]
    subprocess.run([*command, "-o", str(library), str(source)], check=True, timeout=50)
    return library


@pytest.fixture(scope="session")
def build_library():
    return build


@pytest.fixture(scope="session")
def driver_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("driver")
    source = folder / "driver.cpp"
    source.write_text(DRIVER)
    return build(source, folder / "libpretended.so")


@pytest.fixture
def pretended_driver(driver_library: Path, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    """Let the driver be one that lists two GPUs, and aborts where a context is made."""
    monkeypatch.setattr(driver, "LIBRARY", str(driver_library))
    return ctypes.CDLL(str(driver_library))


@pytest.fixture(autouse=True)
def fresh_availability():
    """Find out anew in each test what devices there are."""
    availability_module.availability.cache_clear()
    yield
    availability_module.availability.cache_clear()


@pytest.fixture(scope="session")
def host_with_pretended_gpus() -> PluginHost:
    real = [entry for entry in entry_points(group="headrace") if entry.name != "cuda"]
    pretended = EntryPoint("cuda", "headrace_cuda.testing.plugin", "headrace")
    return PluginHost([*real, pretended])


@pytest.fixture
def pretended_gpus(host_with_pretended_gpus: PluginHost, monkeypatch: pytest.MonkeyPatch):
    """Let the process have two GPUs that are NumPy underneath, and as strict as CuPy."""
    monkeypatch.setattr(host_module, "_HOST", host_with_pretended_gpus)
    return host_with_pretended_gpus


@pytest.fixture(scope="session")
def host_with_compiling_gpus() -> PluginHost:
    real = [entry for entry in entry_points(group="headrace") if entry.name != "cuda"]
    pretended = EntryPoint("cuda", "headrace_cuda.testing.compiling_plugin", "headrace")
    return PluginHost([*real, pretended])


@pytest.fixture
def compiling_gpus(host_with_compiling_gpus: PluginHost, monkeypatch: pytest.MonkeyPatch):
    """The same, with GPUs that compile steps, into kernels that run on the host."""
    monkeypatch.setattr(host_module, "_HOST", host_with_compiling_gpus)
    return host_with_compiling_gpus
