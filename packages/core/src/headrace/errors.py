"""Every exception that Headrace raises: one tree, each also of the builtin kind it resembles.

A message says what is wrong, what was expected and what was got, how to fix it where that is
known, and the line of the user's program. Nothing in Headrace branches on message texts.

The *families* are those of TensorFlow, with its names and codes, so that a program that catches
``tf.errors.OutOfRangeError`` catches ``hr.errors.OutOfRangeError``. What Headrace raises is often
more specific: a subclass of the family that TensorFlow raises in the same situation.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.message_text import MAX_LETTERS as MAX_LETTERS
from headrace.message_text import MAX_LINES as MAX_LINES
from headrace.message_text import bounded as _bounded
from headrace.message_text import listing as listing
from headrace.message_text import shorten as shorten
from headrace.message_text import shown as shown
from headrace.message_text import told as told

if TYPE_CHECKING:
    from headrace.graph.operation import Operation

# The codes of the families, those of TensorFlow and gRPC.
OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class HeadraceError(Exception):
    """The root of all of Headrace's own errors.

    What a program's texts make too long is cut where it is shown: ``str(error)`` has at most
    ``MAX_LINES`` lines and ``MAX_LETTERS`` letters, ``args`` all of it.

    Attributes:
        located: Whether the message names the operation and the user's line already.
    """

    located = False

    def __str__(self) -> str:
        return _bounded(super().__str__())


class NodeDef(NamedTuple):
    """What an error knows of the operation that failed, also where no graph at hand has it.

    Attributes:
        name: Its name.
        op: Its type, as in ``"MatMul"``.
        input: The names of its inputs.
        device: The device that was asked for.
    """

    name: str
    op: str
    input: tuple[str, ...]
    device: str


# -- families


class OpError(HeadraceError):
    """The root of the families: something that an operation, or what belongs to it, refuses.

    It is made of a message, ``OpError("text")``, or as TensorFlow makes its errors, of
    ``node_def``, ``op``, ``message`` and perhaps ``error_code``.
    """

    _code = UNKNOWN

    def __init__(
        self, node_def: Any = None, op: Any = None, message: Any = None, error_code: Any = None
    ) -> None:
        """Make an error.

        Args:
            node_def: A description of the operation; if nothing else is given, the message.
            op: The operation that failed, None where it is not known.
            message: What is wrong.
            error_code: One of this module's codes; that of the family if None.
        """
        if message is None and op is None and isinstance(node_def, str):
            node_def, message = None, node_def
        super().__init__("" if message is None else message)
        self.args = ("" if message is None else message,)
        self._node_def = node_def
        self._op: Operation | None = op
        if error_code is not None:
            self._code = error_code

    @property
    def message(self) -> str:
        """What is wrong."""
        return str(self.args[0])

    @property
    def op(self) -> Operation | None:
        """The operation of the program that failed.

        None where it is not known, or where the program's graph does not have it.
        """
        return self._op

    @property
    def node_def(self) -> Any:
        """A ``NodeDef`` of the operation that failed, None where it is not known."""
        return self._node_def

    @property
    def error_code(self) -> int:
        """The code of the family, such as ``errors.OUT_OF_RANGE``."""
        return self._code

    def __str__(self) -> str:
        return _bounded(self.message)

    def __reduce__(self) -> Any:
        # An operation belongs to its process.
        arguments = (self._node_def, None, self.message, self._code)
        return _made_again, (type(self), arguments), {"located": self.located}

    def concerns(self, op: Operation | None, node_def: NodeDef | None = None) -> None:
        """Say which operation failed.

        Args:
            op: The operation.
            node_def: Its description; made of ``op`` if None.
        """
        if node_def is None and op is not None:
            inputs = tuple(tensor.name for tensor in op.inputs)
            node_def = NodeDef(op.name, op.type, inputs, op.device)
        self._op, self._node_def = op, node_def


def _made_again(kind: type[OpError], arguments: tuple[Any, ...]) -> OpError:
    error = kind(arguments[2])
    OpError.__init__(error, *arguments)
    return error


class CancelledError(OpError, RuntimeError):
    """A waiting operation was cancelled because its step, queue or session ended."""

    _code = CANCELLED


class InvalidArgumentError(OpError, ValueError):
    """A value that an operation does not take, or that an assertion refuses."""

    _code = INVALID_ARGUMENT


class DeadlineExceededError(OpError, TimeoutError):
    """Something took longer than it was given."""

    _code = DEADLINE_EXCEEDED


class NotFoundError(OpError, LookupError):
    """Something that was asked for, such as a file or a tensor of a checkpoint, is not there."""

    _code = NOT_FOUND


class AlreadyExistsError(OpError, ValueError):
    """Something that should be made is there already."""

    _code = ALREADY_EXISTS


class PermissionDeniedError(OpError, RuntimeError):
    """The program may not do what it asks for, such as read a file."""

    _code = PERMISSION_DENIED


class UnauthenticatedError(OpError, RuntimeError):
    """Who asks has not shown who it is."""

    _code = UNAUTHENTICATED


class FailedPreconditionError(OpError, RuntimeError):
    """The state of the system does not allow it now, such as a variable without a value."""

    _code = FAILED_PRECONDITION


class AbortedError(OpError, RuntimeError):
    """Something was given up because of what happened at the same time; one may try again."""

    _code = ABORTED


class OutOfRangeError(OpError, EOFError):
    """A closed queue or an input pipeline has no elements left."""

    _code = OUT_OF_RANGE


class InternalError(OpError, RuntimeError):
    """Something that Headrace promises itself does not hold."""

    _code = INTERNAL


class UnavailableError(OpError, RuntimeError):
    """Another task, or the way to it, is not there now."""

    _code = UNAVAILABLE


class DataLossError(OpError, ValueError):
    """Data that is damaged or cut short."""

    _code = DATA_LOSS


class ExecutionError(OpError, RuntimeError):
    """A kernel failed while a step ran; the cause is chained."""


class UnknownError(ExecutionError):
    """A kernel failed with an exception that belongs to none of the other families."""


class InvalidInputError(ExecutionError, InvalidArgumentError):
    """A kernel refused the values of its inputs; the cause is chained."""


class ResourceExhaustedError(ExecutionError, MemoryError):
    """A step that needs more memory than its device has."""

    _code = RESOURCE_EXHAUSTED


class UnimplementedError(ExecutionError, NotImplementedError):
    """Something that an operation, or its kernel on a device, does not do."""

    _code = UNIMPLEMENTED


# -- building and feeding


class DTypeError(InvalidArgumentError, TypeError):
    """A dtype that an op does not take, or a conversion that would lose values silently."""


class ShapeError(InvalidArgumentError):
    """Shapes that do not fit each other or the op."""


class ShapeTypeError(ShapeError, TypeError):
    """A value of another shape than was asked for."""


class NoDimensionError(ShapeError, IndexError):
    """A dimension that a shape does not have, or an axis that a tensor does not have."""


class AttributeValueError(InvalidArgumentError):
    """An attribute or argument of an op with a value that it does not take."""


class ArgumentTypeError(AttributeValueError, TypeError):
    """An argument that is not of the kind that is expected."""


class DepthError(InvalidArgumentError, RecursionError):
    """A structure that is nested deeper than Python can follow."""


class GraphError(HeadraceError, ValueError):
    """A graph used wrongly: tensors of two graphs mixed, a name unknown, a cycle."""


class NameTypeError(GraphError, TypeError):
    """A name that is no string."""


class StructureError(GraphError, InvalidArgumentError, TypeError):
    """Results in another structure than those beside them, or than what was asked for."""


class NestingError(GraphError, AssertionError, RuntimeError):
    """A ``with`` block of a graph, session or device left before one that is inside of it."""


class NoSuchElementError(GraphError, KeyError):
    """The name of an operation or a tensor that a graph does not have."""

    # Not that of a KeyError, which shows the text as Python would write it.
    def __str__(self) -> str:
        return _bounded(Exception.__str__(self))


class NoErrorCodeError(HeadraceError, KeyError):
    """A code that no family of errors has."""

    # Not that of a KeyError, which shows the text as Python would write it.
    def __str__(self) -> str:
        return _bounded(Exception.__str__(self))


class NoElementError(GraphError, TypeError):
    """Something that stands for no operation or tensor, or for none of those asked for."""


class GraphFinalizedError(GraphError, RuntimeError):
    """An operation added to a graph that was finalized, such as that of a monitored session."""


class SymbolicTensorError(GraphError, TypeError, NotImplementedError):
    """A tensor used like its value, which exists only inside a step."""


class FeedError(InvalidArgumentError):
    """A feed that is missing, unknown, or of the wrong shape or dtype."""


class FeedTypeError(FeedError, TypeError):
    """A value of a feed, or what should be a dictionary of feeds, that is of another kind."""


class FeedKeyError(FeedError, TypeError):
    """A feed of something that is no tensor of the session's graph."""


class FetchError(HeadraceError, TypeError, ValueError):
    """Something fetched that cannot be fetched."""


class DeadTensorError(FetchError, InvalidArgumentError):
    """A fetched tensor that has no value in a step, since its branch was not taken."""


class GraphEmptyError(FetchError, RuntimeError):
    """Something fetched from a session whose graph has no operations."""


class NoGradientError(HeadraceError, LookupError):
    """An operation between the ys and the xs has no gradient rule."""


class DocumentError(HeadraceError, ValueError):
    """A graph document that cannot be read."""


class PlacementError(InvalidArgumentError):
    """No device satisfies all that is asked for an operation."""


class NoDeviceError(PlacementError):
    """A device that is not there was asked for."""


class NoKernelError(PlacementError):
    """No device at hand has a kernel for an operation with these dtypes."""


# -- running


class SessionClosedError(CancelledError):
    """A session used after it was closed."""


class UninitializedError(FailedPreconditionError):
    """Variables read before anything was assigned to them."""


class NumericsError(InvalidInputError, FloatingPointError):
    """An operation made a NaN or an infinity, and ``Config(check_numerics=True)`` refuses that."""


class DeterminismError(HeadraceError, RuntimeError):
    """An operation's results may differ in an equal run, which the session's settings refuse."""


class RaceError(FailedPreconditionError):
    """A step uses a variable or table twice in no order, which the session's settings refuse."""


class ResourceError(OpError, RuntimeError):
    """State under a name, or what it is made from, is not what an operation expects."""


class ResourceNotFoundError(ResourceError, NotFoundError):
    """What a resource should be made from, such as a file, is not there."""


class ResourceMismatchError(ResourceError, InvalidArgumentError):
    """State of another kind or content than an operation expects, or declared in two ways."""


class ResourceStateError(ResourceError, FailedPreconditionError):
    """A resource that does not allow an operation in the state in which it is."""


class ClusterError(UnavailableError):
    """A cluster that could not be formed, or a task of it that failed."""


class TaskLostError(ClusterError):
    """A task of a cluster whose process ended, or gave no sign of life for too long."""


# -- files


class CheckpointError(OpError, ValueError):
    """A checkpoint that is missing, damaged, or does not match the variables."""


class CheckpointNotFoundError(CheckpointError, NotFoundError):
    """A checkpoint, or a tensor of one, that is not there."""


class CheckpointDamagedError(CheckpointError, DataLossError):
    """A checkpoint that is damaged or cut short, or no checkpoint at all."""


class CheckpointMismatchError(CheckpointError, InvalidArgumentError):
    """A checkpoint, or what should be written into one, does not match what is asked for."""


class GraphFileNotFoundError(NotFoundError, OSError):
    """A file with a graph that is not there."""


class GraphFileFormatError(AttributeValueError, OSError):
    """A file that should hold a graph and holds something else."""


class FileBesideNotFoundError(NotFoundError, OSError):
    """A file beside a program or a package that is not there, or cannot be read."""


class ReservedNameError(AttributeValueError, KeyError):
    """A name that a program may not give, since it has a meaning."""

    # Not that of a KeyError, which shows the text as Python would write it.
    def __str__(self) -> str:
        return _bounded(Exception.__str__(self))


class MissingNodeError(GraphError, AssertionError):
    """Names of nodes that a written graph does not have."""


class SavedModelError(OpError, ValueError):
    """A saved model that is missing, damaged, or used in a way that it does not support."""


class SavedModelNotFoundError(SavedModelError, NotFoundError, OSError):
    """A folder without a saved model, or one that was never written to its end."""


class SavedModelDamagedError(SavedModelError, DataLossError, OSError):
    """A saved model that is damaged, or that holds what a saved model must not hold."""


class SavedModelTagsError(SavedModelError, NotFoundError, RuntimeError):
    """Tags with which a saved model has no graph."""


class SavedModelUseError(SavedModelError, FailedPreconditionError, AssertionError):
    """Methods of a builder in an order, or with arguments, in which they do not work."""


class DatasetError(OpError, ValueError):
    """A data set whose files are missing or damaged, or that is asked for what it cannot give."""


class DatasetNotFoundError(DatasetError, NotFoundError):
    """A data set whose files are not there."""


class DatasetDamagedError(DatasetError, DataLossError):
    """A data set whose files are damaged or cut short."""


# -- settings and plugins


class PluginError(HeadraceError, RuntimeError):
    """A plugin that is missing, broken, or in conflict with another."""


class TargetError(PluginError, NotFoundError):
    """A session target that no plugin opens."""


class ConfigError(HeadraceError, ValueError):
    """A setting or environment variable with a value that it does not take."""


class ConfigTypeError(ConfigError, TypeError):
    """A setting of another kind than is expected."""


# -- codes

_FAMILIES: dict[int, type[OpError]] = {
    CANCELLED: CancelledError,
    UNKNOWN: UnknownError,
    INVALID_ARGUMENT: InvalidArgumentError,
    DEADLINE_EXCEEDED: DeadlineExceededError,
    NOT_FOUND: NotFoundError,
    ALREADY_EXISTS: AlreadyExistsError,
    PERMISSION_DENIED: PermissionDeniedError,
    UNAUTHENTICATED: UnauthenticatedError,
    RESOURCE_EXHAUSTED: ResourceExhaustedError,
    FAILED_PRECONDITION: FailedPreconditionError,
    ABORTED: AbortedError,
    OUT_OF_RANGE: OutOfRangeError,
    UNIMPLEMENTED: UnimplementedError,
    INTERNAL: InternalError,
    UNAVAILABLE: UnavailableError,
    DATA_LOSS: DataLossError,
}


def exception_type_from_error_code(error_code: int) -> type[OpError]:
    """Return the family of a code.

    Args:
        error_code: One of this module's codes except ``OK``.

    Raises:
        NoErrorCodeError: if no family has it; a ``KeyError``.
    """
    try:
        return _FAMILIES[operator.index(error_code)]
    except (TypeError, KeyError):
        raise NoErrorCodeError(
            f"error_code must be from 1 to {max(_FAMILIES)}, as hr.errors names them, got "
            f"{shown(error_code)}"
        ) from None


def error_code_from_exception_type(cls: type[BaseException]) -> int:
    """Return the code of a family, or of the family of a more specific error.

    Args:
        cls: A class of errors.

    Returns:
        The code; ``UNKNOWN``, with a warning, if ``cls`` belongs to no family.
    """
    if issubclass(cls, OpError):
        return cls._code
    warnings.warn(f"{cls.__name__} belongs to no family of errors", stacklevel=2)
    return UNKNOWN


# -- texts


def located(
    kind: type[HeadraceError], lines: Iterable[str], op: Operation | None = None
) -> HeadraceError:
    """Return an error that names its operation and line, to which nobody adds them again.

    Args:
        kind: Its class.
        lines: What is wrong, the operation, and the line of the user's program.
        op: The operation.
    """
    error = kind(shorten(lines))
    error.located = True
    if op is not None and isinstance(error, OpError):
        error.concerns(op)
    return error
