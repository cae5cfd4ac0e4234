"""Loops: a function that runs on its own results as long as another one says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace import dtypes
from headrace.arguments import items, nesting
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    GraphError,
    ShapeError,
    StructureError,
    shown,
)
from headrace.graph.convert import convert_to_tensor
from headrace.graph.function import Function, rebuilt
from headrace.graph.indexed_slices import IndexedSlices
from headrace.graph.scopes import (
    colocate_with,
    control_dependencies,
    get_default_graph,
    inside,
    name_scope,
)
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.spec import TensorSpec
from headrace.graph.structure import flatten, pack, same_structure
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.array import stop_gradient
from headrace.ops.declare import Spec, op
from headrace.ops.elementwise import add, less, logical_and
from headrace.ops.function import check_arguments, result_tensors, saved_lists
from headrace.ops.kinds import Value
from headrace.ops.program_order import in_order, is_traced
from headrace.ops.state import read_variable
from headrace.shapes import Shape
from headrace.specs.type_spec import TypeSpec


@op("While", builtin=True, public="")
def while_(
    loop_vars: Sequence[Value] = (),
    cond_inputs: Sequence[Value] = (),
    body_inputs: Sequence[Value] = (),
    *,
    cond: Function,
    body: Function,
    saves: tuple[str, ...] = (),
    run: str = "",
    parallel_iterations: int = 10,
    swap_memory: bool = False,
) -> list[Spec]:
    """The loop variables after the last iteration.

    Args:
        loop_vars: What the first iteration starts from. Without any, the loop runs for the sake
            of what its body does.
        cond_inputs: Further arguments of ``cond``, the same in every iteration.
        body_inputs: Further arguments of ``body``, the same in every iteration.
        cond: Whether to go on: from the loop variables to a scalar bool.
        body: One iteration: from the loop variables to their new values.
        saves: Names of tensors of ``body`` that are wanted besides, for its gradient.
        run: The operation of whose one run this is another view; empty where it stands for itself.
        parallel_iterations: How many iterations may be under way at a time.
        swap_memory: Keep what ``saves`` names in host memory.

    Returns:
        The loop variables; then, for each of ``saves``, a list of the tensor's values, one for
        each iteration.
    """
    check_arguments([*loop_vars, *cond_inputs], cond)
    check_arguments([*loop_vars, *body_inputs], body)
    count = len(loop_vars)
    if [t.dtype for t in cond.results] != [dtypes.bool_] or cond.results[0].shape.rank:
        raise DTypeError(f"cond must return one bool scalar, got {[*cond.results]}")
    if len(body.results) != count:
        raise GraphError(f"body takes {count} loop variables and returns {len(body.results)}")
    found = []
    for i, (before, after) in enumerate(zip(body.parameters[:count], body.results, strict=True)):
        if before.dtype != after.dtype:
            raise DTypeError(f"loop variable {i} is {before.dtype}, and {after.dtype} afterwards")
        if not after.shape.is_compatible_with(before.shape):
            raise ShapeError(
                f"loop variable {i} is {before.spec.shape}, and {after.spec.shape} afterwards"
            )
        found.append(TensorSpec(before.dtype, before.spec.shape, content=before.spec.content))
    return [*found, *saved_lists(body, saves)]


def while_loop(
    cond: Any,
    body: Any,
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: Any = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
    maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """Repeat ``body`` while ``cond`` is true, and return the loop variables that come out.

    Both functions are called once, now, to build the loop. Variables that the loop reads and does
    not assign are read once, before it.

    Args:
        cond: From the loop variables, one argument each, to a scalar bool tensor.
        body: From the loop variables to their new values: the same structure and dtypes, and shapes
            that fit the invariants.
        loop_vars: What to start from: tensors, ``TensorArray`` and other composite values, or
            lists, tuples and dicts of these.
        shape_invariants: A structure of shapes, one for each tensor: what is true of the variable's
            shape in every iteration. Those of ``loop_vars`` if None.
        parallel_iterations: How many iterations may be under way at a time, >= 1. Where something
            in them waits or calls a Python function, it does so beside that of other iterations,
            as far as it does not need what these make. Results do not depend on it, nor does which
            error is raised; variables, queues and the like are changed, and random numbers drawn,
            in the order of the iterations. Python functions of several iterations are called in
            no order; 1 keeps it, and so does an iteration whose results wait for the call.
        back_prop: Whether gradients flow through the loop.
        swap_memory: Keep in host memory what the gradient needs of every iteration.
        name: The name of the scope.
        maximum_iterations: A scalar integer: the loop ends after so many iterations at the latest.
        return_same_structure: Return a single tensor in its list or tuple, too.

    Returns:
        The structure that ``body`` returns, which is that of ``loop_vars`` but for lists and
        tuples outermost. Of a single tensor in a list the tensor.

    Raises:
        GraphError: if a function is none.
        StructureError: if ``body`` returns another structure.
        DTypeError: if ``cond`` returns no bool, or a loop variable changes its dtype.
        ShapeError: if a loop variable does not keep to its invariant, or ``cond`` is no scalar.
        AttributeValueError: if ``parallel_iterations`` is no positive integer.
    """
    if not callable(cond) or not callable(body):
        raise GraphError("while_loop takes two functions of the loop variables, cond and body")
    if loop_vars is None or not flatten(loop_vars):
        raise GraphError("while_loop needs at least one loop variable")
    if not isinstance(parallel_iterations, int) or parallel_iterations < 1:
        raise AttributeValueError(
            f"parallel_iterations must be a positive integer, got {shown(parallel_iterations)}"
        )
    with name_scope(name, "while", flatten(loop_vars)) as scope:
        structure = loop_vars if isinstance(loop_vars, list | tuple) else [loop_vars]
        start = [convert_to_tensor(t) for t in flatten(structure)]
        shapes = _invariants(structure, start, shape_invariants)
        limit = None
        if maximum_iterations is not None:
            limit = _limit(maximum_iterations)
            start.append(convert_to_tensor(0, limit.dtype))
            shapes.append(Shape(()))
        specs = [_parameter_spec(t, s) for t, s in zip(start, shapes, strict=True)]
        going = _traced_cond(f"{scope}cond", cond, structure, specs, limit)
        once, form = _traced_body(f"{scope}body", body, structure, specs, limit)
        going, once = _reads_before(going, once)
        with control_dependencies([*going.waits_for, *once.waits_for]):
            results = while_(
                start,
                going.inputs,
                once.inputs,
                cond=going,
                body=once,
                parallel_iterations=parallel_iterations,
                swap_memory=swap_memory,
                name="while",
            )
        kept = list(results[: len(start) - (limit is not None)])
        if not back_prop:
            kept = [stop_gradient(t) for t in kept]
        found = pack(form, kept)
    return found[0] if len(kept) == 1 and not return_same_structure else found


def _limit(maximum_iterations: Any) -> Tensor:
    limit = convert_to_tensor(maximum_iterations)
    if not limit.dtype.is_integer:
        raise DTypeError(f"maximum_iterations must be an integer, got {limit.dtype}")
    if limit.shape.rank not in (None, 0):
        raise ShapeError(f"maximum_iterations must be a scalar, got shape {limit.spec.shape}")
    return limit


def _invariants(structure: Any, start: Sequence[Tensor], given: Any) -> list[Shape]:
    if given is None:
        # Sparse and ragged tensors may grow.
        return [s for value in flatten(structure, False) for s in _parts_of(value, None)]
    with nesting("shape_invariants"):
        shapes = _shapes_of(given)
    values = flatten(structure, False)
    specs = any(isinstance(shape, TypeSpec) for shape in shapes)
    if len(shapes) == len(values) and (specs or len(shapes) < len(start)):
        # One invariant for each sparse tensor, too.
        pairs = zip(values, shapes, strict=True)
        shapes = [s for value, shape in pairs for s in _parts_of(value, shape)]
    if len(shapes) != len(start):
        raise GraphError(
            f"while_loop: {len(shapes)} shape_invariants for {len(start)} loop variables; give one "
            "for each"
        )
    found = []
    for i, (tensor, item) in enumerate(zip(start, shapes, strict=True)):
        shape = tensor.spec.shape if item is None else Shape(item)
        if not _covers(shape, tensor.spec.shape):
            raise ShapeError(
                f"while_loop: loop variable {i} starts with shape {tensor.spec.shape}, which its "
                f"invariant {shape} excludes"
            )
        found.append(shape)
    return found


def _parts_of(value: Any, shape: Any) -> list[Any]:
    """Return the invariants of the parts of a value out of one for all of it.

    Args:
        value: A tensor, a sparse tensor, whose invariant is that of its dense shape, or rows of a
            tensor, whose invariant is that of the rows.
        shape: The invariant as a shape or spec, None for what the value starts with.
    """
    if isinstance(shape, TypeSpec):
        value = value if hasattr(value, "unflatten") else convert_to_tensor(value)
        if not shape.is_compatible_with(value):
            raise ArgumentTypeError(
                f"while_loop: shape_invariants state {shape} for the loop variable {shown(value)}"
            )
        shape = _shape_stated(shape, value)
    if isinstance(value, SparseTensor):
        rank = value.dense_shape.spec.shape[0] if shape is None else Shape(shape)[0]
        return [Shape([None, rank]), Shape([None]), Shape([rank])]
    if isinstance(value, IndexedSlices):
        rows = convert_to_tensor(value.values).spec.shape if shape is None else Shape(shape)
        found = [rows, Shape([rows[0] if rows.rank else None]), Shape([rows.rank])]
        return found[: len(value.flatten())]
    if hasattr(value, "loop_shapes"):
        return list(value.loop_shapes(None if shape is None else Shape(shape)))
    if hasattr(value, "unflatten"):
        return [t.spec.shape for t in map(convert_to_tensor, value.flatten())]
    return [convert_to_tensor(value).spec.shape if shape is None else shape]


def _shape_stated(spec: TypeSpec, value: Any) -> TensorShape | None:
    """Return the invariant that a spec states: of rows their shape, of sparse tensors the rank."""
    if isinstance(value, IndexedSlices):
        whole, *_, indices = spec.facts()
        rows: TensorShape = indices.concatenate(whole[1:])
        return rows
    if isinstance(value, Tensor | SparseTensor) or hasattr(value, "loop_shapes"):
        shape: TensorShape = next(f for f in spec.facts() if isinstance(f, TensorShape))
        return TensorShape([shape.ndims]) if isinstance(value, SparseTensor) else shape
    return None


def _shapes_of(given: Any) -> list[Any]:
    """Return shapes in order; a list of integers is a shape, a list of shapes is not."""
    if isinstance(given, Shape | TensorShape | TypeSpec) or given is None:
        return [given]
    if isinstance(given, dict):
        return [shape for key in sorted(given) for shape in _shapes_of(given[key])]
    if hasattr(given, "shape") and not isinstance(given, list | tuple):
        return [given.shape]
    if isinstance(given, str | bytes):
        raise ArgumentTypeError(f"shape_invariants must hold shapes, got {shown(given)}")
    given = items(given, "shape_invariants")
    if all(item is None or isinstance(item, int) for item in given) and given:
        return [Shape(given)]
    return [shape for item in given for shape in _shapes_of(item)]


def _covers(general: Shape, special: Shape) -> bool:
    """Whether every tensor of the shape ``special`` has the shape ``general``, too."""
    if general.dims is None:
        return True
    if special.dims is None or len(general.dims) != len(special.dims):
        return False
    return all(g is None or g == s for g, s in zip(general.dims, special.dims, strict=True))


def _parameter_spec(tensor: Tensor, shape: Shape) -> TensorSpec:
    return TensorSpec(tensor.dtype, shape, content=tensor.spec.content)


def _arguments(function: Function, structure: Any, specs: Sequence[TensorSpec]) -> list[Any]:
    flat = [function.add_parameter(spec, "loop_var") for spec in specs]
    packed = pack(structure, flat[: len(flatten(structure))])
    values = list(packed.values()) if isinstance(packed, dict) else list(packed)
    return [*values, *flat[len(flatten(structure)) :]]


def _traced_cond(
    name: str,
    cond: Callable[..., Any],
    structure: Any,
    specs: Sequence[TensorSpec],
    limit: Tensor | None,
) -> Function:
    function = Function(name, get_default_graph())
    with inside(function):
        arguments = _arguments(function, structure, specs)
        counter = arguments.pop() if limit is not None else None
        going = convert_to_tensor(cond(*arguments))
        if not going.dtype.is_bool:
            raise DTypeError(
                f"while_loop: cond must return a bool tensor, got {going.dtype}; "
                "compare, as in i < n"
            )
        if going.shape.rank not in (None, 0):
            raise ShapeError(f"while_loop: cond must return a scalar, got shape {going.spec.shape}")
        if limit is not None:
            going = logical_and(less(counter, limit), going)
        function.finish(in_order(function, [going]) if is_traced(function) else [going])
    return function


def _traced_body(
    name: str,
    body: Callable[..., Any],
    structure: Any,
    specs: Sequence[TensorSpec],
    limit: Tensor | None,
) -> tuple[Function, Any]:
    function = Function(name, get_default_graph())
    with inside(function):
        arguments = _arguments(function, structure, specs)
        counter = arguments.pop() if limit is not None else None
        returned = body(*arguments)
        if not isinstance(returned, list | tuple | dict) or (
            len(structure) == 1 and not same_structure(_listed(returned), list(structure))
        ):
            returned = [returned]
        expected = list(structure.values()) if isinstance(structure, dict) else list(structure)
        if not same_structure(_listed(returned), expected):
            raise StructureError(
                f"while_loop: body must return the structure of the loop variables, of which there "
                f"are {len(expected)}; got {shown(returned)}"
            )
        results = result_tensors(flatten(returned), "while_loop: body")
        for i, (spec, result) in enumerate(zip(specs, results, strict=False)):
            _check_invariant(i, spec, result)
        if limit is not None:
            results.append(add(counter, 1))
        function.finish(in_order(function, results) if is_traced(function) else results)
    return function, returned


def _listed(returned: Any) -> list[Any]:
    return list(returned.values()) if isinstance(returned, dict) else list(returned)


def _check_invariant(index: int, spec: TensorSpec, result: Tensor) -> None:
    if result.dtype != spec.dtype:
        raise DTypeError(
            f"while_loop: loop variable {index} enters an iteration as {spec.dtype} and leaves it "
            f"as {result.dtype}; cast it in the body"
        )
    if not _covers(spec.shape, result.spec.shape):
        raise ShapeError(
            f"while_loop: loop variable {index} enters an iteration with shape {spec.shape} and "
            f"leaves it with shape {result.spec.shape}; state what stays the same with "
            "shape_invariants, or set_shape the result in the body"
        )


def _reads_before(cond: Function, body: Function) -> tuple[Function, Function]:
    """Return the functions taking the values of variables that the loop only reads.

    Their reads then happen once, before the loop, on whatever device the variables are.
    """
    handles = [t for f in (cond, body) for t in f.captures if t.dtype.kind == "resource"]
    loose = [h for h in dict.fromkeys(handles) if _only_read(cond, h) and _only_read(body, h)]
    if not loose:
        return cond, body
    values = {}
    for h in loose:
        with colocate_with(h):
            values[h] = read_variable(h, name=f"{h.op.name.rpartition('/')[2]}/read")
    return _with_values(cond, values), _with_values(body, values)


def _only_read(function: Function, handle: Tensor) -> bool:
    parameter = function.captures.get(handle)
    if parameter is None:
        return True
    if parameter.spec.content is None or parameter in function.results:
        return False
    users = [node for node in function.operations if parameter in node.inputs]
    return all(user.type == "ReadVariable" and not user.control_inputs for user in users)


def _with_values(function: Function, values: dict[Tensor, Tensor]) -> Function:
    parameters = {function.captures[h]: v for h, v in values.items() if h in function.captures}
    if not parameters:
        return function
    replaced: dict[Tensor, Callable[[Function], Tensor]] = {}
    for node in function.operations:
        if node.type == "ReadVariable" and node.inputs[0] in parameters:
            replaced[node.outputs[0]] = _captured(parameters[node.inputs[0]])
    return rebuilt(function, replaced, list(values))


def _captured(value: Tensor) -> Callable[[Function], Tensor]:
    return lambda made: made.capture(value)
