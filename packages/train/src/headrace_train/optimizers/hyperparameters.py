"""Hyperparameters: numbers, tensors, or functions that return such."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, final

import headrace as hr
from headrace import DType, Tensor, Variable
from headrace.errors import AttributeValueError, shown, told
from headrace.extend.arguments import mapping, real

# A number, a scalar tensor or variable, or a function of no arguments that returns one of these
# and is called each time that updates are built.
Hyperparameter: TypeAlias = float | Tensor | Variable | Callable[[], Any]


@final
class Hyperparameters:
    """The hyperparameters of an optimizer, as given and as they are while updates are built."""

    def __init__(self, owner: str, given: Mapping[str, Hyperparameter] | None) -> None:
        """Check what is no function.

        Args:
            owner: Name of the optimizer, for messages.
            given: The hyperparameters by name.

        Raises:
            AttributeValueError: if one is no number, floating scalar tensor or function.
        """
        self._owner = owner
        self._given = mapping(given, "hyperparameters")
        self._current: dict[str, Any] = {}
        for name, value in self._given.items():
            if not callable(value):
                self._check(name, value)

    def refresh(self) -> None:
        """Call those that are functions.

        Raises:
            AttributeValueError: if one returns no number or floating scalar tensor.
        """
        self._current = {k: v() if callable(v) else v for k, v in self._given.items()}
        for name, value in self._current.items():
            self._check(name, value)

    def number(self, name: str) -> float | None:
        """Return a hyperparameter that is a number, None where it is a tensor."""
        value = self._current[name]
        return None if isinstance(value, Tensor | Variable) else real(value, "a hyperparameter")

    def tensor(self, name: str, dtype: DType) -> Tensor:
        """Return a hyperparameter as a scalar tensor of ``dtype``."""
        return as_scalar(self._current[name], dtype)

    def start(self, name: str, dtype: DType) -> Tensor:
        """Return a hyperparameter for the initial value of a variable.

        One that is a variable itself is initialized before.
        """
        value = self._current[name]
        return as_scalar(value.initialized_value() if isinstance(value, Variable) else value, dtype)

    def complement(self, name: str, dtype: DType) -> Tensor:
        """Return one minus a hyperparameter, rounded as ``dtype`` rounds both.

        Where it stands against powers of the same hyperparameter, as in Adam, the errors cancel.
        """
        return 1.0 - self.tensor(name, dtype)

    def _check(self, name: str, value: Any) -> None:
        if isinstance(value, Tensor | Variable):
            fits = value.dtype.is_floating and value.shape.is_compatible_with(())
        else:
            fits = isinstance(value, int | float) or getattr(value, "shape", None) == ()
        if not fits or isinstance(value, bool):
            raise AttributeValueError(
                f"{self._owner}: {name} must be a number, a floating scalar tensor, or a function "
                f"that returns one of these, got {shown(value)}"
            )


def as_scalar(value: Any, dtype: DType) -> Tensor:
    """Return a number, tensor or variable as a tensor of ``dtype``."""
    if isinstance(value, Tensor | Variable):
        scalar: Tensor = hr.cast(value, dtype)
        return scalar
    return hr.convert_to_tensor(real(value, "a hyperparameter"), dtype)


def check_bound(
    owner: str, name: str, value: Any, fits: Callable[[float], bool], kind: str
) -> None:
    """Refuse a number that an optimizer cannot compute with.

    Args:
        owner: Name of the optimizer.
        name: Name of the hyperparameter.
        value: What was given; only numbers are compared.
        fits: Whether a number will do.
        kind: What it must be, for the message.

    Raises:
        AttributeValueError: if it does not fit.
    """
    if isinstance(value, int | float) and not fits(value):
        raise AttributeValueError(f"{told(owner)}: {name} must be {kind}, got {told(value)}")
