"""Primitives: what oneDNN computes, prepared for shapes, layouts and a number of threads."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, final

from headrace.extend.records import dataclass
from headrace_cpu.onednn.library import DST, SCRATCHPAD, SRC, Library, OnednnError
from headrace_cpu.onednn.memory import Descriptor

_USER_SCRATCHPAD = 1
_HARD_SWISH, _LINEAR = 52, 38
_BINARY_ADD = 131056
# The argument of a post-op is the number of the post-op, and which of its operands it is.
_POST_OP, _OPERAND = 1 << 15, 2


def post_op_argument(place: int) -> int:
    """Return the number of the argument of the post-op at a place."""
    return _POST_OP * (place + 1) | _OPERAND


@dataclass(frozen=True, slots=True)
class Relu:
    """``max(x, 0)`` of the result.

    oneDNN's own turns NaN into 0, and so hides that training has diverged. This one is ``x * min(1,
    max(0, 1e38 * x))``: the same for all numbers down to 1e-38, and NaN for NaN and for -inf.
    """

    def append(self, library: Library, chain: Any) -> None:
        """Add it to a chain of post-ops."""
        library.call("dnnl_post_ops_append_eltwise", chain, _HARD_SWISH, 1e38, 0.0)
        # Makes 0 of -0.
        library.call("dnnl_post_ops_append_eltwise", chain, _LINEAR, 1.0, 0.0)


@dataclass(frozen=True, slots=True)
class Plus:
    """The sum of the result and of a tensor of its shape, or one that broadcasts to it."""

    layout: Any

    def append(self, library: Library, chain: Any) -> None:
        """Add it to a chain of post-ops."""
        descriptor = Descriptor.of(library, self.layout)
        library.call("dnnl_post_ops_append_binary", chain, _BINARY_ADD, descriptor.handle)


PostOp = Relu | Plus


@final
class Primitive:
    """A prepared computation; threads may share it.

    Attributes:
        handle: oneDNN's.
        implementation: What oneDNN chose to compute it with.
        scratch: Bytes of scratch memory that it needs.
    """

    def __init__(self, library: Library, descriptor: Any, numbers: tuple[int, ...]) -> None:
        self.handle = library.create("dnnl_primitive_create", descriptor)
        release = weakref.finalize(self, library.call, "dnnl_primitive_destroy", self.handle)
        release.atexit = False
        self.implementation = library.implementation(descriptor)
        self._arguments = {
            number: Descriptor.copied(library, library.descriptor_of(descriptor, number))
            for number in (*numbers, SCRATCHPAD)
        }
        self.scratch = self._arguments[SCRATCHPAD].size

    def argument(self, number: int) -> Descriptor:
        """Return how an argument must lie in memory."""
        return self._arguments[number]


# Makes a primitive descriptor with the attributes given.
Maker = Callable[[Any], Any]

_LOCK = threading.Lock()
_PRIMITIVES: weakref.WeakValueDictionary[Hashable, Primitive] = weakref.WeakValueDictionary()


def prepare(
    library: Library,
    threads: int,
    key: Hashable,
    make: Maker,
    numbers: tuple[int, ...],
    post_ops: tuple[PostOp, ...] = (),
) -> Primitive | None:
    """Return a primitive; None where oneDNN has none, or nothing better than its reference.

    Args:
        library: oneDNN.
        threads: How many threads will compute it.
        key: What tells it from all others that have the same post-ops.
        make: Makes its descriptor.
        numbers: Of its arguments.
        post_ops: What is done with each element of its result.
    """
    whole = (threads, key, post_ops)
    added = [post_op_argument(i) for i, p in enumerate(post_ops) if isinstance(p, Plus)]
    with _LOCK:
        found = _PRIMITIVES.get(whole)
        if found is None:
            try:
                with library.threads(threads):
                    found = _made(library, make, (*numbers, *added), post_ops)
            except OnednnError:
                return None
            if found.implementation.startswith("ref"):
                return None
            _PRIMITIVES[whole] = found
        return found


def _made(
    library: Library, make: Maker, numbers: tuple[int, ...], post_ops: tuple[PostOp, ...]
) -> Primitive:
    attributes = library.create("dnnl_primitive_attr_create")
    chain = library.create("dnnl_post_ops_create")
    try:
        library.call("dnnl_primitive_attr_set_scratchpad_mode", attributes, _USER_SCRATCHPAD)
        for post_op in post_ops:
            post_op.append(library, chain)
        library.call("dnnl_primitive_attr_set_post_ops", attributes, chain)
        descriptor = make(attributes)
    finally:
        library.call("dnnl_post_ops_destroy", chain)
        library.call("dnnl_primitive_attr_destroy", attributes)
    try:
        return Primitive(library, descriptor, numbers)
    finally:
        library.call("dnnl_primitive_desc_destroy", descriptor)


def reorder(library: Library, threads: int, source: Descriptor, target: Descriptor) -> Primitive:
    """Return what copies from one layout to another.

    Raises:
        OnednnError: if there is no such thing.
    """
    engine = library.engine

    def make(attributes: Any) -> Any:
        return library.create(
            "dnnl_reorder_primitive_desc_create",
            *(source.handle, engine, target.handle, engine, attributes),
        )

    with library.threads(threads):
        return _made(library, make, (SRC, DST), ())
