"""Compiling of generated kernels, by numba, to object code."""

from __future__ import annotations

import functools
import hashlib
import importlib
import linecache
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from headrace_cpu.native.cache import kernel_cache
from headrace_cpu.native.load import load
from headrace_cpu.native.report import Compiled, compiling
from headrace_cpu.native.threads import open_mp

ENVIRONMENT = ("headrace_cpu.fusion.intrinsics",)

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
    """

    name: str
    text: str


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
        CompileError: if a kernel cannot be compiled.
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
    code = compile_source(source, symbol, environment)
    _ADDRESSES[key] = load(code, symbol)
    work.kernels += 1
    work.seconds += time.perf_counter() - start
    cache.put(key, code)
    return _ADDRESSES[key]


def _key(source: KernelSource, environment: tuple[str, ...]) -> str:
    parts = (version(environment), toolchain(), source.name, source.text)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@functools.cache
def toolchain() -> str:
    """Return what compiled code depends on besides its source: versions, and the processor."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features().flatten()
    own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
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


def compile_source(source: KernelSource, symbol: str, environment: tuple[str, ...]) -> bytes:
    """Compile a kernel to an object file whose function is ``symbol``."""
    from numba.core import compiler, types

    typing, target = _contexts()
    function = _function(source, environment)
    flags = compiler.Flags()
    flags.enable_pyobject = False
    flags.no_cpython_wrapper = True
    flags.release_gil = True
    flags.nrt = False
    flags.no_rewrites = True
    flags.error_model = "numpy"
    target.symbol = symbol
    result = compiler.compile_extra(
        typing,
        target,
        function,
        (types.int64,),
        types.void,
        flags,
        {},
        pipeline_class=_pipeline(),
    )
    return bytes(result.library._get_compiled_object())


def _function(source: KernelSource, environment: tuple[str, ...]) -> Callable[..., Any]:
    """Return the Python function of a kernel, with its text where tracebacks look for it."""
    names: dict[str, Any] = {"__name__": "headrace_kernels"}
    for module in environment:
        names |= {k: v for k, v in vars(importlib.import_module(module)).items() if k[:1] != "_"}
    file = f"<kernel {source.name}>"
    linecache.cache[file] = (len(source.text), None, source.text.splitlines(True), file)
    exec(compile(source.text, file, "exec"), names)
    function = names[source.name]
    assert isinstance(function, FunctionType)
    return function


@functools.cache
def _contexts() -> tuple[Any, Any]:
    import llvmlite.binding as llvm
    from llvmlite import ir
    from numba.core.registry import cpu_target

    def wrapper(self: Any, library: Any, fndesc: Any, env: Any, call_helper: Any) -> None:
        """Add the C function that calls numba's, without what reports exceptions."""
        module = self.create_module("wrapper")
        callee_type = self.call_conv.get_function_type(fndesc.restype, fndesc.argtypes)
        callee = ir.Function(module, callee_type, fndesc.llvm_func_name)
        kind = ir.FunctionType(ir.VoidType(), [ir.IntType(64)])
        function = ir.Function(module, kind, self.symbol)
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.call_conv.call_function(
            builder, callee, fndesc.restype, fndesc.argtypes, function.args
        )
        builder.ret_void()
        library.add_ir_module(module)

    # numba loads what it compiled, too, and must find OpenMP's functions.
    pool = open_mp()
    for name, address in (pool.symbols if pool else {}).items():
        llvm.add_symbol(name, address)
    cpu_target.target_context.refresh()
    target = cpu_target.target_context.subtarget()
    target.create_cfunc_wrapper = MethodType(wrapper, target)
    return cpu_target.typing_context, target


@functools.cache
def _pipeline() -> Any:
    from numba.core import compiler, typed_passes, untyped_passes
    from numba.core.compiler_machinery import PassManager

    passes = (
        untyped_passes.TranslateByteCode,
        untyped_passes.FixupArgs,
        untyped_passes.IRProcessing,
        untyped_passes.ReconstructSSA,
        typed_passes.NopythonTypeInference,
        typed_passes.PreLowerStripPhis,
        typed_passes.IRLegalization,
        typed_passes.AnnotateTypes,
        typed_passes.NativeLowering,
        typed_passes.NoPythonBackend,
    )

    class Pipeline(compiler.CompilerBase):  # type: ignore[misc]
        def define_pipelines(self) -> list[Any]:
            manager = PassManager("kernel")
            for step in passes:
                manager.add_pass(step, step.__name__)
            manager.finalize()
            return [manager]

    return Pipeline
