"""Kernels of mutexes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import ResourceError
from headrace.extend import KernelContext, KernelTable
from headrace_cpu.mutexes import Mutex, MutexLock

KERNELS = KernelTable()


@KERNELS.stateful("Mutex")
def mutex_handle(ctx: KernelContext, *, container: str, shared_name: str) -> Mutex:
    """Find the mutex of a name, made when first asked for."""
    return ctx.container(container).get_or_create(shared_name, Mutex, lambda: Mutex(shared_name))


@KERNELS.blocking("MutexAcquire")
def mutex_acquire(ctx: KernelContext, step: Any, done: Callable[[Any], None], mutex: Any) -> None:
    """Take the lock."""
    if not isinstance(mutex, Mutex):
        raise ResourceError(f"expected a mutex, got a {type(mutex).__name__}")
    mutex.acquire(done, step.cancellation)


@KERNELS.stateful("MutexRelease")
def mutex_release(ctx: KernelContext, lock: Any) -> None:
    """Give the lock back."""
    if not isinstance(lock, MutexLock):
        raise ResourceError(f"expected the lock of a mutex, got a {type(lock).__name__}")
    lock.release()
