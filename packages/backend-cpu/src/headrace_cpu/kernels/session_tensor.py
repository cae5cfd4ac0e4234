"""Kernels of tensors that a session keeps between steps."""

from __future__ import annotations

import itertools
import threading
from typing import final

import numpy as np

from headrace import DType
from headrace.errors import DTypeError, InvalidArgumentError, ShapeError
from headrace.extend import KernelTable
from headrace.extend.kernels import KernelContext
from headrace_cpu.kernels.numeric import Array

KERNELS = KernelTable()


@final
class Kept:
    """The tensors that a session keeps on a device, by the strings that stand for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._tensors: dict[str, Array] = {}

    def reset(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._tensors.clear()

    def keep(self, name: str, place: str, value: Array) -> str:
        """Keep a value; returns the string that stands for it."""
        with self._lock:
            handle = f"{name};{next(self._numbers)};{place}"
            self._tensors[handle] = value
        return handle

    def get(self, handle: str) -> Array:
        """Return what is kept.

        Raises:
            InvalidArgumentError: if nothing is.
        """
        try:
            return self._tensors[handle]
        except KeyError:
            raise _missing(handle) from None

    def delete(self, handle: str) -> None:
        """Keep it no longer.

        Raises:
            InvalidArgumentError: if nothing is kept.
        """
        with self._lock:
            if self._tensors.pop(handle, None) is None:
                raise _missing(handle)


def _missing(handle: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"the session keeps no tensor {handle!r} here: it was deleted, or belongs to another "
        "session or device"
    )


def _kept(ctx: KernelContext) -> Kept:
    return ctx.container("").get_or_create("_kept", Kept, Kept)


def _text(handle: Array) -> str:
    strings = np.asarray(handle, object)
    if strings.ndim:
        raise ShapeError(f"a handle is one string, got shape {list(strings.shape)}")
    found = strings.item()
    return found.decode(errors="replace") if isinstance(found, bytes) else str(found)


@KERNELS.stateful("GetSessionHandle")
def get_session_handle(ctx: KernelContext, value: Array) -> Array:
    """Keep a copy."""
    owned = np.array(value, object if isinstance(value, bytes) else None)
    handle = _kept(ctx).keep(ctx.op_name, str(ctx.device.name), owned)
    made = np.empty((), object)
    made[()] = handle.encode()
    return made


@KERNELS.stateful("GetSessionTensor")
def get_session_tensor(ctx: KernelContext, handle: Array, *, dtype: DType) -> Array:
    """Return a copy."""
    found = _kept(ctx).get(_text(handle))
    if found.dtype != dtype.numpy:
        raise DTypeError(f"the tensor {_text(handle)!r} is {found.dtype}, expected {dtype}")
    return found.copy()


@KERNELS.stateful("DeleteSessionTensor")
def delete_session_tensor(ctx: KernelContext, handle: Array) -> None:
    """Keep it no longer."""
    _kept(ctx).delete(_text(handle))
