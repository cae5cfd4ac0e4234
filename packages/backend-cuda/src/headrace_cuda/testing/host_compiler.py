"""CUDA C++ on the host: kernels compiled by a C++ compiler, with the words of CUDA defined.

Threads of a block are fibers of one thread, which change where a barrier is: each runs up to the
barrier before any goes on. So a kernel without a barrier that it needs reads what is not there yet,
in every run. Blocks run one after the other.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headrace_cuda.program.platform import CudaSource, Function, Grid
from headrace_cuda.program.prelude import PRELUDE

_HEADER = r"""
#include <cstdlib>
#include <math.h>
#include <ucontext.h>
template <class T> static inline T min(T x, T y) { return y < x ? y : x; }
template <class T> static inline T max(T x, T y) { return x < y ? y : x; }

struct Place { unsigned x, y, z; };
static Place threadIdx, blockIdx, blockDim, gridDim;

#define __global__
#define __device__
#define __forceinline__ inline
#define __restrict__
#define __launch_bounds__(...)
// One thread runs at a time.
template <class T> static inline T atomicAdd(T *at, T x) { T old = *at; *at += x; return old; }
// Blocks run one after the other, so that a block's memory is there once.
#define __shared__ static

static ucontext_t scheduler;
static ucontext_t *running;
static inline void __syncthreads() { swapcontext(running, &scheduler); }

struct Fiber { ucontext_t context; char *stack; bool done; Place place; };
static Fiber fibers[1024];
static const long long *parameters;
static void (*kernel)(const long long *);
static Fiber *current;

static void run_fiber() {
    kernel(parameters);
    current->done = true;
    swapcontext(&current->context, &scheduler);
}

static void run_block(unsigned threads) {
    for (unsigned i = 0; i < threads; ++i) {
        Fiber &fiber = fibers[i];
        if (!fiber.stack) fiber.stack = (char *)malloc(1 << 16);
        fiber.place = {i % blockDim.x, i / blockDim.x % blockDim.y, i / blockDim.x / blockDim.y};
        fiber.done = false;
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack;
        fiber.context.uc_stack.ss_size = 1 << 16;
        fiber.context.uc_link = &scheduler;
        makecontext(&fiber.context, run_fiber, 0);
    }
    for (bool more = true; more;) {
        more = false;
        for (unsigned i = 0; i < threads; ++i) {
            if (fibers[i].done) continue;
            current = &fibers[i];
            running = &current->context;
            threadIdx = current->place;
            swapcontext(&scheduler, running);
            more = more || !fibers[i].done;
        }
    }
}

static void run_grid(void (*wanted)(const long long *), const long long *words,
                     const unsigned *grid, const unsigned *block, bool waits) {
    kernel = wanted;
    parameters = words;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    for (unsigned z = 0; z < grid[2]; ++z)
        for (unsigned y = 0; y < grid[1]; ++y)
            for (unsigned x = 0; x < grid[0]; ++x) {
                blockIdx = {x, y, z};
                if (waits) {
                    run_block(block[0] * block[1] * block[2]);
                    continue;
                }
                for (unsigned c = 0; c < block[2]; ++c)
                    for (unsigned b = 0; b < block[1]; ++b)
                        for (unsigned a = 0; a < block[0]; ++a) {
                            threadIdx = {a, b, c};
                            wanted(words);
                        }
            }
}
"""
_WAITING = ("__syncthreads", "hr_fold_row", "hr_fold_column")


def host_compiler() -> str | None:
    """Return the C++ compiler, None where there is none."""
    return shutil.which("g++") or shutil.which("clang++")


_LOADED: dict[str, Function] = {}
_LOADING = threading.Lock()


def host_functions(sources: Sequence[CudaSource]) -> Mapping[str, Function]:
    """Return kernels compiled for the host, by name.

    Raises:
        RuntimeError: if they do not compile, with what the compiler says.
    """
    with _LOADING:
        missing = {s.name: s for s in sources if s.name not in _LOADED}
        if missing:
            _load(sorted(missing.values(), key=lambda source: source.name))
        return {source.name: _LOADED[source.name] for source in sources}


def _load(sources: Sequence[CudaSource]) -> None:
    """Compile and load kernels, all at once."""
    library = ctypes.CDLL(str(_library(sources)))
    # Kernels of one library have the memory of one block.
    alone = threading.Lock()
    for source in sources:
        entry = getattr(library, f"run_{source.name}")
        _LOADED[source.name] = functools.partial(_call, entry, alone)


def _call(entry: Any, alone: threading.Lock, grid: Grid, block: Grid, *words: int) -> None:
    given = (ctypes.c_longlong * max(1, len(words)))(*words)
    with alone:
        entry(given, (ctypes.c_uint * 3)(*grid), (ctypes.c_uint * 3)(*block))


@functools.cache
def _folder() -> Path:
    path = Path(tempfile.gettempdir()) / "headrace-host-kernels"
    path.mkdir(exist_ok=True)
    return path


def _library(sources: Sequence[CudaSource]) -> Path:
    """Return the shared library of kernels, compiled unless an earlier process did."""
    text = "\n".join([_HEADER, PRELUDE, *map(_text, sources)])
    name = hashlib.sha256(text.encode()).hexdigest()[:32]
    library = _folder() / f"{name}.so"
    if library.exists():
        return library
    compiler = host_compiler()
    if compiler is None:
        raise RuntimeError("there is no C++ compiler")
    with tempfile.TemporaryDirectory(dir=_folder()) as folder:
        path, made = Path(folder) / "kernel.cpp", Path(folder) / "kernel.so"
        path.write_text(text)
        flags = ["-std=c++20", "-O0", "-w", "-fwrapv", "-shared", "-fPIC"]
        command = [compiler, *flags, "-o", str(made), str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            texts = "\n".join(source.text for source in sources)
            raise RuntimeError(f"{compiler} refuses a kernel:\n{done.stderr[:4000]}\n{texts}")
        made.replace(library)
    return library


def _text(source: CudaSource) -> str:
    """Return a kernel with what starts it, in C++."""
    found = re.search(rf"void {source.name}\((.*?)\)\s*{{", source.text, re.DOTALL)
    assert found is not None, f"no kernel {source.name} in its source"
    parameters = [each.strip() for each in found[1].split(",") if each.strip()]
    types = [re.sub(r"\w+$", "", each).replace("__restrict__", "") for each in parameters]
    given = ", ".join(f"({kind})words[{i}]" for i, kind in enumerate(types))
    waits = any(word in source.text for word in _WAITING)
    return "\n".join(
        [
            source.text,
            f"static void start_{source.name}(const long long *words) {{",
            f"    {source.name}({given});",
            "}",
            f'extern "C" void run_{source.name}(',
            "    const long long *words, const unsigned *grid, const unsigned *block) {",
            f"    run_grid(start_{source.name}, words, grid, block, {str(waits).lower()});",
            "}",
            "",
        ]
    )
