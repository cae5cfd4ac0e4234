"""Compiling of generated kernels to object code, by numba.

Numba's passes are Python, and take most of the time, so that only those run which a kernel without
arrays, objects, exceptions and closures needs. Its own C wrapper would tell of exceptions through
the interpreter; ours is a call.
"""

from __future__ import annotations

import functools
import importlib
import linecache
from collections.abc import Callable, Iterable
from types import MethodType
from typing import Any

from headrace_cpu.native.report import notice
from headrace_cpu.native.threads import open_mp

_UNTYPED = ("TranslateByteCode", "FixupArgs", "IRProcessing", "ReconstructSSA")
_TYPED = (
    "NopythonTypeInference",
    "PreLowerStripPhis",
    "IRLegalization",
    "AnnotateTypes",
    "NativeLowering",
    "NoPythonBackend",
)


class KernelError(RuntimeError):
    """A generated kernel does not compile: a mistake of what generated it."""


def give_up(ops: Iterable[str], error: Exception, strict: bool) -> None:
    """Tell that NumPy does the work of a kernel that cannot be generated.

    Args:
        ops: The types of its operations.
        error: Why.
        strict: Whether to raise instead.

    Raises:
        KernelError: where ``strict``.
    """
    shown = ", ".join(dict.fromkeys(ops))
    reason = str(error).partition("\n")[0] or type(error).__name__
    text = f"no kernel can be generated for {shown}, so NumPy does its work: {reason}"
    if strict:
        raise KernelError(text) from error
    notice(text)


def compile_kernel(name: str, text: str, symbol: str, environment: Iterable[str]) -> bytes:
    """Compile a kernel.

    Args:
        name: The name of its function, which takes an int64.
        text: The source that defines it.
        symbol: What the function ``void symbol(int64_t)`` is called in the result.
        environment: Names of the modules whose public names the source uses.

    Returns:
        An ELF object file for this machine.

    Raises:
        KernelError: if it does not compile.
    """
    numba: Any = importlib.import_module("numba")
    compiler: Any = importlib.import_module("numba.core.compiler")
    typing, target = _contexts()
    flags = compiler.Flags()
    flags.enable_pyobject = False
    flags.no_cpython_wrapper = True
    flags.release_gil = True
    flags.nrt = False
    flags.no_rewrites = True
    flags.error_model = "numpy"
    target.symbol = symbol
    try:
        result = compiler.compile_extra(
            typing,
            target,
            _function(name, text, environment),
            (numba.types.int64,),
            numba.types.void,
            flags,
            {},
            pipeline_class=_pipeline(),
        )
    except (numba.errors.NumbaError, SyntaxError, NameError, NotImplementedError) as reason:
        raise KernelError(f"kernel {name} does not compile: {reason}\n{text}") from reason
    return bytes(result.library.serialize_using_object_code()[2][0])


def _function(name: str, text: str, environment: Iterable[str]) -> Callable[..., Any]:
    """Return the Python function of a kernel, with its text where tracebacks look for it."""
    names: dict[str, Any] = {"__name__": "headrace_kernels"}
    for module in environment:
        found = vars(importlib.import_module(module))
        names |= {key: value for key, value in found.items() if not key.startswith("_")}
    file = f"<kernel {name}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), names)
    function: Callable[..., Any] = names[name]
    return function


@functools.cache
def _contexts() -> tuple[Any, Any]:
    """Return numba's contexts of types and of code, the latter with our own C wrapper."""
    llvm: Any = importlib.import_module("llvmlite.binding")
    ir: Any = importlib.import_module("llvmlite.ir")
    cpu: Any = importlib.import_module("numba.core.registry").cpu_target

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
    cpu.target_context.refresh()
    target = cpu.target_context.subtarget()
    target.create_cfunc_wrapper = MethodType(wrapper, target)
    return cpu.typing_context, target


@functools.cache
def _pipeline() -> type:
    """Return the passes, as the class that numba's compiler wants."""
    untyped: Any = importlib.import_module("numba.core.untyped_passes")
    typed: Any = importlib.import_module("numba.core.typed_passes")
    compiler: Any = importlib.import_module("numba.core.compiler")
    machinery: Any = importlib.import_module("numba.core.compiler_machinery")
    passes = [getattr(untyped, n) for n in _UNTYPED] + [getattr(typed, n) for n in _TYPED]

    def define_pipelines(_: Any) -> list[Any]:
        manager = machinery.PassManager("kernel")
        for step in passes:
            manager.add_pass(step, step.__name__)
        manager.finalize()
        return [manager]

    return type("KernelCompiler", (compiler.CompilerBase,), {"define_pipelines": define_pipelines})


def compile_assembly(name: str, text: str, symbol: str) -> bytes:
    """Compile a kernel that is written in LLVM's assembly.

    Args:
        name: The name of its function.
        text: A module that defines it.
        symbol: What the function is called in the result.

    Returns:
        An ELF object file for this machine.

    Raises:
        KernelError: if it is not well formed.
    """
    llvm: Any = importlib.import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    host = llvm.get_host_cpu_features()
    features = host.flatten()
    if host.get("avx512f"):
        # LLVM keeps to half of its width by default, for processors that slowed down by more.
        # Measured: a fifth to a half less time for kernels with elementary functions.
        features += ",-prefer-256-bit"
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, reloc="pic"
    )
    try:
        module = llvm.parse_assembly(text.replace(f"@{name}(", f"@{symbol}("))
        module.verify()
    except RuntimeError as reason:
        raise KernelError(f"kernel {name} does not compile: {reason}\n{text}") from reason
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    return bytes(machine.emit_object(module))
