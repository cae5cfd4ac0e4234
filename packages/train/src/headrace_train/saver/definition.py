"""``SaverDef``: what a graph says of its saver to those who load it."""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError, UnimplementedError, shown
from headrace_io import protos
from headrace_train.saver.graph import Names

V1, V2 = 1, 2


def check_version(write_version: Any) -> None:
    """Refuse what is no version of checkpoints.

    Raises:
        AttributeValueError: if it is none of ``SaverDef.V1`` and ``SaverDef.V2``.
    """
    if not isinstance(write_version, int) or write_version not in (V1, V2):
        raise AttributeValueError(
            f"write_version must be SaverDef.V1 or SaverDef.V2, got {shown(write_version)}"
        )


def check_builder(builder: Any) -> None:
    """Refuse a builder.

    Raises:
        UnimplementedError: if there is one.
    """
    if builder is not None:
        raise UnimplementedError(
            f"a Saver adds its ops itself, and takes no builder, got {shown(builder)}; to save "
            "other state, put a Saveable into the collection SAVEABLE_OBJECTS"
        )


def check_definition(saver_def: Any) -> None:
    """Refuse what is no ``SaverDef`` of a graph.

    Raises:
        AttributeValueError: if it is something else, or names no nodes.
    """
    if not isinstance(saver_def, protos.SaverDef):
        raise AttributeValueError(f"saver_def must be a SaverDef, got {shown(saver_def)}")
    for field in ("save_tensor_name", "restore_op_name"):
        if not getattr(saver_def, field):
            raise AttributeValueError(f"saver_def must specify the {field}, got {saver_def!s:.80}")


def scoped(saver_def: Any, scope: str) -> Any:
    """Return a definition with a name scope before its names."""
    return _renamed(saver_def, lambda name: f"{scope.rstrip('/')}/{name}")


def unscoped(saver_def: Any, scope: str) -> Any:
    """Return a definition without a name scope before its names, None if one is not in it."""
    names = names_of(saver_def)
    if not all(name.startswith(scope) for name in (names.filename, names.save, names.restore)):
        return None
    prefix = scope.rstrip("/") + "/"
    return _renamed(saver_def, lambda name: name.removeprefix(prefix))


def names_of(saver_def: Any) -> Names:
    """Return the names of the nodes of a definition."""
    return Names(
        saver_def.filename_tensor_name, saver_def.save_tensor_name, saver_def.restore_op_name
    )


def _renamed(saver_def: Any, rename: Any) -> Any:
    made = type(saver_def)()
    made.CopyFrom(saver_def)
    for field in ("filename_tensor_name", "save_tensor_name", "restore_op_name"):
        setattr(made, field, rename(getattr(saver_def, field)))
    return made
