"""Kernels of mutexes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import ResourceMismatchError
from headrace.extend import KernelTable
from headrace.extend.kernels import KernelContext
from headrace_cpu.mutexes import Mutex, MutexLock

KERNELS = KernelTable()


KERNELS.resource("Mutex")(Mutex)


@KERNELS.blocking("MutexAcquire")
def mutex_acquire(ctx: KernelContext, step: Any, done: Callable[[Any], None], mutex: Any) -> None:
    """Take the lock."""
    if not isinstance(mutex, Mutex):
        raise ResourceMismatchError(f"expected a mutex, got a {type(mutex).__name__}")
    mutex.acquire(done, step.cancellation)


@KERNELS.stateful("MutexRelease", answers=True)
def mutex_release(ctx: KernelContext, lock: Any) -> None:
    """Give the lock back."""
    if not isinstance(lock, MutexLock):
        raise ResourceMismatchError(f"expected the lock of a mutex, got a {type(lock).__name__}")
    lock.release()
