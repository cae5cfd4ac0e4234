"""Layouts of tensors in memory, and oneDNN's descriptors of them."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from ctypes import byref, c_void_p
from typing import Any, final

from headrace.extend.records import dataclass
from headrace_cpu.onednn.library import Library, dims

FLOAT32 = 3
_ANY = 1


@dataclass(frozen=True, slots=True)
class Layout:
    """The logical dimensions of a float32 tensor in the order that oneDNN has, and where they lie.

    Attributes:
        sizes: Of the dimensions.
        strides: In elements; None where the primitive may choose.
    """

    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None = None

    @property
    def any(self) -> Layout:
        """The same dimensions, laid out as the primitive likes."""
        return Layout(self.sizes)


def contiguous(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a C-contiguous buffer, in elements."""
    return tuple(math.prod(sizes[axis + 1 :]) for axis in range(len(sizes)))


def permuted(sizes: Sequence[int], order: Sequence[int]) -> Layout:
    """Return the layout of a C-contiguous buffer whose axes are taken in another order."""
    strides = contiguous(sizes)
    return Layout(tuple(sizes[axis] for axis in order), tuple(strides[axis] for axis in order))


@final
class Descriptor:
    """A memory descriptor.

    Attributes:
        handle: oneDNN's.
        size: Bytes.
    """

    def __init__(self, library: Library, made: Any) -> None:
        self._library = library
        self.handle = made
        self.size = library.size_of(made)
        release = weakref.finalize(self, library.call, "dnnl_memory_desc_destroy", made)
        release.atexit = False

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descriptor) and self._library.equal(self.handle, other.handle)

    __hash__ = None  # type: ignore[assignment]  # equal descriptors have no common number

    @classmethod
    def of(cls, library: Library, layout: Layout) -> Descriptor:
        """Return the descriptor of a layout.

        Raises:
            OnednnError: if there is none.
        """
        count, sizes = len(layout.sizes), dims(layout.sizes)
        if layout.strides is None:
            name, last = "dnnl_memory_desc_create_with_tag", _ANY
        else:
            name, last = "dnnl_memory_desc_create_with_strides", dims(layout.strides)
        return cls(library, library.create(name, count, sizes, FLOAT32, last))

    @classmethod
    def copied(cls, library: Library, borrowed: Any) -> Descriptor:
        """Return a copy of a descriptor that belongs to a primitive."""
        return cls(library, library.create("dnnl_memory_desc_clone", borrowed))


@final
class Memory:
    """A oneDNN memory: a descriptor with an address."""

    def __init__(self, library: Library, descriptor: Descriptor) -> None:
        self.handle = library.create("dnnl_memory_create", descriptor.handle, library.engine, None)
        self._library = library
        release = weakref.finalize(self, library.call, "dnnl_memory_destroy", self.handle)
        release.atexit = False

    @property
    def address(self) -> int:
        """Where its buffer is."""
        found = c_void_p()
        self._library.call("dnnl_memory_get_data_handle", self.handle, byref(found))
        return found.value or 0

    def point(self, address: int) -> None:
        """Let it be the buffer at an address."""
        self._library.call("dnnl_memory_set_data_handle", self.handle, address)
