"""Settings in the form of TensorFlow's protocol messages: named fields of fixed types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from headrace.errors import ConfigError, shown


class Message:
    """A group of settings. A subclass states its fields with their defaults in ``FIELDS``.

    As in a protocol message, a field keeps its type, numbers of whole value count as floats, and a
    field that does not exist is an error.
    """

    FIELDS: ClassVar[dict[str, Any]] = {}

    def __init__(self, **values: Any) -> None:
        """Set fields.

        Args:
            **values: Fields of the message by name.

        Raises:
            ConfigError: if there is no such field, or a value is of another type.
        """
        for name, default in self.FIELDS.items():
            made = default() if isinstance(default, type) else default
            object.__setattr__(self, name, made.copy() if isinstance(made, dict | list) else made)
        for name, value in values.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        kind = type(self).__name__
        if name not in self.FIELDS:
            raise ConfigError(f"{kind} has no field {name!r}; it has {', '.join(self.FIELDS)}")
        wanted = type(getattr(self, name))
        if wanted is float and type(value) is int:
            value = float(value)
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            raise ConfigError(
                f"{name} of {kind} must be of type {wanted.__name__}, got {shown(value)}"
            )
        object.__setattr__(self, name, value)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def HasField(self, field_name: str) -> bool:  # noqa: N802 - as protocol messages call it
        """Return whether a field has another value than its default.

        Args:
            field_name: Its name.

        Raises:
            ConfigError: if there is no such field.
        """
        if field_name not in self.FIELDS:
            raise ConfigError(f"{type(self).__name__} has no field {shown(field_name)}")
        return field_name in self.changed()

    def changed(self) -> dict[str, Any]:
        """Return the fields that do not have their default."""
        fresh = type(self)()
        values = {name: getattr(self, name) for name in self.FIELDS}
        return {name: value for name, value in values.items() if value != getattr(fresh, name)}

    def refuse(self, *names: str) -> None:
        """Refuse fields that would ask for what Headrace does not have.

        Raises:
            ConfigError: if one of them was set.
        """
        for name in names:
            if name in self.changed():
                raise ConfigError(
                    f"{type(self).__name__}.{name} asks for what Headrace does not have; leave it "
                    "out. hr.Config tells what can be set"
                )

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and all(
            getattr(self, name) == getattr(other, name) for name in self.FIELDS
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.changed().items())
        return f"{type(self).__name__}({given})"
