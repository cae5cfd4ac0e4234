"""Options of data sets: those that mean something here, under TensorFlow's names."""

from __future__ import annotations

from typing import Any, final

from headrace.errors import UnimplementedError
from headrace_data.errors import UnknownOptionError

_REFUSED = {
    "experimental_distribute": "data sets are not distributed by themselves; use shard()",
    "experimental_optimization": "pipelines have no passes to choose from",
    "experimental_stats": "pipelines gather no statistics; Config(trace=...) measures steps",
    "experimental_threading": "each transformation has threads of its own",
}


@final
class Options:
    """What ``with_options`` takes.

    Attributes:
        experimental_deterministic: Whether elements come in a fixed order: True, or None for the
            same. With False those of ``map`` and ``interleave`` with ``num_parallel_calls`` may
            come in the order in which they are ready, in all of a pipeline; a saved position
            resumes what was not delivered.
        experimental_slack: Whether prefetching may leave room at first; False, or None. It has no
            use without devices that are fed.
        experimental_stateful_whitelist: Taken and without effect: functions may be stateful.
    """

    experimental_deterministic: bool | None

    __slots__ = (
        "experimental_deterministic",
        "experimental_slack",
        "experimental_stateful_whitelist",
    )

    def __init__(self) -> None:
        """Start with nothing set."""
        for name in self.__slots__:
            object.__setattr__(self, name, None)

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an option.

        Raises:
            UnimplementedError: if it is one of TensorFlow's that means nothing here.
            UnknownOptionError: if there is none of that name.
        """
        if name in _REFUSED:
            raise UnimplementedError(f"hr.data.Options has no {name}: {_REFUSED[name]}")
        if name not in self.__slots__:
            raise UnknownOptionError(
                f"hr.data.Options has no option {name!r}; there are {', '.join(self.__slots__)}"
            )
        object.__setattr__(self, name, value)

    def merge(self, options: Options) -> Options:
        """Return options in which those that are set in ``options`` count before these."""
        made = Options()
        for name in self.__slots__:
            theirs = getattr(options, name)
            object.__setattr__(made, name, getattr(self, name) if theirs is None else theirs)
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Options) and all(
            getattr(self, name) == getattr(other, name) for name in self.__slots__
        )

    __hash__ = None  # type: ignore[assignment]
