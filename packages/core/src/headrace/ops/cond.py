"""Conditions: of several functions only one runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from headrace import dtypes
from headrace.arguments import items
from headrace.errors import (
    ArgumentTypeError,
    DTypeError,
    GraphError,
    ShapeError,
    StructureError,
    shown,
    told,
)
from headrace.graph.convert import convert_to_tensor
from headrace.graph.function import Function
from headrace.graph.indexed_slices import IndexedSlices
from headrace.graph.operation import Operation
from headrace.graph.scopes import control_dependencies, get_default_graph, inside, name_scope
from headrace.graph.spec import TensorSpec
from headrace.graph.structure import flatten, pack, same_structure
from headrace.graph.tensor import Tensor
from headrace.ops.control import common_shape
from headrace.ops.conversion import cast
from headrace.ops.declare import Spec, op
from headrace.ops.elementwise import equal, logical_and
from headrace.ops.function import check_arguments, result_tensors, saved_lists
from headrace.ops.identity import identity
from headrace.ops.joining import stack
from headrace.ops.kinds import Bool, Value
from headrace.ops.program_order import in_order, is_traced
from headrace.ops.reduce import reduce_any, reduce_sum
from headrace.ops.report import assert_true

Branch = Callable[[], Any]


@op("If", builtin=True, public="")
def if_(
    pred: Bool,
    then_inputs: Sequence[Value] = (),
    else_inputs: Sequence[Value] = (),
    *,
    then_branch: Function,
    else_branch: Function,
    then_saves: tuple[str, ...] = (),
    else_saves: tuple[str, ...] = (),
    run: str = "",
) -> list[Spec]:
    """The results of one of two functions; the other one does not run.

    Args:
        pred: [], which one runs.
        then_inputs: Arguments of ``then_branch``.
        else_inputs: Arguments of ``else_branch``.
        then_branch: Runs where ``pred`` is true.
        else_branch: Runs where it is false; returns as many tensors of the same dtypes.
        then_saves: Names of tensors of ``then_branch`` that are wanted besides, for its gradient.
        else_saves: The same of ``else_branch``.
        run: The operation of whose one run this is another view; empty where it stands for itself.

    Returns:
        What the function returns; then, for each of the ``saves``, a list that holds the tensor if
        its function ran, and is empty otherwise.
    """
    if pred.rank not in (None, 0):
        raise ShapeError(
            f"pred must be a scalar, got shape {pred.shape}; choose element by element with "
            "hr.where, or reduce it with hr.reduce_all or hr.reduce_any"
        )
    check_arguments(then_inputs, then_branch)
    check_arguments(else_inputs, else_branch)
    left, right = then_branch.results, else_branch.results
    if len(left) != len(right):
        raise GraphError(f"the branches return {len(left)} and {len(right)} tensors")
    found = []
    for i, (a, b) in enumerate(zip(left, right, strict=True)):
        if a.dtype != b.dtype:
            raise DTypeError(
                f"result {i} is {a.dtype} in one branch and {b.dtype} in the other, expected one "
                "dtype; convert it with hr.cast, or write a constant of that dtype"
            )
        content = a.spec.content
        if content is not None and b.spec.content is not None:
            content = TensorSpec(content.dtype, common_shape(content.shape, b.spec.content.shape))
        found.append(TensorSpec(a.dtype, common_shape(a.spec.shape, b.spec.shape), content=content))
    lists = saved_lists(then_branch, then_saves) + saved_lists(else_branch, else_saves)
    return [*found, *lists]


def cond(
    pred: Any,
    true_fn: Branch | None = None,
    false_fn: Branch | None = None,
    strict: bool = False,
    name: str | None = None,
    fn1: Branch | None = None,
    fn2: Branch | None = None,
) -> Any:
    """Return what one of two functions builds, the one that a condition chooses when it runs.

    Both functions are called now, to build the branches. Of what they build, only the branch that
    is taken runs; what was built outside of them runs in any case.

    Args:
        pred: [], bool.
        true_fn: Returns tensors, or lists, tuples and dicts of these.
        false_fn: Returns the same structure, with the same dtypes.
        strict: Return lists and tuples of one tensor as such, instead of the tensor.
        name: The name of the scope.
        fn1: An old name of ``true_fn``.
        fn2: An old name of ``false_fn``.

    Returns:
        The structure of tensors that the branches return. An operation among them gives the value
        of ``pred``, once it has finished. What a step does not need of the structure is not
        computed in it.

    Raises:
        DTypeError: if ``pred`` is no bool tensor, or the dtypes of the branches differ.
        StructureError: if the structures that they return differ.
        GraphError: if one of them returns None, or both nothing.
    """
    on_true: Any = fn1 if true_fn is None else true_fn
    on_false: Any = fn2 if false_fn is None else false_fn
    for label, given in (("true_fn", on_true), ("false_fn", on_false)):
        if not callable(given):
            raise ArgumentTypeError(
                f"cond takes two functions without arguments, true_fn and false_fn; {label} is "
                f"{shown(given)}, expected a function such as lambda: x"
            )
    assert on_true is not None
    assert on_false is not None
    if isinstance(pred, bool):
        raise DTypeError(
            "cond: pred is a Python bool, so that nothing is left to decide when the graph runs; "
            "use Python's own 'if'"
        )
    with name_scope(name, "cond", [pred]) as scope:
        condition = convert_to_tensor(pred)
        then_branch, left = _branch(on_true, f"{scope}then", strict)
        else_branch, right = _branch(on_false, f"{scope}else", strict)
        wide = _wide_indices(left, right)
        for branch, returned, label in (
            (then_branch, left, "true_fn"),
            (else_branch, right, "false_fn"),
        ):
            with inside(branch):
                found = result_tensors(flatten(returned), label, done=branch is then_branch)
                for i in wide:
                    found[i] = cast(found[i], dtypes.int64)
                branch.finish(in_order(branch, found) if is_traced(branch) else found)
        if not same_structure(left, right):
            raise StructureError(
                "cond: true_fn and false_fn must return the same structure, got "
                f"{_form(left)} and {_form(right)}"
            )
        if not then_branch.results:
            raise GraphError("cond: true_fn and false_fn must return one tensor at least")
        with control_dependencies([*then_branch.waits_for, *else_branch.waits_for]):
            results = if_(
                condition,
                then_branch.inputs,
                else_branch.inputs,
                then_branch=then_branch,
                else_branch=else_branch,
                name="if",
            )
    return _unpacked(pack(left, list(results)), strict)


def _branch(build: Branch, name: str, strict: bool) -> tuple[Function, Any]:
    function = Function(name, get_default_graph())
    with inside(function):
        returned = _unpacked(build(), strict)
    return function, returned


def _wide_indices(left: Any, right: Any) -> set[int]:
    """Return which results are int32 indices of rows where the other branch has int64."""
    found, at = set(), 0
    pairs = zip(flatten(left, False), flatten(right, False), strict=False)
    for one, other in pairs:
        both = isinstance(one, IndexedSlices) and isinstance(other, IndexedSlices)
        if both and one.indices.dtype != other.indices.dtype:
            found.add(at + next(i for i, t in enumerate(one.flatten()) if t is one.indices))
        at += len(one.flatten()) if hasattr(one, "unflatten") else 1
    return found


def _unpacked(structure: Any, strict: bool) -> Any:
    """Return the tensor in a list or tuple of one, where ``strict`` does not ask for the list."""
    single = isinstance(structure, list | tuple) and len(structure) == 1
    return structure[0] if single and not strict else structure


def _form(structure: Any) -> str:
    if isinstance(structure, Mapping):
        return f"a dict of {sorted(map(told, structure))}"
    if isinstance(structure, list | tuple):
        return f"a {type(structure).__name__} of {len(structure)}"
    return type(structure).__name__


def smart_cond(
    pred: Any,
    true_fn: Branch | None = None,
    false_fn: Branch | None = None,
    name: str | None = None,
) -> Any:
    """Call one of two functions where ``pred`` is known already, else build a ``cond``."""
    known = pred if isinstance(pred, bool) else getattr(getattr(pred, "spec", None), "value", None)
    if known is None:
        return cond(pred, true_fn, false_fn, name=name)
    chosen = true_fn if bool(known) else false_fn
    assert chosen is not None
    return chosen()


def case(
    pred_fn_pairs: Any,
    default: Branch | None = None,
    exclusive: bool = False,
    strict: bool = False,
    name: str = "case",
) -> Any:
    """Return what the function of the first true condition builds; only that one runs.

    Args:
        pred_fn_pairs: Pairs of a scalar bool tensor and a function, or a dict of them.
        default: The function for when no condition is true. Without one, the last function runs
            then, after an assertion that fails.
        exclusive: Refuse, when it runs, more than one true condition.
        strict: Return lists and tuples of one tensor as such, instead of the tensor.
        name: The name of the scope.

    Returns:
        The structure of tensors that the functions return.

    Raises:
        GraphError: if there is no pair, or one is no pair of a tensor and a function.
        DTypeError: if a condition is no bool tensor.
    """
    given = pred_fn_pairs.items() if isinstance(pred_fn_pairs, Mapping) else pred_fn_pairs
    pairs = items(given, "pred_fn_pairs")
    for pair in pairs:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not callable(pair[1]):
            raise GraphError(
                f"case takes pairs of a condition and a function, got {shown(pair)}; a function "
                "is written as lambda: x"
            )
        if not isinstance(pair[0], Tensor) or not pair[0].dtype.is_bool:
            raise DTypeError(
                f"case: a condition must be a scalar bool tensor, got {shown(pair[0])}"
            )
    if not pairs and default is None:
        raise GraphError("case needs at least one pair of a condition and a function")
    if default is not None and not callable(default):
        raise GraphError(f"case: default must be a function, got {shown(default)}")
    if not pairs:
        assert default is not None
        return default()
    with name_scope(name, "case"):
        conditions = [pair[0] for pair in pairs]
        checks = []
        if exclusive:
            checks.append(_at_most_one(conditions))
        last = default
        rest = pairs
        if last is None:
            *rest, (_, last) = pairs
            checks.append(_some_one(conditions))
        with control_dependencies(checks):
            return _chain(rest, last, strict, bool(checks))


def _chain(pairs: Sequence[Any], default: Branch, strict: bool, checked: bool) -> Any:
    if not pairs:
        return _passed_on(default())
    (pred, function), *rest = pairs
    if checked:
        pred = logical_and(pred, True)
    otherwise = (lambda: _chain(rest, default, strict, False)) if rest else default
    return cond(pred, function, otherwise, strict=strict)


def _passed_on(structure: Any) -> Any:
    """Return a structure whose tensors wait for the checks in force."""
    return pack(structure, [identity(convert_to_tensor(t)) for t in flatten(structure)])


def _some_one(conditions: Sequence[Tensor]) -> Operation:
    known = stack(list(conditions))
    return assert_true(reduce_any(known), ["case: none of the conditions is true:", known])


def _at_most_one(conditions: Sequence[Tensor]) -> Operation:
    known = stack(list(conditions))
    few = reduce_sum(cast(known, dtypes.int32)) <= 1
    data = ["case: more than one condition is true, but exclusive=True:", known]
    return assert_true(few, data)


def _is_numbered(pair: Any) -> bool:
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        return False
    return isinstance(pair[0], int) and callable(pair[1])


def switch_case(
    branch_index: Any,
    branch_fns: Any,
    default: Branch | None = None,
    name: str = "switch_case",
) -> Any:
    """Return what the function number ``branch_index`` builds; only that one runs.

    Args:
        branch_index: A tensor [], int32.
        branch_fns: A list of functions, a dict of them by number, or pairs of number and function;
            the numbers are all those from 0 on.
        default: The function for all other numbers; that of the highest number if None.
        name: The name of the scope.

    Returns:
        The structure of tensors that the functions return.

    Raises:
        GraphError: if there is no function, or the numbers are not 0, 1, 2 and so on.
        StructureError: if a number is no Python integer.
        DTypeError: if ``branch_index`` is no int32 tensor.
    """
    if isinstance(branch_fns, Mapping):
        pairs = items(branch_fns.items(), "branch_fns")
    else:
        pairs = items(branch_fns, "branch_fns")
        if pairs and callable(pairs[0]):
            pairs = list(enumerate(pairs))
    if not pairs:
        raise GraphError("switch_case needs at least one function")
    if not all(_is_numbered(pair) for pair in pairs):
        raise StructureError(
            "switch_case needs at least one function, and functions by number as Python ints"
        )
    pairs.sort(key=lambda pair: pair[0])
    numbers = [number for number, _ in pairs]
    if numbers != list(range(len(numbers))):
        raise GraphError(
            f"switch_case: the functions' numbers must be 0 to {len(numbers) - 1}, each once, got "
            f"{shown(numbers)}"
        )
    if not isinstance(branch_index, Tensor) or branch_index.dtype != dtypes.int32:
        raise DTypeError(
            f"switch_case: branch_index must be an int32 tensor, got {shown(branch_index)}"
        )
    with name_scope(name, "switch_case"):
        otherwise = default if default is not None else pairs[-1][1]
        chosen = [(equal(branch_index, number), function) for number, function in pairs]
        return _chain(chosen, otherwise, True, False)
