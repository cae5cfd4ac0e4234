"""Locks, by which steps keep other steps out of what they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from headrace import dtypes
from headrace.errors import AttributeValueError, GraphError
from headrace.graph.operation import Operation, add_waits
from headrace.graph.scopes import (
    colocate_with,
    control_dependencies,
    current_scope,
    get_default_graph,
    init_scope,
    name_scope,
)
from headrace.graph.spec import TensorSpec
from headrace.graph.structure import flatten, pack
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.identity import identity
from headrace.ops.kinds import Resource
from headrace.shapes import SCALAR

_LOCKS = "locks have no gradient"


@op("Mutex", concurrent=True, effects="reads", public="", no_gradient=_LOCKS)
def mutex_handle(container: str, shared_name: str) -> Spec:
    """A handle to the mutex of a name in a container of the device.

    Args:
        container: The container; empty for the default one.
        shared_name: The mutex's name in the container.

    Returns:
        [], a resource handle.
    """
    return TensorSpec(dtypes.resource, SCALAR)


@op(
    "MutexAcquire", concurrent=True, effects="changes", blocking=True, public="", no_gradient=_LOCKS
)
def mutex_acquire(handle: Resource) -> Spec:
    """Take a mutex's lock; waits while another one has it, in the order of arrival.

    Args:
        handle: [], the mutex.

    Returns:
        [], the lock, which is given back by ``MutexRelease``, or else when its step ends.
    """
    return TensorSpec(dtypes.resource, SCALAR)


@op("MutexRelease", effects="changes", public="", no_gradient=_LOCKS)
def mutex_release(lock: Resource) -> None:
    """Give a lock back, once.

    Args:
        lock: [], what ``MutexAcquire`` yields.
    """


@final
class MutexLock:
    """The lock of a mutex, as one node takes it.

    Attributes:
        handle: [], the lock, which is there once it is taken.
    """

    __slots__ = ("handle",)

    def __init__(self, handle: Tensor) -> None:
        self.handle = handle

    @property
    def op(self) -> Operation:
        """The operation that takes the lock; what is to run under it depends on this."""
        return self.handle.op

    @property
    def graph(self) -> Any:
        """The graph of the operation."""
        return self.handle.graph

    def release(self, name: str | None = None) -> Operation:
        """Return an operation that gives the lock back; let it depend on what runs under it."""
        with colocate_with(self.handle):
            return mutex_release(self.handle, name=name or "MutexRelease")


@final
class Mutex:
    """A mutex: at most one node, of all steps, has its lock.

    Steps wait for it without holding up other parts of theirs, in the order of arrival. A lock
    that is not released, because its step fails or forgets it, is given back when the step ends.

    Attributes:
        handle: [], the handle to the mutex.
    """

    __slots__ = ("handle",)

    def __init__(self, name: str | None = None, shared_name: str | None = None) -> None:
        """Make a mutex in the default graph.

        Args:
            name: Its name; made unique.
            shared_name: Its name in its container; its own name if None. Those of one shared name
                in a named container or a cluster are one mutex.
        """
        with init_scope(), name_scope(name, "Mutex") as scope:
            own_name = scope[:-1]
            self.handle = mutex_handle(
                current_scope().container,
                own_name if shared_name is None else shared_name,
                name=scope,
            )

    @property
    def name(self) -> str:
        """Its name in its graph."""
        return self.handle.op.name

    @property
    def op(self) -> Operation:
        """The operation that yields the handle."""
        return self.handle.op

    def acquire(self, name: str | None = None) -> MutexLock:
        """Return the lock, taken by a new node."""
        with colocate_with(self.handle):
            return MutexLock(mutex_acquire(self.handle, name=name or "MutexAcquire"))


# What critical sections of a graph were found to use, under a key that is no name.
_EXECUTIONS = ("critical_sections",)


@final
class CriticalSection:
    """A section of programs in which at most one step is at a time.

    ``execute`` builds what runs in it. A variable that is read and then written in there is
    changed as if by one atomic operation, as far as it is used in the section only.
    """

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        """Make a critical section in the default graph.

        Args:
            name: Its name; made unique.
            shared_name: The name of its mutex in its container; its own name if None.
            critical_section_def: Refused; graphs come back from documents.
            import_scope: Refused, likewise.
        """
        if critical_section_def is not None or import_scope is not None:
            raise AttributeValueError(
                "a CriticalSection is not made of a definition; load a whole graph with "
                "hr.Graph.from_document"
            )
        self._mutex = Mutex(name if name is not None else "critical_section", shared_name)

    @property
    def name(self) -> str:
        """Its name in its graph."""
        return self._mutex.name

    def execute(
        self,
        fn: Callable[[], Any],
        exclusive_resource_access: bool = True,
        name: str | None = None,
    ) -> Any:
        """Return what ``fn()`` builds, so that it runs while no other step is in the section.

        Args:
            fn: A function without arguments that returns tensors, operations, or structures of
                these. What it returns is run; what it reads of variables it reads in there.
            exclusive_resource_access: Whether to refuse variables and other state that another
                critical section of this graph uses.
            name: The name of the operations.

        Returns:
            The structure of tensors; an operation if ``fn`` returns nothing.

        Raises:
            GraphError: if the section is entered inside of itself, or state is used by another.
        """
        graph = get_default_graph()
        with name_scope(name, "critical_section_execute"):
            lock = self._mutex.acquire()
            first = len(graph.operations)
            with control_dependencies([lock.op]):
                result = fn()
            made = graph.operations[first:]
            self._check(made, exclusive_resource_access)
            # What comes from outside is there before the lock is taken: it may need the lock, too.
            own = set(made)
            add_waits(lock.op, [t.op for o in made for t in o.inputs if t.op not in own])
            leaves = flatten(result) if result is not None else list(made)
            with control_dependencies(leaves):
                release = lock.release()
            if result is None:
                return release
            with control_dependencies([release]):
                outside = [
                    release if isinstance(leaf, Operation) else identity(leaf) for leaf in leaves
                ]
            return pack(result, outside)

    def _check(self, made: tuple[Operation, ...], exclusive: bool) -> None:
        if any(o.type == "MutexAcquire" and o.inputs[0] is self._mutex.handle for o in made):
            raise GraphError(
                f"critical section {self.name!r} is entered inside of itself, where it would wait "
                "for ever"
            )
        used = {
            tensor
            for o in made
            for tensor in o.inputs
            if tensor.dtype.kind == "resource" and o.type not in ("MutexAcquire", "MutexRelease")
        }
        executions = get_default_graph().outermost.get_collection_ref(_EXECUTIONS)
        for other, theirs, theirs_exclusive in executions:
            shared = [t.op.name for t in used & theirs]
            if other is not self._mutex and shared and (exclusive or theirs_exclusive):
                raise GraphError(
                    f"critical section {self.name!r} uses {shared[0]!r}, which {other.name!r} "
                    "uses exclusively; use one section for it, or pass "
                    "exclusive_resource_access=False to both"
                )
        executions.append((self._mutex, used, exclusive))
