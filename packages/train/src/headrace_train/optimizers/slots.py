"""The state of an optimizer: variables that belong to the variables it changes."""

from __future__ import annotations

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

    def __init__(self, owner: str) -> None:
        """Start without any.

        Args:
            owner: Name of the optimizer, which becomes part of the names.
        """
        self._owner = owner
        self._slots: dict[str, dict[Variable, Variable]] = {}
        self._shared: dict[tuple[Graph, str], Variable] = {}

    def get(self, variable: Variable, name: str) -> Variable | None:
        """Return a variable's slot, None where there is none."""
        return self._slots.get(name, {}).get(variable)

    def of(self, variable: Variable, name: str) -> Variable:
        """Return a variable's slot, which was made before."""
        return self._slots[name][variable]

    def names(self) -> list[str]:
        """Return the names of the slots, sorted."""
        return sorted(self._slots)

    def zeros(self, variable: Variable, name: str, suffix: str = "") -> Variable:
        """Make a slot that starts as zeros like its variable, where there is none yet.

        Args:
            variable: The variable to which it belongs.
            name: What ``get`` knows it by.
            suffix: Follows the optimizer's name in the slot's own name, ``W/Adam/m``.
        """

        def start() -> Tensor:
            if variable.shape.is_fully_defined():
                return hr.zeros(variable.shape, variable.dtype)
            return hr.zeros_like(variable.initial_value)

        known = self.get(variable, name)
        if known is None:
            path = f"{self._owner}/{suffix}" if suffix else self._owner
            known = _beside(variable, path, start)
            self._slots.setdefault(name, {})[variable] = known
        return known

    def shared(self, first: Variable, name: str, initial_value: Callable[[], Tensor]) -> Variable:
        """Return the one variable ``name`` of a graph, made beside ``first`` if it is new."""
        key = (first.graph, name)
        known = self._shared.get(key)
        if known is None:
            with place_of(first), hr.name_scope(""):
                known = Variable(initial_value, trainable=False, name=f"{self._owner}/{name}")
            self._shared[key] = known
        return known

    def variables(self, graph: Graph) -> list[Variable]:
        """Return all variables of state in ``graph``, by name."""
        found = [slot for by_variable in self._slots.values() for slot in by_variable.values()]
        found += self._shared.values()
        return sorted((v for v in found if v.graph is graph), key=lambda v: v.op_name)


def _beside(variable: Variable, path: str, start: Callable[[], Tensor]) -> Variable:
    name = variable.graph.unique_name(f"{variable.op_name}/{path}")
    attrs: Any = variable.handle.op.attrs
    with place_of(variable):
        return Variable(
            start,
            trainable=False,
            name=f"{name}/",
            validate_shape=variable.shape.is_fully_defined(),
            # Programs that share the variable share its state.
            shared_name=attrs["shared_name"] + name.removeprefix(variable.op_name),
        )


@contextmanager
def place_of(variable: Variable) -> Iterator[None]:
    """Make state on the device and in the container of ``variable``."""
    handle = variable.handle.op
    with (
        hr.colocate_with(handle, ignore_existing=True),
        hr.container(handle.attrs["container"]),
    ):
        yield
