"""What TensorFlow's ops take and return.

The table beside it was written from TensorFlow 1.15.5 by ``tools/tensorflow_ops.py``, which says
how its lines are to be read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, final

_REQUIRED = object()


@final
@dataclass(frozen=True, slots=True)
class Argument:
    """An input or output of an op.

    Attributes:
        name: What functions call it.
        dtype: The name of a dtype, or of the attribute that holds it; of the attribute with the
            dtypes where ``typed``.
        number: The attribute with the number of tensors, empty where it is one.
        typed: Whether it is a list of tensors of several dtypes.
        reference: Whether it is a reference to a variable.
    """

    name: str
    dtype: str
    number: str = ""
    typed: bool = False
    reference: bool = False

    @property
    def listed(self) -> bool:
        """Whether it is a list of tensors."""
        return self.typed or bool(self.number)


@final
@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of an op that is not found from its inputs.

    Attributes:
        name: What functions call it.
        own: What the op calls it.
        kind: Its type: ``int``, ``list(shape)``, ....
        default: Its default as JSON has it.
    """

    name: str
    own: str
    kind: str
    default: Any = _REQUIRED

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is _REQUIRED


@final
@dataclass(frozen=True, slots=True)
class Signature:
    """What an op takes and returns.

    Attributes:
        op: Its type.
        parameters: Inputs and attributes, in the order of TensorFlow's functions.
        outputs: Its outputs.
        defaults: The dtypes that attributes of inputs have by default, by attribute.
    """

    op: str
    parameters: tuple[Argument | Attribute, ...]
    outputs: tuple[Argument, ...]
    defaults: dict[str, str]

    @property
    def inputs(self) -> list[Argument]:
        """Its inputs, in the order of the functions."""
        return [one for one in self.parameters if isinstance(one, Argument)]


@cache
def _lines() -> dict[str, list[str]]:
    text = files(__package__).joinpath("ops.txt").read_text(encoding="utf-8")
    split = (line.split("\t") for line in text.splitlines())
    return {name: rest for name, *rest in split}


def known() -> frozenset[str]:
    """Return the types of all ops of TensorFlow 1.15."""
    return frozenset(_lines())


@cache
def signature(op: str) -> Signature:
    """Return the signature of an op that is known."""
    given, made, defaults = (*_lines()[op], "", "", "")[:3]
    return Signature(
        op,
        tuple(map(_parameter, given.split())),
        tuple(map(_argument, made.split())),
        dict(word.split("=") for word in defaults.split()),
    )


def _parameter(word: str) -> Argument | Attribute:
    names, found, kind = word.partition("@")
    if not found:
        return _argument(word)
    name, _, own = names.partition("/")
    kind, given, default = kind.partition("=")
    if not given:
        return Attribute(name, own or name, kind)
    return Attribute(name, own or name, kind, json.loads(default))


def _argument(word: str) -> Argument:
    names, _, kind = word.partition(":")
    number, starred, dtype = kind.rpartition("*")
    reference = dtype.startswith("&")
    return Argument(
        names.partition("/")[0],
        dtype.removeprefix("&"),
        number,
        typed=bool(starred) and not number,
        reference=reference,
    )
