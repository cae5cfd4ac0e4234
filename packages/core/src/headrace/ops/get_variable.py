"""Variables that are found by name: ``get_variable`` and its relatives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.arguments import items
from headrace.dtypes import DType, as_dtype
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    GraphError,
    ShapeError,
    shown,
)
from headrace.graph.collections import GraphKeys
from headrace.graph.convert import as_tensor, convert_to_tensor, natural_dtype
from headrace.graph.graph_scopes import checked_name
from headrace.graph.scopes import colocate_with, get_default_graph, init_scope, name_scope
from headrace.graph.spec import MAX_RANK
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.indexing import slice_
from headrace.ops.initializers import glorot_uniform_initializer, zeros_initializer
from headrace.ops.partitioned_variable import (
    Part,
    PartitionedVariable,
    PartitionInfo,
    check_partitions,
    parts_of,
)
from headrace.ops.save_slice_info import SaveSliceInfo
from headrace.ops.sharing import (
    VariableAggregation,
    VariableSynchronization,
    checked_sharing,
)
from headrace.ops.variable import Variable
from headrace.ops.variable_scope import get_variable_scope, store, variable_scope
from headrace.shapes import Shape


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
        partitioner: Says into how many parts to divide the variable, as ``fixed_size_partitioner``
            does; the scope's if None. A scalar stays whole.
        validate_shape: Whether all later values must have the shape.
        use_resource: Whether an initial value of unknown shape is allowed; see ``hr.Variable``.
        custom_getter: Called in place of this function, and of the scope's custom getter, with a
            getter to call as ``getter``.
        constraint: What optimizers apply to the value after each change.
        synchronization: Kept, without effect; ``ON_READ`` makes it untrained by default.
        aggregation: Kept, without effect.

    Returns:
        The variable, a ``PartitionedVariable`` where there is a partitioner; with a custom getter
        what that returns.

    Raises:
        GraphError: if the name is taken and the scope does not reuse, or the other way round.
        ShapeError: if the shape is another one than that of the variable found, or not known.
        DTypeError: if the dtype is another one.
        AttributeValueError: if the partitioner is no function, or returns what does not divide
            the shape.
    """
    if partitioner is not None and not callable(partitioner):
        raise AttributeValueError(f"partitioner must be a function, got {shown(partitioner)}")
    name = checked_name(name)
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
        "partitioner": partitioner if partitioner is not None else scope.partitioner,
        "caching_device": caching_device if caching_device is not None else scope.caching_device,
        "use_resource": use_resource if use_resource is not None else scope.use_resource,
        # Custom getters are told what holds where nothing was asked for.
        "synchronization": (
            VariableSynchronization.AUTO if synchronization is None else synchronization
        ),
        "aggregation": VariableAggregation.NONE if aggregation is None else aggregation,
    }
    # One that is given here stands in for the scope's.
    getter = scope.custom_getter if custom_getter is None else custom_getter
    if getter is not None and not callable(getter):
        raise AttributeValueError(f"custom_getter must be a function, got {shown(getter)}")
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
    use_resource: bool | None = None,
    constraint: Callable[[Tensor], Any] | None = None,
    partitioner: Callable[..., Any] | None = None,
    synchronization: Any = None,
    aggregation: Any = None,
    **ignored: Any,
) -> Any:
    """Make or find a variable of a whole name, in parts where there is a partitioner."""
    del ignored
    sharing = checked_sharing(synchronization, aggregation, trainable, name)
    options: dict[str, Any] = {
        "regularizer": regularizer,
        "trainable": sharing[2],
        "collections": collections,
        "validate_shape": validate_shape,
        "use_resource": use_resource,
        "constraint": constraint,
        "sharing": sharing[:2],
    }
    is_scalar = shape is not None and Shape(shape).rank == 0
    found_reusing = reuse is True and name in store().partitioned
    if (partitioner is not None and not is_scalar) or found_reusing:
        return _get_partitioned(name, shape, dtype, initializer, reuse, partitioner, **options)
    if f"{name}/part_0" in get_default_graph().outermost.variable_store:
        raise GraphError(
            f"variable {name!r} is there in parts, as {name}/part_0 and so on: get it with the "
            "partitioner that it was made with, or choose another name"
        )
    return _get_whole(name, shape, dtype, initializer, reuse, **options)


def _get_partitioned(
    name: str,
    shape: Any,
    dtype: Any,
    initializer: Any,
    reuse: Any,
    partitioner: Callable[..., Any] | None,
    **options: Any,
) -> PartitionedVariable:
    """Make or find a partitioned variable of a whole name."""
    wanted = as_dtype(dtype)
    if name in get_default_graph().outermost.variable_store:
        raise GraphError(
            f"variable {name!r} is there as a whole: get it without a partitioner, or choose "
            "another name"
        )
    start = initializer
    if initializer is not None and not callable(initializer):
        start = convert_to_tensor(initializer, preferred_dtype=wanted)
        wanted = start.dtype
        shape = Shape(start.shape).merge_with(Shape(shape))
    partitions = None
    if partitioner is not None:
        if shape is None or not Shape(shape).is_fully_defined():
            raise ShapeError(
                f"variable {name!r} needs a shape that is fully known to be divided, got "
                f"{shown(shape)}"
            )
        asked = partitioner(shape=TensorShape(shape), dtype=wanted)
        partitions = check_partitions(asked, Shape(shape), name)
    known = store().partitioned
    found = known.get(name)
    if found is not None:
        if reuse is False:
            raise GraphError(
                f"variable {name!r} exists already, in {len(found)} parts; enter its scope with "
                "reuse=True or reuse=hr.AUTO_REUSE to share it, or choose another name"
            )
        _check_shared(found, name, shape, wanted)
        if partitions is not None and partitions != found.partitions:
            raise GraphError(
                f"variable {name!r} is divided into {found.partitions} parts, expected "
                f"{partitions} to share it"
            )
        return found
    if reuse is True:
        raise _missing(name)
    assert partitions is not None
    dims = list(Shape(shape).known)
    made = []
    for number, part in enumerate(parts_of(dims, partitions)):
        variable = _get_whole(
            f"{name}/part_{number}",
            None if isinstance(start, Tensor) else part.shape,
            wanted,
            slice_(start, part.offset, part.shape) if isinstance(start, Tensor) else start,
            reuse,
            part=part,
            full_shape=dims,
            **options,
        )
        variable.save_slice_info = SaveSliceInfo(name, dims, part.offset, part.shape)
        made.append(variable)
    known[name] = PartitionedVariable(name, dims, wanted, made, partitions)
    return known[name]


def _missing(name: str) -> GraphError:
    return GraphError(
        f"there is no variable {name!r} that hr.get_variable made; enter its scope with "
        "reuse=hr.AUTO_REUSE to make those that are not there"
    )


def _get_whole(
    name: str,
    shape: Any,
    dtype: Any,
    initializer: Any,
    reuse: Any,
    *,
    regularizer: Callable[[Variable], Any] | None,
    trainable: bool | None,
    collections: Sequence[str] | None,
    validate_shape: bool,
    use_resource: bool | None,
    constraint: Callable[[Tensor], Any] | None,
    sharing: tuple[Any, Any],
    part: Part | None = None,
    full_shape: Sequence[int] = (),
) -> Variable:
    """Make or find one variable, which may be a part of a whole of ``full_shape``."""
    variables = get_default_graph().outermost.variable_store
    wanted = as_dtype(dtype)
    found = variables.get(name)
    if found is not None:
        if reuse is False:
            raise GraphError(
                f"variable {name!r} exists already; enter its scope with reuse=True or "
                "reuse=hr.AUTO_REUSE to share it, or choose another name"
            )
        _check_shared(found, name, shape, wanted)
        return found
    if reuse is True:
        raise _missing(name)
    is_value = initializer is not None and not callable(initializer)
    if is_value and shape is not None:
        raise GraphError(
            f"variable {name!r}: its initializer is a value, which has a shape; leave shape out"
        )
    if isinstance(shape, int):
        shape = [shape]
    info = None if part is None else PartitionInfo(list(full_shape), part.offset)
    start = initializer if is_value else _start(name, shape, wanted, initializer, info)
    plain = is_value and as_tensor(initializer) is None
    variable = Variable(
        start,
        trainable,
        collections,
        validate_shape,
        name=name,
        dtype=None if is_value and not plain else _value_dtype(start, wanted, is_value),
        constraint=constraint,
        use_resource=use_resource,
        synchronization=sharing[0],
        aggregation=sharing[1],
    )
    variables[name] = variable
    if regularizer:  # What is false stands for none, as an empty dict of regularizers does.
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


def _check_shared(
    found: Variable | PartitionedVariable, name: str, shape: Any, wanted: DType
) -> None:
    if shape is not None and not found.shape.is_compatible_with(Shape(shape)):
        raise ShapeError(
            f"variable {name!r} has shape {Shape(found.shape)}, expected {Shape(shape)} to share it"
        )
    if found.dtype != wanted:
        raise DTypeError(f"variable {name!r} is {found.dtype}, expected {wanted} to share it")


def _start(
    name: str, shape: Any, dtype: DType, initializer: Any, info: PartitionInfo | None
) -> Callable[[], Any]:
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
            return lambda: make(dims, dtype=dtype, partition_info=info)
        return lambda: make(dims, dtype=dtype)
    if not required and not hasattr(initializer, "dtype"):
        return initializer  # type: ignore[no-any-return]
    raise ShapeError(
        f"variable {name!r} needs a shape that is fully known, got {shown(shape, 60)}; or an "
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
        partitioner: Says into how many parts to divide it.
        validate_shape: Whether all later values must have the shape.
        use_resource: Ignored.
        custom_getter: Called in place of this function.
        constraint: What optimizers apply.
        synchronization: Kept, without effect.
        aggregation: Kept, without effect.
    """
    del trainable, caching_device, use_resource
    return get_variable(
        name,
        shape,
        dtype,
        initializer,
        regularizer,
        False,
        [*items(collections or (), "collections"), GraphKeys.LOCAL_VARIABLES],
        partitioner=partitioner,
        validate_shape=validate_shape,
        custom_getter=custom_getter,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )


def create_partitioned_variables(
    shape: Sequence[int],
    slicing: Sequence[int],
    initializer: Any,
    dtype: Any = dtypes.float32,
    trainable: bool = True,
    collections: Sequence[str] | None = None,
    name: str | None = None,
    reuse: Any = None,
) -> list[Variable]:
    """Make the parts of a partitioned variable.

    Args:
        shape: The shape of the whole.
        slicing: The number of parts for each axis, of which one may be above 1.
        initializer: A value of the shape, or a function of a part's shape.
        dtype: The dtype, where the initializer is no tensor.
        trainable: Whether optimizers change them by default.
        collections: The collections that list them; that of global variables if None.
        name: The name of the whole; "PartitionedVariable", made unique, if None.
        reuse: True to find parts made before; as in the variable scope around if None.

    Raises:
        AttributeValueError: if ``slicing`` does not divide the shape.
    """
    shape, slicing = items(shape, "shape", MAX_RANK), items(slicing, "slicing", MAX_RANK)
    if len(shape) != len(slicing) or not shape:
        raise AttributeValueError(
            f"slicing must have a number for each axis of shape {shown(list(shape))}, of which "
            f"there must be at least one, got {shown(list(slicing))}"
        )
    with (
        variable_scope(name, "PartitionedVariable", reuse=reuse) as scope,
        init_scope(),
        name_scope(""),
    ):
        made = _get_partitioned(
            scope.name,
            shape,
            dtype,
            initializer,
            scope.reuse,
            lambda **unused: list(slicing),
            regularizer=scope.regularizer,
            trainable=trainable,
            collections=collections,
            validate_shape=True,
            use_resource=None,
            constraint=scope.constraint,
            sharing=checked_sharing(None, None, trainable, scope.name)[:2],
        )
    return list(made)
