"""From the sources of generated kernels to their addresses: the cache, the compiler, the loader."""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from headrace_cpu.native.cache import kernel_cache
from headrace_cpu.native.compiler import compile_assembly, compile_python
from headrace_cpu.native.load import load
from headrace_cpu.native.report import Compiled, compiling
from headrace_cpu.native.source import KernelSource, Vocabulary

# What translates kernels in Python.
_TRANSLATOR = ("headrace_cpu.native.translate", "headrace_cpu.native.instructions")

_LOCK = threading.Lock()
_ADDRESSES: dict[str, int] = {}
# Kernels that some thread makes now: others that want them wait for it.
_PENDING: dict[str, Future[int]] = {}
# In a forked process nobody makes them any more.
os.register_at_fork(after_in_child=_PENDING.clear)


def build(sources: Sequence[KernelSource]) -> list[int]:
    """Compile kernels, or take them from the cache, and load them.

    Args:
        sources: The kernels.

    Returns:
        The address of each: ``void kernel(int64_t *block)``.

    Raises:
        KernelError: if a kernel cannot be compiled.
        ModuleNotFoundError: if a module of a kernel's vocabulary does not exist.
    """
    with compiling() as work:
        return [_built(source, work) for source in sources]


def is_at_hand(source: KernelSource) -> bool:
    """Whether a kernel need not be compiled: the process has it, or the cache on disk."""
    key = _key(source)
    return key in _ADDRESSES or kernel_cache().has(key)


def _built(source: KernelSource, work: Compiled) -> int:
    key = _key(source)
    with _LOCK:
        if key in _ADDRESSES:
            return _ADDRESSES[key]
        others = _PENDING.get(key)
        if others is None:
            mine = _PENDING[key] = Future()
    if others is not None:
        return others.result()
    try:
        address = _made(source, key, work)
    except BaseException as error:
        mine.set_exception(error)
        raise
    else:
        with _LOCK:
            _ADDRESSES[key] = address
        mine.set_result(address)
        return address
    finally:
        with _LOCK:
            _PENDING.pop(key, None)


def _made(source: KernelSource, key: str, work: Compiled) -> int:
    """Load a kernel from the cache, or compile it."""
    cache = kernel_cache()
    symbol = f"{source.name}_{key[:16]}"
    code = cache.get(key)
    if code is not None:
        try:
            address = load(code, symbol)
        except RuntimeError:
            # Whole, yet not loadable: compile it again.
            cache.drop(key)
        else:
            with _LOCK:
                work.cached += 1
            return address
    start = time.perf_counter()
    compile_source = compile_assembly if source.language == "llvm" else compile_python
    code = compile_source(source, symbol)
    address = load(code, symbol)
    with _LOCK:
        work.kernels += 1
        work.seconds += time.perf_counter() - start
    cache.put(key, code)
    return address


def _key(source: KernelSource) -> str:
    used: str = source.language
    if used != "llvm":
        used = version((*_TRANSLATOR, *source.vocabulary.modules))
    parts = (used, toolchain(), source.name, source.text, "slp" if source.slp else "")
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@functools.cache
def toolchain() -> str:
    """Return what compiled code depends on besides its source: versions, and the processor."""
    llvm: Any = importlib.import_module("llvmlite.binding")

    features = llvm.get_host_cpu_features().flatten()
    compiler = Path(__file__).with_name("compiler.py")
    own = hashlib.sha256(compiler.read_bytes()).hexdigest()
    packages = f"llvmlite {importlib.import_module('llvmlite').__version__}"
    return " ".join((packages, llvm.get_host_cpu_name(), features, own))


@functools.cache
def version(modules: tuple[str, ...]) -> str:
    """Return a digest of the files of modules, which are not imported."""
    digest = hashlib.sha256()
    for name in modules:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(f"kernels need the module {name}", name=name)
        origin = Path(spec.origin)
        files = sorted(origin.parent.rglob("*.py")) if spec.submodule_search_locations else [origin]
        for file in files:
            digest.update(file.read_bytes())
    return digest.hexdigest()


__all__ = ["KernelSource", "Vocabulary", "build", "is_at_hand", "toolchain", "version"]
