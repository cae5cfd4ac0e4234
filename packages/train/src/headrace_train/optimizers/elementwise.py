"""Optimizers whose update goes element by element, from one rule for whole variables and rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import final

import headrace as hr
from headrace import IndexedSlices, Operation, Tensor, Variable
from headrace.errors import UnimplementedError
from headrace_train.optimizers.optimizer import Optimizer

# A gradient of all rows is made of those of some where there are so many rows for each of them, and
# for tables of so many elements.
_MOST_IDLE, _SMALL = 4, 1 << 12
_IDLE = "_idle_step"


@dataclass(frozen=True)
class Step:
    """What an update makes of elements: one of ``change`` and ``value``, and the new state.

    Attributes:
        change: What to subtract from the variable. Concurrent steps lose none of it where the
            gradient is dense.
        value: What the variable becomes.
        slots: The new values of slots, by name; slots that are not listed stay.
    """

    change: Tensor | None = None
    value: Tensor | None = None
    slots: Mapping[str, Tensor] = field(default_factory=dict)


@final
class Elements:
    """Elements before an update: all of a variable and of its slots, or those of some rows.

    They are read when they are first asked for, and only then.
    """

    def __init__(
        self,
        variable: Variable,
        slots: Mapping[str, Variable],
        read: Callable[[Variable], Tensor],
        value: Tensor | None = None,
    ) -> None:
        """Choose what to read.

        Args:
            variable: The variable.
            slots: Its slots by name.
            read: Reads the elements of one of these.
            value: The variable's elements, where they are known.
        """
        self.variable = variable
        self._slots = slots
        self._read = read
        self._value = value
        self._known: dict[str, Tensor] = {}

    @property
    def value(self) -> Tensor:
        """The elements of the variable."""
        if self._value is None:
            self._value = self._read(self.variable)
        return self._value

    def __getitem__(self, slot: str) -> Tensor:
        """Return the elements of a slot."""
        if slot not in self._known:
            self._known[slot] = self._read(self._slots[slot])
        return self._known[slot]

    def with_value(self, value: Tensor) -> Elements:
        """Return the same elements with another value of the variable."""
        other = Elements(self.variable, self._slots, self._read, value)
        # What one of them reads the other one need not read again.
        other._known = self._known
        return other


class ElementwiseOptimizer(Optimizer, ABC):
    """An optimizer that computes each element from its gradient, its value and its state.

    A subclass makes its slots in ``_create_slots`` and implements ``_step``, which works on whole
    variables and on some rows alike::

        class Signum(hr.train.ElementwiseOptimizer):
            def __init__(self, learning_rate, beta=0.9, name="Signum"):
                super().__init__(False, name, {"learning_rate": learning_rate, "beta": beta})

            def _create_slots(self, var_list):
                for variable in var_list:
                    self._zeros_slot(variable, "average", self._name)

            def _step(self, grad, old):
                rate = self._hyperparameter("learning_rate", grad.dtype)
                beta = self._hyperparameter("beta", grad.dtype)
                average = beta * old["average"] + (1 - beta) * grad
                return hr.train.Step(change=rate * hr.sign(average), slots={"average": average})

    The update of a dense gradient is one pass over variable, slots and gradient. A row-sparse
    gradient reads and writes the rows that it names only, with the sums of the gradients of rows
    that are named several times, unless the class says with ``_idle_rows_move`` that elements move
    without a gradient, too.
    """

    # Whether elements change though their gradient is zero, by what is in their state.
    _idle_rows_move = False
    # Whether the changes by several gradients of one element add up to that by their sum.
    _adds_up = False

    @abstractmethod
    def _step(self, grad: Tensor, old: Elements) -> Step:
        """Build the new elements.

        Args:
            grad: The gradient, of the shape of the elements.
            old: The elements before the step: ``old.value``, and ``old[name]`` for each slot.
        """
        raise UnimplementedError(f"{type(self).__name__} has no _step(grad, old)")

    def _idle_step(self, grad: Tensor, old: Elements) -> Step:
        """Build the new elements where a row-sparse gradient is zero, as ``grad``, a scalar, is."""
        return self._step(grad, old)

    def _apply_dense(self, grad: Tensor, var: Variable) -> Operation:
        return self._write(var, self._step(grad, self._elements(var)))

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Variable) -> Operation:
        rows = grad.indices
        if self._adds_up:
            step = self._step(grad.values, self._elements(var, rows))
            assert step.change is not None
            return hr.scatter_sub(var, rows, step.change).op
        if self._takes_whole(rows, var):
            whole = hr.scatter_nd(hr.expand_dims(rows, 1), grad.values, var.shape.known)
            return self._write(var, self._step(whole, self._elements(var)))
        # Every entry gets the sum of its row, so that no shape depends on how many rows there are
        # and one compiled program does for all steps. Entries of one row write the same.
        entries = hr.unique(rows)[1]
        summed = hr.unsorted_segment_sum(grad.values, entries, hr.size(rows))
        old = self._elements(var, rows)
        new = self._step(hr.gather(summed, entries), old)
        value = old.value - new.change if new.value is None else new.value
        before: list[Operation] = []
        if self._idle_rows_move:
            with hr.control_dependencies([value, *new.slots.values()]):
                zero = hr.zeros([], grad.dtype)
                before.append(self._write(var, self._idle_step(zero, self._elements(var))))
        with hr.control_dependencies(before):
            slots = self._state.of(var)
            writes = [hr.scatter_update(slots[k], rows, v) for k, v in new.slots.items()]
            return hr.group(*writes, hr.scatter_update(var, rows, value))

    @final
    def _takes_whole(self, rows: Tensor, var: Variable) -> bool:
        """Whether rows are best updated with all others, which move, too, and are not many more.

        The formula goes by element, so that the bits are those of rows by themselves.
        """
        if not self._idle_rows_move or not var.shape.is_fully_defined():
            return False
        own = [getattr(kind, _IDLE) for kind in (type(self), ElementwiseOptimizer)]
        if own[0] is not own[1]:
            return False
        height, named = var.shape.known[0], rows.shape.num_elements()
        few = named is not None and height <= _MOST_IDLE * named
        return few or prod(var.shape.known) <= _SMALL

    @final
    def _elements(self, var: Variable, rows: Tensor | None = None) -> Elements:
        """Return all elements of a variable and its slots, or those of some rows."""

        def read(variable: Variable) -> Tensor:
            whole = variable.value()
            return whole if rows is None else hr.gather(whole, rows)

        return Elements(var, self._state.of(var), read)

    @final
    def _write(self, var: Variable, step: Step) -> Operation:
        """Build the writes of a step of all elements."""
        slots = self._state.of(var)
        writes = [slots[name].assign(value) for name, value in step.slots.items()]
        if step.value is not None:
            writes.append(var.assign(step.value))
        else:
            writes.append(hr.assign_sub(var, step.change))
        return hr.group(*writes) if len(writes) > 1 else writes[0].op
