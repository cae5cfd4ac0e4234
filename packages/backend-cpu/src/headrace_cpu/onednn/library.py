"""The oneDNN library: where it is, what it exports, and what it answers.

It is called through ctypes. Version 3 is wanted, built for OpenMP or for one thread, because builds
for other runtimes (SYCL, thread pools of the caller) are called in other ways.

References:
    oneAPI Deep Neural Network Library, developer guide, https://uxlfoundation.github.io/oneDNN
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_int64, c_size_t, c_uint
from ctypes import c_void_p as handle
from pathlib import Path
from typing import Any, final

from headrace.extend.records import dataclass
from headrace.extend.settings import missing_file
from headrace_cpu.native.threads import open_mp
from headrace_cpu.settings import ONEDNN_LIBRARY

# Distributions that have the library, and what its file is called in them.
_DISTRIBUTIONS = ("onednn-cpu-gomp", "onednn-cpu-iomp")
_FILE = "libdnnl.so.3"
_MAJOR = 3
# Runtimes: one thread, and OpenMP.
_RUNTIMES = (1, 2)

_STATUS = {
    1: "out of memory",
    2: "invalid arguments",
    3: "unimplemented",
    4: "no further implementation",
    5: "runtime error",
    6: "not required",
}

UNIMPLEMENTED = 3
MAX_DIMS = 12
Dims = c_int64 * MAX_DIMS

# The numbers of the arguments of primitives.
SRC, SRC_1, DST, WEIGHTS, BIAS, WORKSPACE, SCRATCHPAD = 1, 2, 17, 33, 41, 64, 80
DIFF_SRC, DIFF_DST, DIFF_WEIGHTS = 129, 145, 161

_dims = POINTER(c_int64)
_out = POINTER(handle)
_PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "dnnl_engine_create": (_out, c_int, c_size_t),
    "dnnl_stream_create": (_out, handle, c_uint),
    "dnnl_stream_destroy": (handle,),
    "dnnl_memory_desc_create_with_strides": (_out, c_int, _dims, c_int, _dims),
    "dnnl_memory_desc_create_with_tag": (_out, c_int, _dims, c_int, c_int),
    "dnnl_memory_desc_clone": (_out, handle),
    "dnnl_memory_desc_destroy": (handle,),
    "dnnl_memory_create": (_out, handle, handle, handle),
    "dnnl_memory_set_data_handle": (handle, handle),
    "dnnl_memory_get_data_handle": (handle, _out),
    "dnnl_memory_destroy": (handle,),
    "dnnl_primitive_create": (_out, handle),
    "dnnl_primitive_destroy": (handle,),
    "dnnl_primitive_desc_destroy": (handle,),
    "dnnl_primitive_desc_query": (handle, c_int, c_int, handle),
    "dnnl_primitive_attr_create": (_out,),
    "dnnl_primitive_attr_destroy": (handle,),
    "dnnl_primitive_attr_set_scratchpad_mode": (handle, c_int),
    "dnnl_primitive_attr_set_post_ops": (handle, handle),
    "dnnl_post_ops_create": (_out,),
    "dnnl_post_ops_destroy": (handle,),
    "dnnl_post_ops_append_eltwise": (handle, c_int, c_float, c_float),
    "dnnl_post_ops_append_sum": (handle, c_float, c_int, c_int),
    "dnnl_post_ops_append_binary": (handle, c_int, handle),
    "dnnl_reorder_primitive_desc_create": (_out, handle, handle, handle, handle, handle),
    "dnnl_convolution_forward_primitive_desc_create": (
        *(_out, handle, c_int, c_int, handle, handle, handle, handle),
        *(_dims, _dims, _dims, _dims, handle),
    ),
    "dnnl_convolution_backward_data_primitive_desc_create": (
        *(_out, handle, c_int, handle, handle, handle),
        *(_dims, _dims, _dims, _dims, handle, handle),
    ),
    "dnnl_convolution_backward_weights_primitive_desc_create": (
        *(_out, handle, c_int, handle, handle, handle, handle),
        *(_dims, _dims, _dims, _dims, handle, handle),
    ),
    "dnnl_pooling_forward_primitive_desc_create": (
        *(_out, handle, c_int, c_int, handle, handle),
        *(_dims, _dims, _dims, _dims, _dims, handle),
    ),
    "dnnl_pooling_backward_primitive_desc_create": (
        *(_out, handle, c_int, handle, handle),
        *(_dims, _dims, _dims, _dims, _dims, handle, handle),
    ),
    "dnnl_matmul_primitive_desc_create": (_out, handle, handle, handle, handle, handle, handle),
}


class OnednnError(RuntimeError):
    """A call of oneDNN failed.

    Attributes:
        status: What it returned.
    """

    def __init__(self, function: str, status: int) -> None:
        super().__init__(f"{function} failed: {_STATUS.get(status, f'status {status}')}")
        self.status = status


class Argument(ctypes.Structure):
    """An argument of a primitive: its number, and a memory."""

    _fields_ = (("number", c_int), ("memory", handle))


class _Version(ctypes.Structure):
    _fields_ = (
        ("major", c_int),
        ("minor", c_int),
        ("patch", c_int),
        ("hash", c_char_p),
        ("cpu_runtime", c_uint),
        ("gpu_runtime", c_uint),
    )


# What is called without Python, too.
_CALLED = ("dnnl_memory_set_data_handle", "dnnl_primitive_execute")


def _place(function: Any) -> int:
    return ctypes.cast(function, handle).value or 0


def _executed(status: int) -> int:
    if status:
        raise OnednnError("dnnl_primitive_execute", status)
    return status


def _multiplied(status: int) -> int:
    if status:
        raise OnednnError("dnnl_sgemm", status)
    return status


@final
class Library:
    """A loaded oneDNN.

    Attributes:
        path: The file.
        version: As in "3.2.0".
        engine: The engine of the CPU.
        execute: ``dnnl_primitive_execute``; it raises where it fails.
        sgemm: ``dnnl_sgemm``, likewise.
        set_threads: Sets the number of threads that the calling thread's parallel regions have.
        get_threads: Returns it.
        places: The addresses of functions that loops call, by name.
        set_threads_at: The address of ``set_threads``; 0 where there are no threads.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        # It settles how OpenMP waits, before oneDNN makes it load.
        open_mp()
        self._library: Any = ctypes.CDLL(path)
        self.version = self._checked_version()
        self._functions = {name: self._function(name) for name in _PROTOTYPES}
        self._query = self._library.dnnl_primitive_desc_query_md
        self._query.restype, self._query.argtypes = handle, (handle, c_int, c_int)
        self._size = self._library.dnnl_memory_desc_get_size
        self._size.restype, self._size.argtypes = c_size_t, (handle,)
        self._equal = self._library.dnnl_memory_desc_equal
        self._equal.restype, self._equal.argtypes = c_int, (handle, handle)
        # Without prototypes: its arguments are ctypes objects that are made once.
        self.execute: Any = self._library.dnnl_primitive_execute
        self.execute.restype = _executed
        self.sgemm: Any = self._library.dnnl_sgemm
        self.sgemm.restype = _multiplied
        self.engine: Any = self.create("dnnl_engine_create", 1, 0)
        self.set_threads, self.get_threads = self._openmp(path)
        self.places = {name: _place(self._library[name]) for name in _CALLED}
        found = getattr(self.set_threads, "restype", self)
        self.set_threads_at = 0 if found is self else _place(self.set_threads)

    def _checked_version(self) -> str:
        read = self._library.dnnl_version
        read.restype = POINTER(_Version)
        found = read().contents
        version = f"{found.major}.{found.minor}.{found.patch}"
        if found.major != _MAJOR:
            raise OSError(f"{self.path} is oneDNN {version}; version {_MAJOR} is wanted")
        if found.cpu_runtime not in _RUNTIMES:
            raise OSError(f"{self.path} is built for a runtime other than OpenMP")
        return version

    def _function(self, name: str) -> Any:
        function = getattr(self._library, name)
        function.argtypes, function.restype = _PROTOTYPES[name], c_int
        return function

    @staticmethod
    def _openmp(path: str) -> tuple[Callable[[int], object], Callable[[], int]]:
        """Return the functions that set and get the calling thread's number of threads.

        They are looked up by way of the library, which finds the OpenMP that it uses itself. They
        are so short that releasing the interpreter's lock for them would take longer.
        """
        library: Any = ctypes.PyDLL(path)
        try:
            set_threads, get_threads = library.omp_set_num_threads, library.omp_get_max_threads
        except AttributeError:
            return (lambda count: None), (lambda: 1)
        set_threads.restype, set_threads.argtypes = None, (c_int,)
        get_threads.restype, get_threads.argtypes = c_int, ()
        return set_threads, get_threads

    @contextlib.contextmanager
    def threads(self, count: int) -> Iterator[None]:
        """Make primitives for so many threads.

        Primitives divide their work when they are made. OpenMP's number belongs to the thread that
        asks; primitives must be executed by threads that have set the same one.
        """
        before = self.get_threads()
        self.set_threads(count)
        try:
            yield
        finally:
            self.set_threads(before)

    def run(self, threads: int, steps: Sequence[Callable[[], object]]) -> None:
        """Run calls of oneDNN on the number of threads that they were made for."""
        before = self.get_threads()
        if before == threads:
            for step in steps:
                step()
            return
        self.set_threads(threads)
        try:
            for step in steps:
                step()
        finally:
            self.set_threads(before)

    def call(self, name: str, *arguments: Any) -> None:
        """Call a function that returns a status.

        Raises:
            OnednnError: if it fails.
        """
        status = self._functions[name](*arguments)
        if status:
            raise OnednnError(name, status)

    def create(self, name: str, *arguments: Any) -> Any:
        """Call a function that makes an object, and return the object.

        Raises:
            OnednnError: if it fails.
        """
        made = handle()
        self.call(name, byref(made), *arguments)
        return made

    def descriptor_of(self, primitive_descriptor: Any, number: int) -> Any:
        """Return the memory descriptor of a primitive's argument; it belongs to the primitive."""
        return self._query(primitive_descriptor, 255, number)

    def size_of(self, descriptor: Any) -> int:
        """Return the bytes of memory that a descriptor describes."""
        return int(self._size(descriptor))

    def equal(self, one: Any, other: Any) -> bool:
        """Whether two memory descriptors describe the same."""
        return bool(self._equal(one, other))

    def implementation(self, primitive_descriptor: Any) -> str:
        """Return the name of the implementation that was chosen for a primitive."""
        name = c_char_p()
        self.call("dnnl_primitive_desc_query", primitive_descriptor, 8, 0, byref(name))
        return (name.value or b"").decode()


def dims(values: Any) -> Any:
    """Return numbers as the array that oneDNN takes."""
    return Dims(*values)


@dataclass(frozen=True, slots=True)
class Found:
    """What came of looking for the library.

    Attributes:
        library: It, None where there is none that can be used.
        reason: Why there is none.
    """

    library: Library | None
    reason: str = ""


_LOCK = threading.Lock()


def load() -> Library | None:
    """Return the library, None where there is none that can be used."""
    return find().library


def find() -> Found:
    """Look for the library; once in a process."""
    with _LOCK:
        return _find()


@functools.cache
def _find() -> Found:
    path = _path()
    if path is None:
        return Found(None, "not installed")
    if missing_file(path):
        # The setting says so when it is read. The loader would wait for whoever writes a pipe.
        return Found(None, f"cannot be used: {path} is no file")
    try:
        return Found(Library(path))
    except (OSError, AttributeError, OnednnError) as problem:
        if ONEDNN_LIBRARY.read() is not None:
            warnings.warn(
                f"{ONEDNN_LIBRARY.variable} is {path!r}, which cannot be used: {problem}; name "
                "another library, or unset it",
                RuntimeWarning,
                stacklevel=2,
            )
        return Found(None, f"cannot be used: {problem}")


def _path() -> str | None:
    chosen = ONEDNN_LIBRARY.read()
    if chosen is not None:
        return chosen
    # Where its wheels put it; to read what they installed takes milliseconds.
    usual = Path(sys.prefix) / "lib" / _FILE
    if usual.is_file():
        return str(usual.resolve())
    # lazy: most find it there, and these import half of the standard library
    import ctypes.util
    from importlib.metadata import PackageNotFoundError, files

    for distribution in _DISTRIBUTIONS:
        try:
            listed = files(distribution) or ()
        except PackageNotFoundError:
            continue
        for entry in listed:
            if entry.name == _FILE:
                return str(Path(str(entry.locate())).resolve())
    return ctypes.util.find_library("dnnl")
