"""A mailbox: it holds the newest value put into it, and steps that want one wait for it."""

import threading

import headrace as hr
from headrace.errors import DTypeError
from headrace.extend import Anything, Resource, Spec, TensorSpec, hookimpl, op, require
from headrace.extend.graphs import current_scope
from headrace.extend.kernels import KernelTable
from headrace.extend.state import WaitingLine, handle_spec

KERNELS = KernelTable()


# The op whose handle stands for a mailbox. All attributes but the two names say what it is, and
# must be the same wherever a program declares a mailbox of one name.
@op("Mailbox", stateful=True, public="")
def mailbox_handle(dtype: hr.DType, container: str, shared_name: str) -> Spec:
    """A handle to the mailbox of a name in a container.

    Args:
        dtype: The dtype of its values.
        container: The container; empty for the session's own.
        shared_name: Its name there.

    Returns:
        [], a resource handle.
    """
    return handle_spec(TensorSpec(dtype, hr.Shape(None)))


@op("MailboxPut", stateful=True, public="")
def mailbox_put(handle: Resource, value: Anything) -> None:
    """Put a value into a mailbox, in place of the one that is there.

    Args:
        handle: [], the mailbox.
        value: [...], the value.
    """
    held = held_by(handle)
    message = f"the mailbox holds {held.dtype}, got {value.dtype}; convert it with hr.cast"
    require(value.dtype == held.dtype, message, DTypeError)


@op("MailboxTake", stateful=True, blocking=True, public="")
def mailbox_take(handle: Resource) -> Spec:
    """Take the value out of a mailbox; waits until there is one.

    Args:
        handle: [], the mailbox.

    Returns:
        [...], the value.
    """
    return held_by(handle)


def held_by(handle):
    """What a rule knows of what a mailbox holds: the spec that its handle carries."""
    require(handle.content is not None, "expected the handle of a mailbox", DTypeError)
    return handle.content


# One object for each name in a container of a device. It outlives steps and sessions.
@KERNELS.resource("Mailbox")
class MailboxState:
    """What handles stand for."""

    def __init__(self, name, *, dtype):
        self.name = name
        self._lock = threading.Lock()
        self._waiting = WaitingLine(self._lock)
        self._value = None

    def put(self, value):
        with self._lock:
            waiter = self._waiting.pop()
            if waiter is None:
                self._value = value
        if waiter is not None:
            waiter.answer(value)

    def take(self, done, cancellation):
        with self._lock:
            value, self._value = self._value, None
            waiter = self._waiting.add(done, cancellation) if value is None else None
        # Without the lock: both run what others gave.
        if waiter is None:
            done(value)
        else:
            waiter.watch()

    def reset(self):
        """Forget the value; Headrace calls it when the container is reset."""
        with self._lock:
            self._value = None


@KERNELS.stateful("MailboxPut")
def put(ctx, mailbox, value):
    # A copy: what is fed belongs to the caller, who may change it after the step.
    mailbox.put(ctx.xp.array(value))


# A blocking kernel never waits itself. It sees to it that ``done`` is called once, with the
# output or an exception, and that the end of its step ends the waiting.
@KERNELS.blocking("MailboxTake")
def take(ctx, step, done, mailbox):
    mailbox.take(done, step.cancellation)


class Mailbox:
    """The face of the ops, as programs use it."""

    def __init__(self, dtype, shared_name=None, name="mailbox"):
        with hr.name_scope(name) as scope:
            self.handle = mailbox_handle(
                hr.as_dtype(dtype), current_scope().container, shared_name or scope[:-1]
            )

    def put(self, value):
        """Return an operation that puts a value in."""
        with hr.colocate_with(self.handle):
            return mailbox_put(self.handle, value)

    def take(self):
        """Return a tensor: the value that a step takes out."""
        with hr.colocate_with(self.handle):
            return mailbox_take(self.handle)


@hookimpl
def headrace_declare_ops():
    """Nothing to do: importing this module has declared the ops."""


@hookimpl
def headrace_register_kernels(registry):
    registry.add("cpu", KERNELS)


@hookimpl
def headrace_register_names(registry):
    registry.add("Mailbox", "headrace_mailbox:Mailbox")
