"""Compiling of generated kernels to object code, by LLVM."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from headrace_cpu.native.report import notice
from headrace_cpu.native.source import KernelSource

# Functions of such names are inlined when loops are vector code already. They have the attribute
# noinline until then. Others that have it are cold, or have an attribute that says that they stay.
INLINED_LATE = "headrace_late_"
STAYS = '"headrace-stays"'


class KernelError(RuntimeError):
    """A generated kernel does not compile: a mistake of what generated it."""


def give_up(ops: Iterable[str], error: Exception, strict: bool) -> None:
    """Tell that plain kernels do the work of one that cannot be generated.

    Args:
        ops: The types of its operations.
        error: Why.
        strict: Whether to raise instead.

    Raises:
        KernelError: where ``strict``.
    """
    shown = ", ".join(dict.fromkeys(ops))
    reason = str(error).partition("\n")[0] or type(error).__name__
    text = f"no kernel can be generated for {shown}, so plain kernels do its work: {reason}"
    if strict:
        raise KernelError(text) from error
    notice(text)


def compile_python(source: KernelSource, symbol: str) -> bytes:
    """Compile a kernel that is written in the Python of kernels; see ``compile_assembly``."""
    translator: Any = importlib.import_module("headrace_cpu.native.translate")
    try:
        text = translator.translate(source.text, source.name, source.vocabulary)
    except SyntaxError as reason:
        raise _failure(source, reason) from reason
    return compile_assembly(replace(source, text=text, language="llvm"), symbol)


def compile_assembly(source: KernelSource, symbol: str) -> bytes:
    """Compile a kernel that is written in LLVM's assembly.

    Args:
        source: The kernel.
        symbol: What its function is called in the result.

    Returns:
        An ELF object file for this machine.

    Raises:
        KernelError: if it is not well formed.
    """
    llvm: Any = importlib.import_module("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = target_machine()
    try:
        # A context of its own: those who compile at the same time share nothing.
        text = source.text.replace(f"@{source.name}(", f"@{symbol}(")
        module = llvm.parse_assembly(text, llvm.create_context())
        module.verify()
    except RuntimeError as reason:
        raise _failure(source, reason) from reason
    module = optimize(module, machine, slp=source.slp)
    return bytes(machine.emit_object(module))


def target_machine() -> Any:
    """Return LLVM's description of this machine."""
    llvm: Any = importlib.import_module("llvmlite.binding")
    host = llvm.get_host_cpu_features()
    features = host.flatten()
    if host.get("avx512f"):
        # LLVM keeps to half of its width by default, for processors that slowed down by more.
        # Measured: a fifth to a half less time for kernels with elementary functions.
        features += ",-prefer-256-bit"
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, reloc="pic"
    )


def optimize(module: Any, machine: Any, *, slp: bool = False) -> Any:
    """Run LLVM's passes on a module, as they are for a machine.

    Args:
        module: The module, which is changed.
        machine: What `target_machine` returned.
        slp: As in ``KernelSource``.

    Returns:
        The module to use henceforth, which may be another one.
    """
    llvm: Any = importlib.import_module("llvmlite.binding")
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.slp_vectorization = slp
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    if not any(function.name.startswith(INLINED_LATE) for function in module.functions):
        return module
    module = llvm.parse_assembly(_to_inline(str(module)), llvm.create_context())
    late = llvm.create_new_module_pass_manager()
    late.add_always_inliner_pass()
    late.add_global_dead_code_eliminate_pass()
    late.add_sroa_pass()
    late.add_instruction_combine_pass()
    late.add_simplify_cfg_pass()
    late.run(module, passes)
    return module


def _to_inline(text: str) -> str:
    """Return a module with those functions to be inlined that could not be before."""
    lines = []
    for line in text.splitlines():
        stays = " cold " in line or STAYS in line
        if line.startswith("attributes #") and not stays:
            line = line.replace(" noinline ", " alwaysinline ")
        elif line.startswith("define ") and f"@{INLINED_LATE}" in line:
            line = re.sub(r"^define ((dso_local|internal) )*", "define internal ", line)
        lines.append(line)
    return "\n".join(lines)


def _failure(source: KernelSource, reason: Exception) -> KernelError:
    return KernelError(f"kernel {source.name} does not compile: {reason}\n{source.text}")
