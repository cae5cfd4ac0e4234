"""T0: what sessions share of a GPU, on a recording stand-in for ``cupy.cuda``."""

from __future__ import annotations

import sys
import types
from contextlib import contextmanager

import pytest

from headrace.errors import ConfigError, ExecutionError
from headrace.settings import cache_folder
from headrace_cuda import hardware as hardware_module
from headrace_cuda.hardware import hardware
from headrace_cuda.settings import MEMORY_LIMIT

GIB = 2**30


class OutOfMemoryError(MemoryError):
    pass


class Pool:
    def __init__(self) -> None:
        self.limit = None
        self.used = 0

    def set_limit(self, size):
        self.limit = size

    def malloc(self, size):
        if self.used + size > (self.limit or 8 * GIB):
            raise OutOfMemoryError(f"Out of memory allocating {size} bytes")
        self.used += size
        return f"{size} bytes"

    def used_bytes(self):
        return self.used

    def total_bytes(self):
        return self.used


@pytest.fixture
def log(monkeypatch):
    """Record what is entered and left, in order."""
    entries: list[str] = []
    allocators: list[object] = []

    @contextmanager
    def entered(name):
        entries.append(f"+{name}")
        yield
        entries.append(f"-{name}")

    class Stream:
        def __init__(self, non_blocking):
            assert non_blocking

        def __enter__(self):
            entries.append("+stream")

        def __exit__(self, *exc_info):
            entries.append("-stream")

        def synchronize(self):
            entries.append("synchronize")

    def using_allocator(allocator):
        allocators.append(allocator)
        return entered("allocator")

    cupy = types.ModuleType("cupy")
    cupy.cuda = types.SimpleNamespace(
        Device=lambda index: entered(f"device {index}"),
        MemoryPool=Pool,
        Stream=Stream,
        using_allocator=using_allocator,
        memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        runtime=types.SimpleNamespace(memGetInfo=lambda: (GIB, 8 * GIB)),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(hardware_module, "_OPEN", {})
    return types.SimpleNamespace(entries=entries, allocators=allocators)


def test_a_gpu_is_opened_once_for_all_sessions(log):
    assert hardware(1) is hardware(1)
    assert hardware(0) is not hardware(1)
    assert log.entries == ["+device 1", "-device 1", "+device 0", "-device 0"]


def test_work_runs_on_the_gpu_its_stream_and_its_memory(log):
    gpu = hardware(1)
    log.entries.clear()
    with gpu.activate():
        assert log.entries == ["+device 1", "+stream", "+allocator"]
    assert log.entries[3:] == ["-allocator", "-stream", "-device 1"]
    assert log.allocators[0](100) == "100 bytes"
    gpu.synchronize()
    assert log.entries[-1] == "synchronize"
    assert gpu.memory() == {"used": 100, "kept": 100, "free": GIB, "total": 8 * GIB}


def test_running_out_of_memory_tells_what_there_is(log):
    gpu = hardware(0)
    with gpu.activate():
        log.allocators[0](3 * GIB)
        with pytest.raises(
            ExecutionError, match=r"cuda:0 is out of memory: 6\.0 GiB asked"
        ) as caught:
            log.allocators[0](6 * GIB)
    text = str(caught.value)
    assert "3.0 GiB in use by this process, 1.0 GiB of 8.0 GiB free\n" in text
    assert isinstance(caught.value.__cause__, OutOfMemoryError)


def test_the_limit_of_the_environment_is_kept_and_named(log, monkeypatch):
    monkeypatch.setenv("HEADRACE_CUDA_MEMORY_LIMIT", "1.5 GiB")
    gpu = hardware(0)
    with (
        gpu.activate(),
        pytest.raises(ExecutionError, match=r"HEADRACE_CUDA_MEMORY_LIMIT is 1\.5 GiB"),
    ):
        log.allocators[0](2 * GIB)


@pytest.mark.parametrize(
    ("text", "size"),
    [("", None), ("1000", 1000), ("64KiB", 65536), ("2 MiB", 2**21), ("0.5GiB", 2**29)],
)
def test_sizes_of_memory(monkeypatch, text, size):
    monkeypatch.setenv("HEADRACE_CUDA_MEMORY_LIMIT", text)
    assert MEMORY_LIMIT.read() == size


@pytest.mark.parametrize("text", ["0", "-1", "much", "8GB", "1.2.3GiB", "0.1"])
def test_sizes_that_are_none(monkeypatch, text):
    monkeypatch.setenv("HEADRACE_CUDA_MEMORY_LIMIT", text)
    with pytest.raises(ConfigError, match="HEADRACE_CUDA_MEMORY_LIMIT must be a number of bytes"):
        MEMORY_LIMIT.read()


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "headrace"
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
