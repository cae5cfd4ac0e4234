"""Compiling of generated kernels, by numba, to object code."""

from __future__ import annotations

import functools
import hashlib
import importlib
import linecache
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

from headrace_cpu.native.load import load
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
        environment: Names of the modules whose public names the sources use: intrinsics and
            functions that numba compiles. A change of their files makes kernels compile anew.

    Returns:
        The address of each: ``void kernel(int64_t *block)``.
    """
    with _LOCK:
        return [_built(source, tuple(environment)) for source in sources]


def _built(source: KernelSource, environment: tuple[str, ...]) -> int:
    key = hashlib.sha256(
        "\0".join((version(environment), source.name, source.text)).encode()
    ).hexdigest()
    if key not in _ADDRESSES:
        symbol = f"{source.name}_{key[:16]}"
        _ADDRESSES[key] = load(compile_source(source, symbol, environment), symbol)
    return _ADDRESSES[key]


@functools.cache
def version(environment: tuple[str, ...]) -> str:
    """Return a digest of the files of the environment's modules."""
    digest = hashlib.sha256()
    for name in environment:
        module = importlib.import_module(name)
        digest.update(Path(str(module.__file__)).read_bytes())
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
