"""Attributes that tests put others in the places of, for a while."""

from __future__ import annotations

import inspect
from typing import Any, Self

from headrace.errors import shown


class StubOutForTesting:
    """Puts others in the places of attributes, and back; also as a context manager.

    Example:
        ::

            with hr.test.StubOutForTesting() as stubs:
                stubs.Set(os.path, "exists", lambda path: True)
    """

    def __init__(self) -> None:
        """Start with nothing changed."""
        self._set: list[tuple[Any, str, Any]] = []
        self._smart: list[tuple[Any, str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.CleanUp()

    def __del__(self) -> None:
        self.CleanUp()

    def CleanUp(self) -> None:
        """Put all back."""
        self.UnsetAll()
        self.SmartUnsetAll()

    def Set(self, parent: Any, child_name: str, new_child: Any) -> None:
        """Put something in the place of an attribute.

        Args:
            parent: A module, class or object.
            child_name: The name of the attribute.
            new_child: What takes its place.
        """
        old = inspect.getattr_static(parent, child_name)
        self._set.append((parent, child_name, old))
        wrap = type(old) if isinstance(old, staticmethod | classmethod) else None
        setattr(parent, child_name, new_child if wrap is None else wrap(new_child))

    def UnsetAll(self) -> None:
        """Put back what ``Set`` replaced, the last first."""
        for parent, name, old in reversed(self._set):
            setattr(parent, name, old)
        self._set = []

    def SmartSet(self, obj: Any, attr_name: str, new_attr: Any) -> None:
        """Put something in the place of an attribute where it is defined.

        Args:
            obj: A module, class or object; of these, the class that has the attribute is changed.
            attr_name: The name of the attribute.
            new_attr: What takes its place.

        Raises:
            AttributeError: if there is none.
        """
        holders = [obj, *(() if inspect.ismodule(obj) else inspect.getmro(_class_of(obj)))]
        for holder in holders:
            if attr_name in vars(holder):
                self._smart.append((holder, attr_name, vars(holder)[attr_name]))
                setattr(holder, attr_name, new_attr)
                return
        raise AttributeError(f"{shown(obj)} has no attribute {attr_name!r}")

    def SmartUnsetAll(self) -> None:
        """Put back what ``SmartSet`` replaced, the last first."""
        for holder, name, old in reversed(self._smart):
            setattr(holder, name, old)
        self._smart = []


def _class_of(obj: Any) -> type:
    return obj if inspect.isclass(obj) else type(obj)
