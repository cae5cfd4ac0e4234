"""The state of an optimizer: variables that belong to the variables it changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, final

import headrace as hr
from headrace import Graph, Tensor, Variable


@final
class Slots:
    """Variables of state, one per name and variable, and some per graph.

    A slot lives where its variable does: on the same device, in the same container, and under a
    name that begins with the variable's.
    """

    def __init__(self) -> None:
        """Start without any."""
        self._slots: dict[str, dict[Variable, Variable]] = {}
        self._shared: dict[tuple[str, Graph], Variable] = {}

    def get(self, variable: Variable, name: str) -> Variable | None:
        """Return a variable's slot, None where there is none."""
        return self._slots.get(name, {}).get(variable)

    def of(self, variable: Variable) -> dict[str, Variable]:
        """Return all slots of a variable, by name."""
        return {name: slots[variable] for name, slots in self._slots.items() if variable in slots}

    def by_variable(self, name: str) -> dict[Variable, Variable]:
        """Return the slots of one name; what is added to the dictionary is kept."""
        return self._slots.setdefault(name, {})

    def names(self) -> list[str]:
        """Return the names of the slots, sorted."""
        return sorted(self._slots)

    def make(
        self, variable: Variable, name: str, op_name: str, start: Callable[[], Tensor]
    ) -> Variable:
        """Return a variable's slot, made where there is none yet.

        Args:
            variable: The variable to which it belongs.
            name: What ``get`` knows it by.
            op_name: Follows the variable's name in the slot's own name: ``W/Adam``.
            start: Builds its initial value.
        """
        slots = self.by_variable(name)
        if variable not in slots:
            slots[variable] = make_beside(variable, op_name, start)
        return slots[variable]

    def shared(self, first: Variable, name: str, start: Any) -> Variable:
        """Return the one variable ``name`` of a graph, made beside ``first`` if it is new."""
        key = (name, first.graph)
        known = self._shared.get(key)
        if known is None:
            with place_of(first):
                known = Variable(start, trainable=False, name=name)
            self._shared[key] = known
        return known

    def get_shared(self, name: str, graph: Graph) -> Variable | None:
        """Return the one variable ``name`` of a graph, None where there is none."""
        return self._shared.get((name, graph))

    def all_shared(self, graph: Graph) -> dict[str, Variable]:
        """Return the variables that a graph has one of, by name."""
        found = {name: v for (name, of), v in self._shared.items() if of is graph}
        return dict(sorted(found.items()))

    def variables(self, graph: Graph) -> list[Variable]:
        """Return all variables of state in ``graph``, by name."""
        found = [slot for slots in self._slots.values() for slot in slots.values()]
        found += self._shared.values()
        return sorted((v for v in found if v.graph is graph), key=lambda v: v.op_name)


def zeros_of(variable: Variable) -> Tensor:
    """Return zeros like the initial value of a variable."""
    if variable.shape.is_fully_defined():
        return hr.zeros(variable.shape.plain, variable.dtype)
    return hr.zeros_like(variable.initial_value)


def ones_of(variable: Variable) -> Tensor:
    """Return ones like the initial value of a variable."""
    if variable.shape.is_fully_defined():
        return hr.ones(variable.shape.plain, variable.dtype)
    return hr.ones_like(variable.initial_value)


def make_beside(variable: Variable, op_name: str, start: Callable[[], Tensor]) -> Variable:
    """Make a variable of state that belongs to another one.

    Args:
        variable: The variable to which it belongs.
        op_name: Follows the variable's name in its own. Both follow the variable scope in force.
        start: Builds its initial value.
    """
    prefix = scope_prefix()
    name = variable.graph.unique_full_name(f"{prefix}{variable.op_name}/{op_name}")
    attrs: Any = variable.handle.op.attrs
    suffix = name.removeprefix(prefix).removeprefix(variable.op_name)
    with place_of(variable):
        slot = Variable(
            start,
            trainable=False,
            name=f"{name}/",
            validate_shape=variable.shape.is_fully_defined(),
            # Programs that share the variable share its state.
            shared_name=f"{prefix}{attrs['shared_name']}{suffix}",
        )
    part = variable.save_slice_info
    if part is not None and slot.shape == variable.shape:
        # In checkpoints the slots of all parts are one, too, beside the whole.
        slot.save_slice_info = dataclasses.replace(part, full_name=f"{part.full_name}{suffix}")
    return slot


def scope_prefix() -> str:
    """Return what the variable scope in force puts before names."""
    scope = hr.get_variable_scope().name
    return f"{scope}/" if scope else ""


@contextmanager
def place_of(variable: Variable) -> Iterator[None]:
    """Make state on the device and in the container of ``variable``."""
    handle = variable.handle.op
    with (
        hr.colocate_with(handle, ignore_existing=True),
        hr.container(handle.attrs["container"]),
    ):
        yield
