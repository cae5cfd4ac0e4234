"""The form of seeds: a call that is right, with makers in the places of arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headrace import as_dtype
from headrace_testing.inputs import Input, uniform


@dataclass(frozen=True, slots=True, eq=False)
class Seed:
    """A call.

    Attributes:
        name: The function under ``headrace``, as in ``"nn.bias_add"``.
        args: Its arguments by position.
        kwargs: Its arguments by name.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def seed(name: str, *args: Any, **kwargs: Any) -> Seed:
    """Return a call of a function under ``headrace``."""
    return Seed(name, args, kwargs)


def real(*shape: int, dtype: str = "float32") -> Input:
    """Make floating or complex numbers from -2 to 2."""
    plain = uniform(shape, -2, 2)
    return Input(plain.text, plain.fill, as_dtype(dtype))
