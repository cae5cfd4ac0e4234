"""The limits of a server and of its clients."""

from __future__ import annotations

from dataclasses import dataclass, fields

from headrace.errors import ConfigError, shown


@dataclass(frozen=True, slots=True)
class Batching:
    """How requests that come at the same time are answered by one step.

    Attributes:
        max_batch_size: The most rows in a step of several requests; 1 runs each request alone.
        max_delay: Seconds that a request may wait for others when a step could start, >= 0. With
            0 those are joined that came while steps ran.
        max_queue: The most requests that wait for a step of one signature; further ones are
            refused with status 503.
        steps: The most steps of one signature at the same time.
        pad: Fill a step of several requests up to a power of two of rows, by repeating the last
            one, so that few shapes are compiled for; what it gives is left out.
        check: Run the requests of the first batch also one by one, and batch no more where that
            gives other answers, as it does where rows of a batch depend on each other.
    """

    max_batch_size: int = 64
    max_delay: float = 0.0
    max_queue: int = 1000
    steps: int = 1
    pad: bool = True
    check: bool = True

    def __post_init__(self) -> None:
        _check(self, at_least={"max_batch_size": 1, "max_queue": 1, "steps": 1, "max_delay": 0})


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on size, time and number of requests.

    Attributes:
        max_body: The most bytes in the body of a request; status 413 beyond.
        read_timeout: Seconds in which a request must have arrived, head and body; status 408.
        timeout: Seconds in which the model must have answered; status 504.
        keep_alive: Seconds after which an idle connection is closed.
        max_connections: The most connections; status 503 beyond.
        grace: Seconds that requests in flight have to finish when the server is stopped.
    """

    max_body: int = 32 << 20
    read_timeout: float = 30.0
    timeout: float = 60.0
    keep_alive: float = 5.0
    max_connections: int = 1000
    grace: float = 30.0

    def __post_init__(self) -> None:
        _check(self, at_least={"max_body": 1, "max_connections": 1, "grace": 0})
        _check(self, above={"read_timeout": 0, "timeout": 0, "keep_alive": 0})


def _check(
    options: Batching | Limits,
    *,
    at_least: dict[str, int] | None = None,
    above: dict[str, int] | None = None,
) -> None:
    """Refuse what is no such number.

    Raises:
        ConfigError: for the first option that is out of its range.
    """
    kinds = {field.name: field.type for field in fields(options)}
    for bounds, sign in ((at_least or {}, ">="), (above or {}, ">")):
        for name, bound in bounds.items():
            value = getattr(options, name)
            whole = kinds[name] == "int"
            good = isinstance(value, int if whole else (int, float)) and value is not True
            if not good or not (value >= bound if sign == ">=" else value > bound):
                kind = "a whole number" if whole else "a number"
                raise ConfigError(f"{name}: expected {kind} {sign} {bound}, got {shown(value)}")
