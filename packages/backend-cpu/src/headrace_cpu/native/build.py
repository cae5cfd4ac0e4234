"""From the sources of generated kernels to their addresses: the cache, the compiler, the loader."""

from __future__ import annotations

import functools
import hashlib
import importlib
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from headrace_cpu.native.cache import kernel_cache
from headrace_cpu.native.compiler import compile_assembly, compile_kernel
from headrace_cpu.native.load import load
from headrace_cpu.native.report import Compiled, compiling

# What kernels of the language "kernel" are translated by and made of.
ENVIRONMENT = (
    "headrace_cpu.fusion.assemble",
    "headrace_cpu.fusion.instructions",
    "headrace_cpu.fusion.functions",
)

_LOCK = threading.RLock()
_ADDRESSES: dict[str, int] = {}


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A generated kernel.

    Attributes:
        name: The name of its function.
        text: Python source that defines ``def name(block)``, where ``block`` is the address of a
            block of 64-bit words, as an int64. It may use the public names of the environment's
            modules.
        language: "python", compiled by numba; "kernel", the little of it that
            ``headrace_cpu.fusion.assemble`` translates, without numba; or "llvm": then the text is
            a module of LLVM's assembly that defines ``void @name(i64 %block)``.
    """

    name: str
    text: str
    language: Literal["python", "kernel", "llvm"] = "python"


def build(sources: Sequence[KernelSource], environment: Sequence[str] = ENVIRONMENT) -> list[int]:
    """Compile kernels, or take them from the cache, and load them.

    Args:
        sources: The kernels.
        environment: Names of the modules (or packages) whose public names the sources use:
            intrinsics and functions that numba compiles. They are imported only to compile; a
            change of their files makes kernels compile anew.

    Returns:
        The address of each: ``void kernel(int64_t *block)``.

    Raises:
        KernelError: if a kernel cannot be compiled.
    """
    names = tuple(environment)
    with _LOCK, compiling() as work:
        return [_built(source, names, work) for source in sources]


def _built(source: KernelSource, environment: tuple[str, ...], work: Compiled) -> int:
    key = _key(source, environment)
    if key in _ADDRESSES:
        return _ADDRESSES[key]
    cache = kernel_cache()
    symbol = f"{source.name}_{key[:16]}"
    code = cache.get(key)
    if code is not None:
        try:
            _ADDRESSES[key] = load(code, symbol)
        except RuntimeError:
            # Whole, yet not loadable: compile it again.
            cache.drop(key)
        else:
            work.cached += 1
            return _ADDRESSES[key]
    start = time.perf_counter()
    if source.language == "llvm":
        code = compile_assembly(source.name, source.text, symbol)
    elif source.language == "kernel":
        translator = importlib.import_module("headrace_cpu.fusion.assemble")
        text = translator.assemble(source.text, source.name)
        code = compile_assembly(source.name, text, symbol)
    else:
        code = compile_kernel(source.name, source.text, symbol, environment)
    _ADDRESSES[key] = load(code, symbol)
    work.kernels += 1
    work.seconds += time.perf_counter() - start
    cache.put(key, code)
    return _ADDRESSES[key]


def _key(source: KernelSource, environment: tuple[str, ...]) -> str:
    used = source.language if source.language == "llvm" else version(environment)
    parts = (used, toolchain(), source.name, source.text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@functools.cache
def toolchain() -> str:
    """Return what compiled code depends on besides its source: versions, and the processor."""
    llvm: Any = importlib.import_module("llvmlite.binding")

    features = llvm.get_host_cpu_features().flatten()
    compiler = Path(__file__).with_name("compiler.py")
    own = hashlib.sha256(compiler.read_bytes()).hexdigest()
    packages = (f"{name} {metadata.version(name)}" for name in ("numba", "llvmlite"))
    return " ".join((*packages, llvm.get_host_cpu_name(), features, own))


@functools.cache
def version(environment: tuple[str, ...]) -> str:
    """Return a digest of the files of the environment's modules, which are not imported."""
    digest = hashlib.sha256()
    for name in environment:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"kernels need the module {name}", name=name)
        origin = Path(spec.origin)
        files = sorted(origin.parent.rglob("*.py")) if spec.submodule_search_locations else [origin]
        for file in files:
            digest.update(file.read_bytes())
    return digest.hexdigest()
