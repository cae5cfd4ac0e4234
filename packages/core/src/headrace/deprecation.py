"""Deprecation of names: they work for some releases more, and warn what replaces them.

The policy is told in ``docs/compatibility.md``. Packages of others use the same functions, through
``headrace.extend.deprecation``, with their own name and version numbers.
"""

from __future__ import annotations

import functools
import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])

# For how many releases, counted by the second number of the version, a deprecated name still works.
RELEASES = 2


@dataclass(frozen=True)
class Deprecation:
    """A name that goes away.

    Attributes:
        name: What users write, with its module.
        instead: What they should write, or a sentence if there is no such name.
        since: The release that deprecates it, such as ``"0.2"``.
        package: The distribution whose releases are meant.
    """

    name: str
    instead: str
    since: str
    package: str = "headrace"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"\d+\.\d+", self.since):
            raise ValueError(
                f"deprecation of {self.name}: since={self.since!r}; expected the first two numbers "
                "of a version, such as '0.2'"
            )

    @property
    def removed_in(self) -> str:
        """The first release without the name."""
        major, minor = self.since.split(".")
        return f"{major}.{int(minor) + RELEASES}"

    @property
    def message(self) -> str:
        """The text of the warning."""
        instead = self.instead if " " in self.instead else f"use {self.instead}"
        return (
            f"{self.name} is deprecated since {self.package} {self.since} and goes away in "
            f"{self.removed_in}: {instead}"
        )

    def overdue(self, version: str) -> bool:
        """Whether a release should no longer have the name.

        Args:
            version: the release's number, such as ``"0.4.0"`` or ``"0.4.0rc1"``.
        """
        return _numbers(version) >= _numbers(self.removed_in)

    def warn(self, stacklevel: int = 3) -> None:
        """Warn about the use of the name.

        Args:
            stacklevel: as ``warnings.warn`` takes it; 3 is who called the caller of this method.
        """
        warnings.warn(self.message, DeprecationWarning, stacklevel=stacklevel)


# All deprecations of the modules that are imported, in the order of their declarations.
DEPRECATIONS: list[Deprecation] = []


def _numbers(version: str) -> tuple[int, int]:
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def _declare(name: str, instead: str, since: str, package: str) -> Deprecation:
    deprecation = Deprecation(name, instead, since, package)
    if deprecation not in DEPRECATIONS:
        DEPRECATIONS.append(deprecation)
    return deprecation


def deprecated(
    name: str, *, instead: str, since: str, package: str = "headrace"
) -> Callable[[T], T]:
    """Let a function or class warn where it is called.

    ::

        @deprecated("hr.old", instead="hr.new", since="0.2")
        def old(x: TensorLike) -> Tensor:
            return new(x)

        old = deprecated("hr.old", instead="hr.new", since="0.2")(new)  # only another name

    Args:
        name: what users write.
        instead: what they should write.
        since: the release that deprecates it, such as ``"0.2"``.
        package: the distribution whose releases are meant.

    Returns:
        A decorator. A function's result has its signature and attributes; a class becomes a
        subclass that warns when it is called, so that the class itself stays silent.

    Raises:
        ValueError: if ``since`` is not of the form ``"0.2"``.
    """
    deprecation = _declare(name, instead, since, package)

    def decorate(target: T) -> T:
        if inspect.isclass(target):

            def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
                deprecation.warn()
                super(warning, self).__init__(*args, **kwargs)

            functools.update_wrapper(__init__, target.__init__)
            members = {"__init__": __init__, "__doc__": target.__doc__, "__slots__": ()}
            metaclass: Any = type(target)
            warning: Any = metaclass(target.__name__, (target,), members)
            warning.__module__, warning.__qualname__ = target.__module__, target.__qualname__
            return warning  # type: ignore[no-any-return]

        @functools.wraps(target)
        def call(*args: Any, **kwargs: Any) -> Any:
            deprecation.warn()
            return target(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


def deprecated_argument(
    old: str, new: str, *, since: str, package: str = "headrace"
) -> Callable[[T], T]:
    """Let a function take an argument under the name it had before, with a warning.

    Args:
        old: the name that goes away; it is taken as a keyword.
        new: the parameter that gets the value.
        since: the release that deprecates it, such as ``"0.2"``.
        package: the distribution whose releases are meant.

    Raises:
        ValueError: if ``since`` is not of the form ``"0.2"``.
        TypeError: if the function has no parameter ``new``; and when a call names both.
    """

    def decorate(function: T) -> T:
        name = function.__qualname__
        if new not in inspect.signature(function).parameters:
            raise TypeError(f"deprecated_argument: {name} has no parameter {new!r}")
        deprecation = _declare(f"the argument {old!r} of {name}", f"{new!r}", since, package)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if old in kwargs:
                if new in kwargs:
                    raise TypeError(
                        f"{name}: got both {old!r} and {new!r}, which are one argument; "
                        f"give {new!r}"
                    )
                deprecation.warn()
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


def deprecated_names(
    module: str,
    names: Mapping[str, tuple[str, Callable[[], Any]]],
    *,
    since: str,
    package: str = "headrace",
) -> Callable[[str], Any]:
    """Return a module's ``__getattr__`` for names of it that went elsewhere.

    ::

        __getattr__ = deprecated_names(
            __name__, {"OLD": ("fancy.ops.NEW", lambda: NEW)}, since="0.2", package="fancy"
        )

    Args:
        module: the module's name.
        names: for each name that goes away what to write instead, and a function that returns
            the value.
        since: the release that deprecates them, such as ``"0.2"``.
        package: the distribution whose releases are meant.

    Raises:
        ValueError: if ``since`` is not of the form ``"0.2"``.
    """
    declared = {
        name: _declare(f"{module}.{name}", instead, since, package)
        for name, (instead, _) in names.items()
    }

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in declared:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        declared[name].warn()
        return names[name][1]()

    return __getattr__
