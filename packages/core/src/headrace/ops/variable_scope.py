"""Variable scopes: what applies to the variables that ``get_variable`` makes or finds."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import ArgumentTypeError, AttributeValueError, shown
from headrace.graph.collections import GraphKeys
from headrace.graph.context_blocks import read, within
from headrace.graph.graph import Graph
from headrace.graph.graph_scopes import checked_name
from headrace.graph.scopes import current_scope, get_default_graph, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.partitioned_variable import PartitionedVariable
from headrace.ops.variable import Variable


@final
class _AutoReuse:
    """The value of ``AUTO_REUSE``."""

    def __repr__(self) -> str:
        return "hr.AUTO_REUSE"


AUTO_REUSE: Final = _AutoReuse()


@final
@dataclass(slots=True)
class VariableScope:
    """What applies to variables that ``get_variable`` makes or finds.

    Attributes:
        reuse: False to make variables, True to find those made before, ``AUTO_REUSE`` to do
            either.
        name: The prefix of their names, without a trailing slash.
        initializer: Makes their initial values, where none is given.
        regularizer: A function of a variable, whose result is added to the graph's
            regularization losses.
        caching_device: Handed to custom getters; steps keep what they read.
        partitioner: Says into how many parts they are divided; None for whole ones.
        custom_getter: Called in place of ``get_variable``, with the getter to call as ``getter``.
        name_scope: The name scope that was opened with it, with a trailing slash.
        dtype: Their dtype, where none is given.
        use_resource: Handed to custom getters; all variables are resources.
        constraint: What optimizers apply to them after each change.
    """

    reuse: Any
    name: str = ""
    initializer: Any = None
    regularizer: Callable[[Variable], Any] | None = None
    caching_device: Any = None
    partitioner: Callable[..., Any] | None = None
    custom_getter: Callable[..., Any] | None = None
    name_scope: str = ""
    dtype: DType = dtypes.float32
    use_resource: bool | None = None
    constraint: Callable[[Tensor], Any] | None = None

    @property
    def original_name_scope(self) -> str:
        """The name scope that was opened with it, with a trailing slash."""
        return self.name_scope

    def reuse_variables(self) -> None:
        """Find variables from now on, and make none."""
        self.reuse = True

    def set_initializer(self, initializer: Any) -> None:
        """Set the initializer."""
        self.initializer = initializer

    def set_regularizer(self, regularizer: Callable[[Variable], Any] | None) -> None:
        """Set the regularizer."""
        self.regularizer = regularizer

    def set_dtype(self, dtype: Any) -> None:
        """Set the dtype."""
        self.dtype = as_dtype(dtype)

    def set_partitioner(self, partitioner: Callable[..., Any] | None) -> None:
        """Set the partitioner."""
        self.partitioner = partitioner

    def set_caching_device(self, caching_device: Any) -> None:
        """Set the caching device."""
        self.caching_device = caching_device

    def set_use_resource(self, use_resource: bool | None) -> None:
        """Set whether variables are to be resources, which they are always."""
        self.use_resource = use_resource

    def set_custom_getter(self, custom_getter: Callable[..., Any] | None) -> None:
        """Set the custom getter."""
        self.custom_getter = custom_getter

    def get_collection(self, name: Any) -> list[Any]:
        """Return what of a collection has a name in this scope."""
        prefix = f"{self.name}/" if self.name else ""
        found = get_default_graph().outermost.get_collection(name)
        return [v for v in found if not prefix or getattr(v, "name", "").startswith(prefix)]

    def global_variables(self) -> list[Variable]:
        """Return the global variables in this scope."""
        return self.get_collection(GraphKeys.GLOBAL_VARIABLES)

    def local_variables(self) -> list[Variable]:
        """Return the local variables in this scope."""
        return self.get_collection(GraphKeys.LOCAL_VARIABLES)

    def trainable_variables(self) -> list[Variable]:
        """Return the trainable variables in this scope."""
        return self.get_collection(GraphKeys.TRAINABLE_VARIABLES)


@final
@dataclass(slots=True)
class Store:
    """What a graph keeps of variable scopes.

    Attributes:
        root: The scope outside of all others.
        counts: How often each scope was opened, for making default names unique.
        partitioned: The partitioned variables that ``get_variable`` made, by name.
    """

    root: VariableScope = field(default_factory=lambda: VariableScope(False))
    counts: dict[str, int] = field(default_factory=dict)
    partitioned: dict[str, PartitionedVariable] = field(default_factory=dict)


# The scope in force, and the graph for which it is.
_CURRENT: ContextVar[tuple[Graph, VariableScope] | None] = ContextVar(
    "headrace_variable_scope", default=None
)
_LOCK = threading.Lock()
# A key that is no name, as those of collections are.
_STORE = ("variable_scope",)


def store() -> Store:
    """Return what the default graph keeps of variable scopes."""
    kept = get_default_graph().outermost.get_collection_ref(_STORE)
    with _LOCK:
        if not kept:
            kept.append(Store())
    found: Store = kept[0]
    return found


def get_variable_scope() -> VariableScope:
    """Return the variable scope in force; outside of all, that of the graph."""
    current = read(_CURRENT)
    if current is not None and current[0] is get_default_graph().outermost:
        return current[1]
    return store().root


@contextmanager
def _use(scope: VariableScope) -> Iterator[VariableScope]:
    with within(_CURRENT, (get_default_graph().outermost, scope)):
        yield scope


@contextmanager
def variable_scope(
    name_or_scope: str | VariableScope | None,
    default_name: str | None = None,
    values: Sequence[Any] | None = None,
    initializer: Any = None,
    regularizer: Callable[[Variable], Any] | None = None,
    caching_device: Any = None,
    partitioner: Callable[..., Any] | None = None,
    custom_getter: Callable[..., Any] | None = None,
    reuse: Any = None,
    dtype: Any = None,
    use_resource: bool | None = None,
    constraint: Callable[[Tensor], Any] | None = None,
    auxiliary_name_scope: bool = True,
) -> Iterator[VariableScope]:
    """Prefix the names of variables that ``get_variable`` makes or finds in the block.

    What is not given is as in the scope around the block.

    Args:
        name_or_scope: The scope's name, or a scope to enter again.
        default_name: Used where ``name_or_scope`` is None; made unique.
        values: Tensors of the graph to use.
        initializer: Makes initial values where none is given.
        regularizer: A function of a variable, whose result is added to the graph's
            regularization losses.
        caching_device: Handed to custom getters; steps keep what they read.
        partitioner: Says into how many parts variables are divided: called with ``shape`` and
            ``dtype``, it returns a number for each axis.
        custom_getter: Called in place of ``get_variable``, with the getter to call as ``getter``.
        reuse: True to find variables made before, ``AUTO_REUSE`` to make those that are not
            there. Scopes inside of one that reuses do so, too.
        dtype: The dtype of variables where none is given.
        use_resource: Handed to custom getters; all variables behave as TensorFlow's resource
            variables.
        constraint: What optimizers apply to variables after each change.
        auxiliary_name_scope: Whether to open a name scope as well.

    Yields:
        The scope.

    Raises:
        ArgumentTypeError: if there is no name, or ``auxiliary_name_scope`` is no bool.
        AttributeValueError: if ``reuse`` or ``partitioner`` is something else.
    """
    if partitioner is not None and not callable(partitioner):
        raise AttributeValueError(f"partitioner must be a function, got {shown(partitioner)}")
    if not isinstance(auxiliary_name_scope, bool):
        raise ArgumentTypeError(
            f"auxiliary_name_scope must be a bool, got {shown(auxiliary_name_scope)}"
        )
    known = reuse is None or reuse is AUTO_REUSE or (isinstance(reuse, int) and reuse in (0, 1))
    if not known:
        raise AttributeValueError(f"reuse must be True, False or hr.AUTO_REUSE, got {shown(reuse)}")
    if name_or_scope is None and default_name is None:
        raise ArgumentTypeError("variable_scope needs a name: name_or_scope or default_name")
    if name_or_scope is not None and not isinstance(name_or_scope, str | VariableScope):
        raise ArgumentTypeError(f"expected a name or a VariableScope, got {shown(name_or_scope)}")
    if name_or_scope is None and reuse:
        raise AttributeValueError("reuse needs a name_or_scope: a default_name is made unique")
    with ExitStack() as stack:
        if not auxiliary_name_scope:
            inner = None
        elif isinstance(name_or_scope, VariableScope):
            inner = name_or_scope.name.rpartition("/")[2]
        else:
            inner = name_or_scope if name_or_scope is not None else default_name
        around = current_scope().name
        opened = "" if auxiliary_name_scope or not around else f"{around}/"
        if inner:
            opened = stack.enter_context(name_scope(inner, None, values))
        outer = get_variable_scope()
        counts = store().counts
        again = isinstance(name_or_scope, VariableScope)
        if isinstance(name_or_scope, VariableScope):
            base, name = name_or_scope, name_or_scope.name
            opened = name_or_scope.name_scope
            kept = dict(counts)
        else:
            chosen = name_or_scope
            if chosen is None:
                assert default_name is not None
                chosen = _unique(outer.name, default_name, counts)
            if chosen:
                chosen = checked_name(chosen)
            base, name = outer, f"{outer.name}/{chosen}" if outer.name else chosen
            kept = {}
        counts[name] = counts.get(name, 0) + 1
        scope = replace(
            base,
            name=name,
            name_scope=opened,
            reuse=reuse or base.reuse,
            caching_device=base.caching_device if caching_device is None else caching_device,
            use_resource=base.use_resource if use_resource is None else use_resource,
            initializer=base.initializer if initializer is None else initializer,
            regularizer=base.regularizer if regularizer is None else regularizer,
            dtype=base.dtype if dtype is None else as_dtype(dtype),
            constraint=base.constraint if constraint is None else constraint,
            partitioner=base.partitioner if partitioner is None else partitioner,
            custom_getter=composed(custom_getter, base.custom_getter),
        )
        try:
            with _use(scope):
                yield scope
        finally:
            for key in [key for key in counts if not name or key.startswith(f"{name}/")]:
                counts[key] = 0
            if again:
                counts.clear()
                counts.update(kept)


def _unique(outer: str, prefix: str, counts: dict[str, int]) -> str:
    """Return a name that no scope inside ``outer`` was opened under."""
    full = f"{outer}/{prefix}" if outer else prefix
    if not counts.get(full):
        return prefix
    number = 1
    while counts.get(f"{full}_{number}"):
        number += 1
    return f"{prefix}_{number}"


def composed(
    inner: Callable[..., Any] | None, outer: Callable[..., Any] | None
) -> Callable[..., Any] | None:
    """Return a custom getter that calls the inner one, which calls the outer one."""
    if inner is None or outer is None:
        return outer if inner is None else inner

    def both(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        def next_getter(*a: Any, **k: Any) -> Any:
            return outer(getter, *a, **k)

        return inner(next_getter, *args, **kwargs)

    return both


def no_regularizer(_: Any) -> None:
    """Regularize nothing, where the scope around would."""
