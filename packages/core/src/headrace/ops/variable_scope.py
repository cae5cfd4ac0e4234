"""Variables that are found by name: ``get_variable``, and the scopes of such names."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Final, final

import numpy as np

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, GraphError, ShapeError
from headrace.graph.collections import GraphKeys
from headrace.graph.convert import as_tensor, natural_dtype
from headrace.graph.graph import Graph, check_name
from headrace.graph.scopes import colocate_with, get_default_graph, init_scope, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.initializers import glorot_uniform_initializer, zeros_initializer
from headrace.ops.variable import Variable
from headrace.shapes import Shape


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
        name: The prefix of their names, without a trailing slash.
        original_name_scope: The name scope that was opened with it, with a trailing slash.
        reuse: False to make variables, True to find those made before, ``AUTO_REUSE`` to do
            either.
        initializer: Makes their initial values, where none is given.
        regularizer: A function of a variable, whose result is added to the graph's
            regularization losses.
        dtype: Their dtype, where none is given.
        constraint: What optimizers apply to them after each change.
        custom_getter: Called in place of ``get_variable``, with the getter to call as ``getter``.
    """

    name: str = ""
    original_name_scope: str = ""
    reuse: Any = False
    initializer: Any = None
    regularizer: Callable[[Variable], Any] | None = None
    dtype: DType = dtypes.float32
    constraint: Callable[[Tensor], Any] | None = None
    custom_getter: Callable[..., Any] | None = None

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
class _Store:
    """What a graph keeps of variable scopes.

    Attributes:
        root: The scope outside of all others.
        counts: How often each scope was opened, for making default names unique.
    """

    root: VariableScope = field(default_factory=VariableScope)
    counts: dict[str, int] = field(default_factory=dict)


# The scope in force, and the graph for which it is.
_CURRENT: ContextVar[tuple[Graph, VariableScope] | None] = ContextVar(
    "headrace_variable_scope", default=None
)
_LOCK = threading.Lock()
# A key that is no name, as those of collections are.
_STORE = ("variable_scope",)


def _store() -> _Store:
    kept = get_default_graph().outermost.get_collection_ref(_STORE)
    with _LOCK:
        if not kept:
            kept.append(_Store())
    found: _Store = kept[0]
    return found


def get_variable_scope() -> VariableScope:
    """Return the variable scope in force; outside of all, that of the graph."""
    current = _CURRENT.get()
    if current is not None and current[0] is get_default_graph().outermost:
        return current[1]
    return _store().root


@contextmanager
def _use(scope: VariableScope) -> Iterator[VariableScope]:
    token = _CURRENT.set((get_default_graph().outermost, scope))
    try:
        yield scope
    finally:
        _CURRENT.reset(token)


@contextmanager
def variable_scope(
    name_or_scope: str | VariableScope | None,
    default_name: str | None = None,
    values: Sequence[Any] | None = None,
    initializer: Any = None,
    regularizer: Callable[[Variable], Any] | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
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
        caching_device: Ignored; steps keep what they read.
        partitioner: Refused; variables are never split.
        custom_getter: Called in place of ``get_variable``, with the getter to call as ``getter``.
        reuse: True to find variables made before, ``AUTO_REUSE`` to make those that are not
            there. Scopes inside of one that reuses do so, too.
        dtype: The dtype of variables where none is given.
        use_resource: Ignored; all variables behave as TensorFlow's resource variables.
        constraint: What optimizers apply to variables after each change.
        auxiliary_name_scope: Whether to open a name scope as well.

    Yields:
        The scope.

    Raises:
        GraphError: if there is no name.
        AttributeValueError: if ``reuse`` is something else, or there is a partitioner.
    """
    del caching_device, use_resource
    _refuse_partitioner(partitioner)
    if reuse not in (None, False, True) and reuse is not AUTO_REUSE:
        raise AttributeValueError(f"reuse must be True, False or hr.AUTO_REUSE, got {reuse!r:.80}")
    if name_or_scope is None and default_name is None:
        raise GraphError("variable_scope needs a name: name_or_scope or default_name")
    if name_or_scope is not None and not isinstance(name_or_scope, str | VariableScope):
        raise GraphError(f"expected a name or a VariableScope, got {name_or_scope!r:.80}")
    if name_or_scope is None and reuse:
        raise AttributeValueError("reuse needs a name_or_scope: a default_name is made unique")
    with ExitStack() as stack:
        if not auxiliary_name_scope:
            inner = None
        elif isinstance(name_or_scope, VariableScope):
            inner = name_or_scope.name.rpartition("/")[2]
        else:
            inner = name_or_scope if name_or_scope is not None else default_name
        opened = ""
        if inner:
            opened = stack.enter_context(name_scope(inner, None, values))
        outer = get_variable_scope()
        counts = _store().counts
        again = isinstance(name_or_scope, VariableScope)
        if isinstance(name_or_scope, VariableScope):
            base, name = name_or_scope, name_or_scope.name
            opened = name_or_scope.original_name_scope
            kept = dict(counts)
        else:
            chosen = name_or_scope
            if chosen is None:
                assert default_name is not None
                chosen = _unique(outer.name, default_name, counts)
            if chosen:
                check_name(chosen)
            base, name = outer, f"{outer.name}/{chosen}" if outer.name else chosen
            kept = {}
        counts[name] = counts.get(name, 0) + 1
        scope = replace(
            base,
            name=name,
            original_name_scope=opened,
            reuse=reuse or base.reuse,
            initializer=base.initializer if initializer is None else initializer,
            regularizer=base.regularizer if regularizer is None else regularizer,
            dtype=base.dtype if dtype is None else as_dtype(dtype),
            constraint=base.constraint if constraint is None else constraint,
            custom_getter=_composed(custom_getter, base.custom_getter),
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


def _composed(
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


def _refuse_partitioner(partitioner: Any) -> None:
    if partitioner is not None:
        raise AttributeValueError(
            "variables are never split into parts; leave partitioner out, and shard a table by "
            "making several variables (hr.nn.embedding_lookup takes a list of them)"
        )


# -- variables by name


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Callable[[Variable], Any] | None = None,
    trainable: bool | None = None,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Callable[[Tensor], Any] | None = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """Make a variable under a name, or find the one that has it, as the variable scope says.

    Args:
        name: The name, to which that of the variable scope is prefixed; name scopes do not matter.
        shape: The shape; not to be given where ``initializer`` is a value.
        dtype: The dtype; the scope's if None, float32 by default.
        initializer: A value, a function of a shape and a keyword ``dtype`` (or of nothing, where
            no shape is given), or a class that makes such. If None the scope's; else floating
            variables start uniform (Glorot), those of integers and booleans as zeros.
        regularizer: A function of the variable, called when it is made; its result, unless None,
            is added to the graph's regularization losses.
        trainable: Whether optimizers change it by default.
        collections: The collections that list it; that of global variables if None.
        caching_device: Ignored; steps keep what they read.
        partitioner: Refused; variables are never split.
        validate_shape: Whether all later values must have the shape.
        use_resource: Ignored.
        custom_getter: Called in place of this function, with a getter to call as ``getter``.
        constraint: What optimizers apply to the value after each change.
        synchronization: Ignored.
        aggregation: Ignored.

    Returns:
        The variable; with a custom getter what that returns.

    Raises:
        GraphError: if the name is taken and the scope does not reuse, or the other way round.
        ShapeError: if the shape is another one than that of the variable found, or not known.
        DTypeError: if the dtype is another one.
    """
    del caching_device, use_resource, synchronization, aggregation
    _refuse_partitioner(partitioner)
    check_name(name)
    scope = get_variable_scope()
    if dtype is not None and initializer is not None and not callable(initializer):
        given = as_tensor(initializer)
        own = given.dtype if given is not None else natural_dtype(initializer)
        # Python's numbers take the dtype asked for.
        plain = given is None and not isinstance(initializer, np.ndarray | np.generic)
        if own != as_dtype(dtype) and not plain:
            raise DTypeError(f"the initializer is {own}, expected {as_dtype(dtype)}")
    options = {
        "name": f"{scope.name}/{name}" if scope.name else name,
        "shape": shape,
        "dtype": as_dtype(dtype) if dtype is not None else scope.dtype,
        "initializer": initializer if initializer is not None else scope.initializer,
        "regularizer": regularizer if regularizer is not None else scope.regularizer,
        "reuse": scope.reuse,
        "trainable": trainable,
        "collections": collections,
        "validate_shape": validate_shape,
        "constraint": constraint if constraint is not None else scope.constraint,
    }
    getter = _composed(custom_getter, scope.custom_getter)
    with init_scope(), name_scope(""):
        return _get(**options) if getter is None else getter(_get, **options)


def _get(
    name: str,
    shape: Any = None,
    dtype: Any = dtypes.float32,
    initializer: Any = None,
    regularizer: Callable[[Variable], Any] | None = None,
    reuse: Any = None,
    trainable: bool | None = None,
    collections: Sequence[str] | None = None,
    validate_shape: bool = True,
    constraint: Callable[[Tensor], Any] | None = None,
    **ignored: Any,
) -> Variable:
    """Make or find a variable of a whole name."""
    del ignored
    store = get_default_graph().outermost.variable_store
    wanted = as_dtype(dtype)
    found = store.get(name)
    if found is not None:
        if reuse is False:
            raise GraphError(
                f"variable {name!r} exists already; enter its scope with reuse=True or "
                "reuse=hr.AUTO_REUSE to share it, or choose another name"
            )
        _check_shared(found, name, shape, wanted)
        return found
    if reuse is True:
        raise GraphError(
            f"there is no variable {name!r} that hr.get_variable made; enter its scope with "
            "reuse=hr.AUTO_REUSE to make those that are not there"
        )
    is_value = initializer is not None and not callable(initializer)
    if is_value and shape is not None:
        raise GraphError(
            f"variable {name!r}: its initializer is a value, which has a shape; leave shape out"
        )
    if isinstance(shape, int):
        shape = [shape]
    start = initializer if is_value else _start(name, shape, wanted, initializer)
    plain = is_value and as_tensor(initializer) is None
    variable = Variable(
        start,
        trainable,
        collections,
        validate_shape,
        name=name,
        dtype=None if is_value and not plain else _value_dtype(start, wanted, is_value),
        constraint=constraint,
    )
    store[name] = variable
    if regularizer is not None:
        with colocate_with(variable.handle), name_scope(f"{name}/Regularizer/"):
            loss = regularizer(variable)
        if loss is not None:
            graph = get_default_graph().outermost
            graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return variable


def _value_dtype(start: Any, wanted: DType, is_value: bool) -> DType | None:
    """Return the dtype of a variable; arrays keep theirs, and numbers of another kind, too."""
    if not is_value:
        return wanted
    own = natural_dtype(start)
    same_kind = own.is_floating and wanted.is_floating
    return wanted if same_kind and not isinstance(start, np.ndarray | np.generic) else own


def _check_shared(found: Variable, name: str, shape: Any, wanted: DType) -> None:
    if shape is not None and not found.shape.is_compatible_with(Shape(shape)):
        raise ShapeError(
            f"variable {name!r} has shape {found.shape}, expected {Shape(shape)} to share it"
        )
    if found.dtype != wanted:
        raise DTypeError(f"variable {name!r} is {found.dtype}, expected {wanted} to share it")


def _start(name: str, shape: Any, dtype: DType, initializer: Any) -> Callable[[], Any]:
    """Return the function that makes the initial value."""
    if initializer is None:
        if dtype.is_floating:
            initializer = glorot_uniform_initializer()
        elif dtype.is_integer or dtype.kind in ("bool", "string"):
            initializer = zeros_initializer()
        else:
            raise AttributeValueError(f"variable {name!r} of {dtype} needs an initializer")
    if isinstance(initializer, type):
        initializer = initializer()
    parameters = _parameters(initializer)
    required = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    known = shape is not None and Shape(shape).is_fully_defined()
    if known:
        dims = Shape(shape).as_list()
        make = initializer
        if any(p.name == "partition_info" for p in parameters):
            return lambda: make(dims, dtype=dtype, partition_info=None)
        return lambda: make(dims, dtype=dtype)
    if not required and not hasattr(initializer, "dtype"):
        return initializer  # type: ignore[no-any-return]
    raise ShapeError(
        f"variable {name!r} needs a shape that is fully known, got {shape!r:.60}; or an "
        "initializer that is a value, or a function without arguments"
    )


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []


def get_local_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Callable[[Variable], Any] | None = None,
    trainable: bool = False,
    collections: Sequence[str] | None = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Callable[..., Any] | None = None,
    constraint: Callable[[Tensor], Any] | None = None,
    synchronization: Any = None,
    aggregation: Any = None,
) -> Any:
    """Make or find a variable as ``get_variable`` does, that is local and not trainable.

    Args:
        name: As for ``get_variable``, and the others likewise.
        shape: The shape.
        dtype: The dtype.
        initializer: Makes the initial value.
        regularizer: A function of the variable.
        trainable: Ignored; local variables are not trained.
        collections: Further collections that list it, besides that of local variables.
        caching_device: Ignored.
        partitioner: Refused.
        validate_shape: Whether all later values must have the shape.
        use_resource: Ignored.
        custom_getter: Called in place of this function.
        constraint: What optimizers apply.
        synchronization: Ignored.
        aggregation: Ignored.
    """
    del trainable, caching_device, use_resource, synchronization, aggregation
    return get_variable(
        name,
        shape,
        dtype,
        initializer,
        regularizer,
        False,
        [*(collections or ()), GraphKeys.LOCAL_VARIABLES],
        partitioner=partitioner,
        validate_shape=validate_shape,
        custom_getter=custom_getter,
        constraint=constraint,
    )


def no_regularizer(_: Any) -> None:
    """Regularize nothing, where the scope around would."""
