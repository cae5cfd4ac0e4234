"""What cells were made with, as plain values, and cells that are made of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any

from headrace.arguments import mapping
from headrace.errors import ArgumentTypeError, AttributeValueError, shown
from headrace.ops import initializers

if TYPE_CHECKING:
    from headrace.ops.rnn_base import RNNCell

_SUFFIX = "_initializer"
# Of these a cell says itself what they are.
_OWN = ("name", "trainable", "dtype")


def config_of(
    cell: RNNCell,
    given: tuple[tuple[Any, ...], dict[str, Any]],
    activations: Mapping[str, Callable[..., Any]],
) -> dict[str, Any]:
    """Return the arguments that a cell was made with, those left out at their defaults.

    Activations are their names, cells and initializers the name of their class and what they were
    made with. Functions of the program stay what they are.

    Args:
        cell: The cell.
        given: The arguments.
        activations: The known activations by name; the first stands for None.
    """
    bound = signature(type(cell).__init__).bind(cell, *given[0], **given[1])
    bound.apply_defaults()
    found: dict[str, Any] = {
        "name": cell.name,
        "trainable": cell.trainable,
        "dtype": None if cell.dtype is None else cell.dtype.name,
    }
    kinds = {name: param.kind for name, param in bound.signature.parameters.items()}
    for name, value in list(bound.arguments.items())[1:]:
        if kinds[name] in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD) or name in _OWN:
            continue
        found[name] = _plain(value, activations)
        if name == "activation" and value is None:
            found[name] = "tanh"
    return found


def _plain(value: Any, activations: Mapping[str, Callable[..., Any]]) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item, activations) for item in value]
    for name, activation in activations.items():
        if value is activation:
            return name
    if hasattr(value, "get_config"):
        return {"class_name": _class_name(type(value)), "config": value.get_config()}
    return value


def _class_name(kind: type) -> str:
    """Return the name of a class as TensorFlow writes it: ``Ones`` for ``ones_initializer``."""
    name = kind.__name__
    if not name.endswith(_SUFFIX):
        return name
    return "".join(word.capitalize() for word in name.removesuffix(_SUFFIX).split("_"))


def arguments_of(
    kind: type[RNNCell], config: Any, cells: Mapping[str, type[RNNCell]]
) -> dict[str, Any]:
    """Return the arguments that ``config_of`` wrote, to make a cell with.

    Args:
        kind: The class of the cell. A name, a dtype and whether it is trained are left out where
            its cells take none.
        config: What was written.
        cells: The classes of cells by name.

    Raises:
        ArgumentTypeError: if it is no dict.
        AttributeValueError: if it names a class that there is not.
    """
    if config is None:
        raise ArgumentTypeError("config must be a dict, got None")
    params = signature(kind.__init__).parameters
    any_name = any(param.kind is Parameter.VAR_KEYWORD for param in params.values())
    return {
        name: _made(value, cells)
        for name, value in mapping(config, "config").items()
        if any_name or name in params or name not in _OWN
    }


def _made(value: Any, cells: Mapping[str, type[RNNCell]]) -> Any:
    if isinstance(value, list):
        return [_made(item, cells) for item in value]
    if not (isinstance(value, Mapping) and value.keys() == {"class_name", "config"}):
        return value
    known: dict[str, Any] = {
        _class_name(kind): kind
        for name, kind in vars(initializers).items()
        if name.endswith(_SUFFIX) and isinstance(kind, type)
    }
    known |= cells
    name, config = value["class_name"], value["config"]
    if name not in known:
        raise AttributeValueError(
            f"there is no class {shown(name)} of cells or initializers; there are "
            f"{', '.join(sorted(known))}"
        )
    kind = known[name]
    return kind.from_config(config) if hasattr(kind, "from_config") else kind(**config)
