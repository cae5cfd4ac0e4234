"""Loading of object code into the process, with LLVM's linker.

LLVM's ORC linker is taken rather than MCJIT: each object has names of its own, so that two kernels
never clash, and what is missing or damaged is a Python exception, where MCJIT ends the process.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import threading
from typing import Any

from headrace_cpu.native.threads import open_mp

_LOCK = threading.Lock()
# What was loaded: code goes away with its tracker.
_LOADED: list[Any] = []
# A name that was used, even by code that could not be loaded, cannot be used again.
_NUMBERS = itertools.count()


def _llvm() -> Any:
    return importlib.import_module("llvmlite.binding")


@functools.cache
def _linker() -> Any:
    """Return the linker, which stays for the process's life."""
    llvm = _llvm()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.create_lljit_compiler()


def load(code: bytes, symbol: str) -> int:
    """Load object code, and return the address of one of its functions.

    Names that the code does not define are those of the process (``memcpy``), and of OpenMP.

    Args:
        code: An ELF object file for this machine.
        symbol: The function's name.

    Raises:
        RuntimeError: if the code cannot be loaded, or has no such function.
    """
    with _LOCK:
        builder = _llvm().JITLibraryBuilder().add_object_img(code).add_current_process()
        pool = open_mp()
        for name, address in (pool.symbols if pool else {}).items():
            builder.import_symbol(name, address)
        builder.export_symbol(symbol)
        tracker = builder.link(_linker(), f"kernel{next(_NUMBERS)}")
        _LOADED.append(tracker)
        return int(tracker[symbol])
