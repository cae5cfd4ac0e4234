"""Options of devices: what a session may ask of a kind of devices, beside what goes for all.

Whoever provides a kind of devices declares them with it. ``Config(device_options={"cpu": {...}})``
gives them, and kernels and compilers of that kind read them; core knows none of their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Any

from headrace.errors import ConfigError, shown, told
from headrace.records import dataclass
from headrace.settings import nearest

if TYPE_CHECKING:
    from headrace.plugins.registries.devices import DeviceKind, DeviceRegistry

# Makes a context that is entered once.
Around = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class DeviceOption:
    """An option of a kind of devices.

    Attributes:
        name: A Python identifier.
        default: Its value where a session does not say.
        accepts: Whether a value will do. Values are numbers, strings, booleans and None, which can
            be sent to other tasks.
        expected: What messages say of values that will do, as in ``"True or False"``.
        doc: What it is for.
        shorthand: Whether ``Config(name=...)`` gives it, too.
        around: Returns, for a value, what makes the context in which a thread plans and runs steps
            of a session that gives it; None where none is needed. It raises ``ConfigError`` where
            the machine cannot do what the value asks for. None for options that ask for none.
    """

    name: str
    default: Any
    accepts: Callable[[Any], bool]
    expected: str
    doc: str
    shorthand: bool = False
    around: Callable[[Any], Around | None] | None = None

    def read(self, given: Mapping[str, Any]) -> Any:
        """Return its value among those that a session gave for the kind."""
        return given.get(self.name, self.default)


def switch_option(name: str, default: bool, doc: str, *, shorthand: bool = False) -> DeviceOption:
    """Return an option that is True or False."""
    return DeviceOption(
        name, default, lambda v: isinstance(v, bool), "True or False", doc, shorthand
    )


def whole_number_option(name: str, doc: str, *, least: int = 1) -> DeviceOption:
    """Return an option that is a whole number, or None for what follows from other settings."""
    return DeviceOption(
        name,
        None,
        lambda v: v is None or (type(v) is int and v >= least),
        f"a whole number of at least {least}, or None",
        doc,
    )


def checked(
    given: Mapping[str, Mapping[str, Any]],
    shorthands: Mapping[str, Any],
    kinds: DeviceRegistry,
    others: Sequence[str],
) -> dict[str, dict[str, Any]]:
    """Return the options of devices that a program gives, by kind.

    Args:
        given: What it gives by kind.
        shorthands: What it gives by name alone.
        kinds: All kinds.
        others: What else a program may give, to tell what was meant.

    Raises:
        ConfigError: if there is no such kind or option, or it does not take the value.
    """
    if not isinstance(given, Mapping):
        raise ConfigError(
            "device_options must be a dictionary of options for each kind of devices, as in "
            f'{{"cpu": {{"threads": 2}}}}, got {shown(given)}'
        )
    known = {kind.name: kind for kind in kinds}
    found: dict[str, dict[str, Any]] = {}
    for name, options in given.items():
        kind = known.get(name)
        if kind is None:
            raise ConfigError(
                f"device_options: there is no kind of devices {shown(name)}"
                + _meant(told(name), list(known))
            )
        if not isinstance(options, Mapping):
            raise ConfigError(
                f"device_options[{shown(name)}] must be a dictionary, got {shown(options)}"
            )
        found[name] = {key: _value(kind, key, value) for key, value in options.items()}
    for key, value in shorthands.items():
        owners = [kind for kind in known.values() if key in _short([kind])]
        if not owners:
            raise ConfigError(
                f"Config has no setting {key!r}" + _meant(key, [*_short(known.values()), *others])
            )
        for kind in owners:
            own = found.setdefault(kind.name, {})
            if key in own and own[key] != value:
                raise ConfigError(
                    f"{key}={value!r} contradicts device_options[{kind.name!r}], which has "
                    f"{own[key]!r}; give one of them"
                )
            own[key] = _value(kind, key, value)
    return found


def surroundings(
    given: Mapping[str, Mapping[str, Any]], kinds: Iterable[DeviceKind]
) -> tuple[Around, ...]:
    """Return what makes the contexts in which steps of a session are planned and run.

    Args:
        given: The options that the session gives, by kind.
        kinds: All kinds.

    Raises:
        ConfigError: if the machine cannot do what an option asks for.
    """
    found = (
        option.around(option.read(given.get(kind.name, {})))
        for kind in kinds
        for option in kind.options
        if option.around is not None
    )
    return tuple(around for around in found if around is not None)


def within(surroundings: Iterable[Around]) -> AbstractContextManager[Any]:
    """Return the context that is all of these."""
    stack = ExitStack()
    for around in surroundings:
        stack.enter_context(around())
    return stack


def _short(kinds: Iterable[DeviceKind]) -> list[str]:
    return [o.name for kind in kinds for o in kind.options if o.shorthand]


def _value(kind: DeviceKind, name: str, value: Any) -> Any:
    option = next((o for o in kind.options if o.name == name), None)
    if option is None:
        raise ConfigError(
            f"devices of the kind {kind.name!r} have no option {name!r}"
            + _meant(str(name), [o.name for o in kind.options])
        )
    if not option.accepts(value):
        raise ConfigError(f"{name} must be {option.expected}, got {shown(value)}")
    if option.around is not None:
        option.around(value)
    return value


def _meant(name: str, known: list[str]) -> str:
    near = nearest(name, known, alike=0.6)
    if near:
        return f"; did you mean {near!r}?"
    return f"; there are {', '.join(sorted(known))}" if known else "; there are none"
