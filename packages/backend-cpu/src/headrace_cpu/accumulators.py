"""Accumulators: gradients of several steps, averaged when there are enough of them."""

from __future__ import annotations

import abc
import threading
from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from headrace import DType, Shape
from headrace.errors import AlreadyExistsError, CancelledError, DTypeError, ShapeError, told
from headrace.extend.kernels import Cancellation
from headrace.extend.state import WaitingLine


class Accumulator(abc.ABC):
    """A sum of gradients, and who waits until it has enough of them.

    Attributes:
        name: The name in its container.
        dtype: The dtype of the gradients.
        shape: Their shape as dense tensors, as far as fixed.
        mean: Whether they are averaged.
        count: How many were added since some were last taken.
    """

    def __init__(self, name: str, dtype: DType, shape: Shape, reduction_type: str) -> None:
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.mean = reduction_type == "MEAN"
        self.count = 0
        self._step = 0
        # Gradients under numbers, and the largest number that was taken.
        self._placed: dict[int, Any] = {}
        self._taken = -1
        self._lock = threading.Lock()
        self._line = WaitingLine(self._lock)
        self._placed_line = WaitingLine(self._lock)

    @property
    def unfilled(self) -> str:
        """What to do where no operation of a graph adds gradients, for reports."""
        return "no operation of the graph adds gradients to it: run what apply_grad returns"

    def describe(self) -> str:
        """Return which accumulator this is and what is in it, for reports of those that wait."""
        first = self._line.first()
        wanted = f" of the {first.wanted} that are wanted" if first is not None else ""
        late = f"; it is at step {self._step}, and drops what was computed for earlier ones"
        return f"accumulator {self.name!r}, which holds {self.count}{wanted} gradients" + (
            late if self._step else ""
        )

    def apply(self, step: int, gradient: Any) -> None:
        """Add a gradient, unless its step is behind.

        Args:
            step: The step for which it was computed.
            gradient: What ``add`` takes.

        Raises:
            DTypeError: if it has another dtype.
            ShapeError: if it does not fit the accumulator, or the gradients before it.
        """
        with self._lock:
            if step < self._step:
                return
            self.add(gradient)
            self.count += 1
            served = self._serve()
        for waiter, result in served:
            waiter.answer(result)

    def take(
        self, required: int, done: Callable[[Any], None], cancellation: Cancellation | None
    ) -> None:
        """Take what was accumulated, and go on to the next step.

        Args:
            required: How many gradients it waits for.
            done: Called once: with the outputs of the kernel, or with an exception.
            cancellation: Ends the waiting.
        """
        with self._lock:
            waiter = self._line.add(done, cancellation, required)
            served = self._serve()
        waiter.watch()
        for other, result in served:
            other.answer(result)

    def place(self, place: int, gradient: Any) -> None:
        """Keep a gradient under a number, unless a larger one was taken.

        Args:
            place: The number.
            gradient: What ``add`` takes.

        Raises:
            DTypeError: if it has another dtype.
            ShapeError: if it does not fit the accumulator.
            AlreadyExistsError: if there is a gradient of that number.
        """
        gradient = self._kept(gradient)
        with self._lock:
            if place <= self._taken:
                return
            if place in self._placed:
                raise AlreadyExistsError(
                    f"accumulator {self.name!r} has a gradient of number {told(place)}: do two "
                    "programs add to one accumulator?"
                )
            self._placed[place] = gradient
            served = self._serve_placed()
        for waiter, result in served:
            waiter.answer(result)

    def take_placed(
        self,
        places: Sequence[int],
        done: Callable[[Any], None],
        cancellation: Cancellation | None,
    ) -> None:
        """Take the gradients of some numbers, and forget those of lower ones.

        Args:
            places: The numbers, in the order in which to add up; it waits for all of them.
            done: Called once: with the outputs of the kernel, or with an exception.
            cancellation: Ends the waiting.
        """
        with self._lock:
            waiter = self._placed_line.add(done, cancellation, tuple(places))
            served = self._serve_placed()
        waiter.watch()
        for other, result in served:
            other.answer(result)

    def set_step(self, step: int) -> None:
        """Set the step behind which gradients are dropped."""
        with self._lock:
            self._step = step

    def reset(self) -> None:
        """Drop everything, and fail all that wait."""
        with self._lock:
            self._step = 0
            self._taken = -1
        self.close(CancelledError(f"accumulator {self.name!r} was reset"))

    def close(self, reason: BaseException) -> None:
        """Drop the gradients, and fail all that wait, with ``reason``."""
        with self._lock:
            self.count = 0
            self._clear()
            self._placed.clear()
            waiters = self._line.clear() + self._placed_line.clear()
        for waiter in waiters:
            waiter.answer(reason)

    def _serve(self) -> list[tuple[Any, Any]]:
        """Return who gets what, under the lock: the first, if there is enough for it."""
        first = self._line.first()
        if first is None or not self.count or self.count < first.wanted:
            return []
        self._line.pop()
        result = self.result()
        self.count = 0
        self._step += 1
        self._clear()
        return [(first, result)]

    def _serve_placed(self) -> list[tuple[Any, Any]]:
        """Return who gets what, under the lock: the first, if all of its gradients are there."""
        first = self._placed_line.first()
        if first is None or not all(place in self._placed for place in first.wanted):
            return []
        self._placed_line.pop()
        result: Any
        try:
            result = self._reduced([self._placed[place] for place in first.wanted])
        except Exception as error:
            result = error
        self._taken = max(self._taken, *first.wanted)
        self._placed = {p: g for p, g in self._placed.items() if p > self._taken}
        return [(first, result)]

    def _reduced(self, gradients: Sequence[Any]) -> Any:
        """Return the mean or sum of gradients, added up in their order."""
        fresh = type(self)(self.name, self.dtype, self.shape, "MEAN" if self.mean else "SUM")
        for gradient in gradients:
            fresh.add(gradient)
            fresh.count += 1
        return fresh.result()

    @abc.abstractmethod
    def _kept(self, gradient: Any) -> Any:
        """Return a checked gradient that nobody else will change."""

    @abc.abstractmethod
    def add(self, gradient: Any) -> None:
        """Add a gradient to the sum."""

    @abc.abstractmethod
    def result(self) -> Any:
        """Return the sum, or the mean, as the outputs of a kernel."""

    @abc.abstractmethod
    def _clear(self) -> None:
        """Forget the sum."""


@final
class ConditionalAccumulator(Accumulator):
    """A sum of dense gradients."""

    _sum: Any = None

    def _check(self, gradient: Any) -> None:
        if gradient.dtype != self.dtype.numpy:
            raise DTypeError(f"accumulator {self.name!r} is {self.dtype}, got {gradient.dtype}")
        known = self._sum
        expected = self.shape if known is None else Shape(known.shape)
        if not expected.is_compatible_with(gradient.shape):
            raise ShapeError(
                f"accumulator {self.name!r} takes gradients of shape {expected}, got "
                f"{list(gradient.shape)}"
            )

    def _kept(self, gradient: Any) -> Any:
        self._check(gradient)
        return gradient.copy()

    def add(self, gradient: Any) -> None:
        """Add a gradient to the sum."""
        self._check(gradient)
        # A copy: what is fed belongs to the caller.
        self._sum = gradient.copy() if self._sum is None else self._sum + gradient

    def result(self) -> Any:
        """Return the sum, or the mean, as the outputs of a kernel."""
        return self._sum / self._sum.dtype.type(self.count) if self.mean else self._sum

    def _clear(self) -> None:
        self._sum = None


@final
class SparseConditionalAccumulator(Accumulator):
    """A sum of row-sparse gradients: each row is averaged over the gradients that have it."""

    _indices: Any = None
    _values: Any = None
    _counts: Any = None

    def _check(self, indices: Any, values: Any, shape: Any) -> None:
        label = f"accumulator {self.name!r}"
        if values.dtype != self.dtype.numpy:
            raise DTypeError(f"{label} is {self.dtype}, got {values.dtype}")
        if indices.ndim != 1 or values.ndim < 1 or len(indices) != len(values):
            raise ShapeError(
                f"{label} takes rows [n, ...] and as many indices [n], got {list(values.shape)} "
                f"and {list(indices.shape)}"
            )
        dense = Shape([int(n) if n >= 0 else None for n in shape]) if len(shape) else Shape(None)
        rows = Shape([None, *values.shape[1:]])
        known = None if self._values is None else Shape([None, *self._values.shape[1:]])
        # The accumulator's own shape is that of the first axes.
        whole = (self.shape, known if known is not None else Shape(None))
        for expected, to in zip(whole, (self.shape.rank, None), strict=True):
            for found in (dense, rows):
                part = found if found.rank is None else found[:to]
                if not expected.is_compatible_with(part):
                    raise ShapeError(
                        f"{label} takes gradients of shape {expected}, got rows of "
                        f"{list(values.shape[1:])} for shape {dense}"
                    )
        limits = [s.dims[0] for s in (self.shape, dense) if s.dims and s.dims[0] is not None]
        if len(indices) and (indices.min() < 0 or (limits and indices.max() >= min(limits))):
            raise ShapeError(
                f"{label} has rows 0 to {min(limits) - 1 if limits else '...'}, got the indices "
                f"{indices.min()} to {indices.max()}"
            )

    def _kept(self, gradient: Any) -> Any:
        self._check(*gradient)
        return tuple(part.copy() for part in gradient)

    def add(self, gradient: tuple[Any, Any, Any]) -> None:
        """Add a gradient to the sum."""
        self._check(*gradient)
        indices, values, _ = gradient
        if self._values is None:
            self._indices, self._values = indices.copy(), values.copy()
            self._counts = np.ones(len(indices), np.int64)
            return
        # Where rows have an order, equal ones meet; others follow, as they come.
        places, mine, theirs = _merged(self._indices, indices)
        merged = np.zeros((len(places), *self._values.shape[1:]), self._values.dtype)
        counts = np.zeros(len(places), np.int64)
        merged[mine] += self._values
        counts[mine] += self._counts
        merged[theirs] += values
        counts[theirs] += 1
        self._indices, self._values, self._counts = places, merged, counts

    def result(self) -> Any:
        """Return the sum, or the mean, as the outputs of a kernel."""
        values = self._values
        if self.mean:
            counts = self._counts.reshape(-1, *[1] * (values.ndim - 1))
            values = values / counts.astype(values.dtype)
        known = self.shape.dims or ()
        known += (None,) * (values.ndim - len(known))
        sizes = (None, *values.shape[1:])
        shape = [
            known_size if known_size is not None else -1 if size is None else size
            for known_size, size in zip(known, sizes, strict=True)
        ]
        return self._indices, values, np.array(shape, np.int64)

    def _clear(self) -> None:
        self._indices = self._values = self._counts = None


def _merged(mine: Any, theirs: Any) -> tuple[Any, Any, Any]:
    """Merge two lists of indices.

    Returns:
        The merged list, and the place in it of each of both.
    """
    if np.all(mine[1:] > mine[:-1]) and np.all(theirs[1:] > theirs[:-1]):
        both = np.union1d(mine, theirs)
        return both, np.searchsorted(both, mine), np.searchsorted(both, theirs)
    merged: list[int] = []
    places: tuple[list[int], list[int]] = ([], [])
    i = j = 0
    while i < len(mine) or j < len(theirs):
        left = i < len(mine) and (j == len(theirs) or mine[i] <= theirs[j])
        right = j < len(theirs) and (i == len(mine) or theirs[j] <= mine[i])
        merged.append(mine[i] if left else theirs[j])
        if left:
            places[0].append(len(merged) - 1)
            i += 1
        if right:
            places[1].append(len(merged) - 1)
            j += 1
    return np.array(merged, np.int64), np.array(places[0], int), np.array(places[1], int)
