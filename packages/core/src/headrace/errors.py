"""Every exception that Headrace raises: one tree, each also of the builtin kind it resembles.

A message says what is wrong, what was expected and what was got, how to mend it where that is
known, and the line of the user's program. Nothing in Headrace branches on message texts.
"""

from __future__ import annotations

from collections.abc import Iterable

MAX_LINES = 12


class HeadraceError(Exception):
    """The root of all of Headrace's own errors."""


class DTypeError(HeadraceError, TypeError):
    """A dtype that an op does not take, or a conversion that would lose values silently."""


class ShapeError(HeadraceError, ValueError):
    """Shapes that do not fit each other or the op."""


class AttributeValueError(HeadraceError, ValueError):
    """An attribute or argument of an op with a value that it does not take."""


class GraphError(HeadraceError, ValueError):
    """A graph used wrongly: tensors of two graphs mixed, a name unknown, a cycle."""


class SymbolicTensorError(GraphError, TypeError):
    """A tensor used like its value, which exists only inside a step."""


class FeedError(HeadraceError, ValueError):
    """A feed that is missing, unknown, or of the wrong shape or dtype."""


class FetchError(HeadraceError, TypeError):
    """Something fetched that cannot be fetched."""


class SessionClosedError(HeadraceError, RuntimeError):
    """A session used after it was closed."""


class UninitializedError(HeadraceError, RuntimeError):
    """Variables read before anything was assigned to them."""


class ExecutionError(HeadraceError, RuntimeError):
    """A kernel failed while a step ran; the cause is chained."""


class ResourceExhaustedError(ExecutionError, MemoryError):
    """A step that needs more memory than its device has."""


class NumericsError(ExecutionError, FloatingPointError):
    """An operation made a NaN or an infinity, and ``Config(check_numerics=True)`` refuses that."""


class DeterminismError(HeadraceError, RuntimeError):
    """An operation's results may differ in an equal run, which the session's settings refuse."""


class InvalidArgumentError(HeadraceError, ValueError):
    """Values that an assertion refuses."""


class CancelledError(HeadraceError, RuntimeError):
    """A waiting operation was cancelled because its step, queue or session ended."""


class OutOfRangeError(HeadraceError, EOFError):
    """A closed queue or an input pipeline has no elements left."""


class ResourceError(HeadraceError, RuntimeError):
    """State found under a name is missing or of another kind than the op expects."""


class PlacementError(HeadraceError, ValueError):
    """No device satisfies all that is asked for an operation."""


class NoDeviceError(PlacementError):
    """A device that is not there was asked for."""


class NoKernelError(PlacementError):
    """No device at hand has a kernel for an operation with these dtypes."""


class NoGradientError(HeadraceError, LookupError):
    """An operation between the ys and the xs has no gradient rule."""


class DocumentError(HeadraceError, ValueError):
    """A graph document that cannot be read."""


class PluginError(HeadraceError, RuntimeError):
    """A plugin that is missing, broken, or in conflict with another."""


class CheckpointError(HeadraceError, ValueError):
    """A checkpoint that is missing, damaged, or does not match the variables."""


class ClusterError(HeadraceError, RuntimeError):
    """A cluster that could not be formed, or a task of it that failed."""


class DatasetError(HeadraceError, ValueError):
    """A data set whose files are missing or damaged."""


class ConfigError(HeadraceError, ValueError):
    """A setting or environment variable with a value that it does not take."""


def shorten(lines: Iterable[str], limit: int = MAX_LINES) -> str:
    """Join ``lines``, keeping at most ``limit`` and saying how many were left out."""
    kept = [line for text in lines for line in text.splitlines()]
    if len(kept) <= limit:
        return "\n".join(kept)
    return "\n".join([*kept[: limit - 1], f"  ... and {len(kept) - limit + 1} more lines"])


def listing(names: Iterable[str], limit: int = 8) -> str:
    """Return ``names`` comma-separated, the rest beyond ``limit`` counted."""
    items = list(names)
    text = ", ".join(items[:limit])
    return text if len(items) <= limit else f"{text} and {len(items) - limit} more"
