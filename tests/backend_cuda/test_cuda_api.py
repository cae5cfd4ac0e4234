"""What kernels use of their array module is there in CuPy: in the record, and in the real one."""

from __future__ import annotations

import ast
import operator
from pathlib import Path

import pytest

import headrace_cpu.kernels
from headrace_cuda.testing.record import read_record

FILES = sorted(Path(headrace_cpu.kernels.__file__).parent.glob("*.py"))


def used_names(path: Path) -> set[str]:
    """Return the dotted names that a module uses of ``xp``, ``ctx.xp`` or ``self.xp``."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.insert(0, node.attr)
            node = node.value
        root = [node.id] if isinstance(node, ast.Name) else []
        chain = [*root, *names]
        if "xp" in chain[:2] and chain[-1] not in ("xp", "__name__"):
            found.add(".".join(chain[chain.index("xp") + 1 :]))
    return found


NAMES = sorted(set().union(*map(used_names, FILES)))


def test_the_kernels_use_the_array_module():
    assert {"where", "matmul", "add.at", "lib.stride_tricks.as_strided"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_name_is_in_the_record(name):
    record = read_record()
    assert name in record or record.get(name.rpartition(".")[0], ("",))[0] in ("ufunc", "module")


@pytest.mark.needs("cupy")
@pytest.mark.parametrize("name", NAMES)
def test_name_is_in_cupy(name):
    import cupy

    operator.attrgetter(name)(cupy)


DRIVEN = [
    *("Device", "MemoryPool", "Stream", "using_allocator", "memory.OutOfMemoryError"),
    *("function.Module.get_function", "function.Module.load", "nvrtc.compileProgram"),
    *("nvrtc.getCUBIN", "nvrtc.getVersion", "runtime.CUDARuntimeError", "runtime.getDevice"),
    *("runtime.getDeviceCount", "runtime.memGetInfo", "runtime.runtimeGetVersion"),
]


@pytest.mark.needs("cupy")
@pytest.mark.parametrize("name", DRIVEN)
def test_what_the_device_uses_is_in_cupy(name):
    import cupy

    operator.attrgetter(f"cuda.{name}")(cupy)


@pytest.mark.needs("cupy")
def test_arrays_are_made_by_the_allocator_in_use():
    import cupy

    asked = []

    def allocate(size):
        asked.append(size)
        raise MemoryError

    with cupy.cuda.using_allocator(allocate), pytest.raises(MemoryError):
        cupy.empty((3, 4))
    assert asked == [96]
