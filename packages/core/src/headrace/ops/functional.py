"""Loops over the first axis of tensors: maps, folds and scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace.dtypes import DType, as_dtype
from headrace.errors import DTypeError, GraphError, ShapeError, StructureError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.function import Function
from headrace.graph.scopes import get_default_graph, inside, name_scope
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.spec import TensorSpec
from headrace.graph.structure import flatten, pack, same_structure
from headrace.graph.tensor import Tensor
from headrace.ops.array import shape
from headrace.ops.loop import while_loop
from headrace.ops.tensor_array import TensorArray
from headrace.ops.tensor_list import list_unstack
from headrace.shapes import Shape

Fn = Callable[..., Any]


class _RaggedRows:
    """The rows of a ragged tensor, by number."""

    def __init__(self, rows: Any) -> None:
        self._rows = rows
        self.dtype: DType = rows.dtype

    def read(self, index: Any) -> Any:
        return self._rows[index]


def _whole(value: Any) -> Any:
    """Return a value as a tensor; a ragged one as it is."""
    return value if hasattr(value, "row_splits") else convert_to_tensor(value)


class _Elements:
    """The parts of tensors along their first axis, by number."""

    def __init__(self, elems: Any, what: str) -> None:
        self.structure = elems
        if isinstance(elems, SparseTensor):
            raise DTypeError(
                f"{what}: a SparseTensor has no parts; map its values, and make a SparseTensor of "
                "them with its indices and dense_shape"
            )
        leaves = [_whole(e) for e in flatten(elems, composites=False)]
        tensors = [e for e in leaves if isinstance(e, Tensor)]
        if not leaves:
            raise GraphError(f"{what} needs at least one tensor in elems")
        for tensor in tensors:
            if tensor.shape.rank == 0:
                raise ShapeError(f"{what}: elems must have a first axis to loop over, got a scalar")
        shapes = [Shape(e.shape) for e in leaves]
        lengths = {dims[0] for dims in shapes if dims.rank is not None} - {None}
        if len(lengths) > 1:
            raise ShapeError(f"{what}: elems have different lengths {sorted(lengths)}")
        first = leaves[0]
        self.length: Any = lengths.pop() if lengths else None
        if self.length is None:
            self.length = shape(first)[0] if isinstance(first, Tensor) else first.nrows("int32")
        self.arrays: list[Any] = [
            TensorArray(e.dtype, flow=list_unstack(e), element_shape=_rest(e))
            if isinstance(e, Tensor)
            else _RaggedRows(e)
            for e in leaves
        ]

    def __getitem__(self, index: Any) -> Any:
        parts = [array.read(index) for array in self.arrays]
        return pack(self.structure, parts, composites=False)

    @property
    def static_length(self) -> int | None:
        return self.length if isinstance(self.length, int) else None


def map_fn(
    fn: Fn,
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
) -> Any:
    """Apply a function to each part of tensors along their first axis, and stack what it returns.

    Args:
        fn: From a part of ``elems``, in their structure, to tensors.
        elems: A tensor [n, ...], or lists, tuples and dicts of these with one n.
        dtype: The dtypes of what ``fn`` returns, in its structure; those of ``elems`` if None.
        parallel_iterations: How many iterations may be under way at a time, 10 if None.
        back_prop: Whether gradients flow through.
        swap_memory: Keep in host memory what the gradient needs.
        infer_shape: Whether ``fn`` returns the same shapes each time.
        name: The name of the scope.

    Returns:
        [n, ...] for each tensor that ``fn`` returns.

    Raises:
        GraphError: if ``fn`` is no function.
        StructureError: if it returns another structure than ``dtype``.
        DTypeError: if it returns other dtypes.
        ShapeError: if ``elems`` have no first axis, or axes of different lengths.
    """
    _check_function(fn, "map_fn")
    with name_scope(name, "map", flatten(elems)):
        parts = _Elements(elems, "map_fn")
        kinds = [a.dtype for a in parts.arrays]
        # A ragged tensor is one leaf: what the function returns for a row is a tensor.
        form = pack(elems, kinds, composites=False) if dtype is None else dtype
        if dtype is not None:
            kinds = [as_dtype(d) for d in flatten(dtype)]
        arrays = [TensorArray(d, parts.length, infer_shape=infer_shape) for d in kinds]

        def body(i: Tensor, written: Any) -> Any:
            made = fn(parts[i])
            if not same_structure(made, form):
                raise StructureError(
                    "map_fn: fn must return the structure that dtype states (that of elems if it "
                    f"is None), got {shown(made)}"
                )
            values = _converted(flatten(made), kinds)
            return i + 1, [a.write(i, v) for a, v in zip(written, values, strict=True)]

        _, written = while_loop(
            lambda i, _: i < parts.length,
            body,
            (0, arrays),
            parallel_iterations=parallel_iterations or 10,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=parts.length,
        )
        return pack(form, [_stacked(a, parts) for a in written])


def vectorized_map(fn: Fn, elems: Any) -> Any:
    """Apply a function to each part of tensors along their first axis, and stack what it returns.

    It is ``map_fn`` without dtypes, which follow from the function.

    Args:
        fn: From a part of ``elems``, in their structure, to tensors.
        elems: A tensor [n, ...], or lists, tuples and dicts of these with one n.

    Returns:
        [n, ...] for each tensor that ``fn`` returns.

    Raises:
        GraphError: if ``fn`` is no function.
        ShapeError: if ``elems`` have no first axis, or axes of different lengths.
    """
    _check_function(fn, "vectorized_map")
    with name_scope(None, "vectorized_map"):
        tensors = [convert_to_tensor(e) for e in flatten(elems)]
        probe = Function("vectorized_map", get_default_graph())
        with inside(probe):
            parts = [probe.add_parameter(TensorSpec(t.dtype, _rest(t))) for t in tensors]
            made = fn(pack(elems, parts))
            kinds = pack(made, [convert_to_tensor(t).dtype for t in flatten(made)])
        return map_fn(fn, pack(elems, tensors), kinds)


def scan(
    fn: Fn,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Fold a function over parts of tensors along their first axis, and stack all results.

    Args:
        fn: ``fn(accumulated, part)``, from the last result and a part of ``elems`` to a result of
            the structure and dtypes of ``accumulated``.
        elems: A tensor [n, ...], or lists, tuples and dicts of these with one n.
        initializer: The first ``accumulated``; the first part of ``elems`` if None, which is then
            the first result, too.
        parallel_iterations: How many iterations may be under way at a time.
        back_prop: Whether gradients flow through.
        swap_memory: Keep in host memory what the gradient needs.
        infer_shape: Whether ``fn`` returns the same shapes each time.
        reverse: Start with the last part.
        name: The name of the scope.

    Returns:
        [n, ...] for each tensor of a result.

    Raises:
        GraphError: if ``fn`` is no function.
        StructureError: if it returns another structure.
        ShapeError: if ``elems`` have no first axis, or axes of different lengths.
    """
    _check_function(fn, "scan")
    with name_scope(name, "scan", flatten(elems)):
        parts = _Elements(elems, "scan")
        first, start, skipped = _start(parts, initializer, reverse)
        arrays = [
            TensorArray(
                a.dtype,
                parts.length,
                infer_shape=infer_shape,
                element_shape=a.spec.shape if infer_shape else None,
            )
            for a in start
        ]
        if skipped:
            arrays = [a.write(first, v) for a, v in zip(arrays, start, strict=True)]
            first = first - 1 if reverse else first + 1
        form = elems if initializer is None else initializer

        def body(i: Tensor, held: Any, written: Any) -> Any:
            values = _applied("scan", fn, form, held, parts[i])
            after = i - 1 if reverse else i + 1
            return after, values, [a.write(i, v) for a, v in zip(written, values, strict=True)]

        _, _, written = while_loop(
            (lambda i, *_: i >= 0) if reverse else (lambda i, *_: i < parts.length),
            body,
            (first, start, arrays),
            parallel_iterations=parallel_iterations,
            back_prop=back_prop,
            swap_memory=swap_memory,
            maximum_iterations=parts.length,
        )
        return pack(form, [_stacked(a, parts) for a in written])


def foldl(
    fn: Fn,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Fold a function over parts of tensors along their first axis, from the first to the last.

    Args:
        fn: ``fn(accumulated, part)``, from the last result and a part of ``elems`` to a result of
            the structure and dtypes of ``accumulated``.
        elems: A tensor [n, ...], or lists, tuples and dicts of these with one n.
        initializer: The first ``accumulated``; the first part of ``elems`` if None.
        parallel_iterations: How many iterations may be under way at a time.
        back_prop: Whether gradients flow through.
        swap_memory: Keep in host memory what the gradient needs.
        name: The name of the scope.

    Returns:
        The last result.

    Raises:
        GraphError: if ``fn`` is no function.
        StructureError: if it returns another structure.
        ShapeError: if ``elems`` have no first axis, or axes of different lengths.
    """
    options = (parallel_iterations, back_prop, swap_memory)
    return _fold("foldl", fn, elems, initializer, options, name, reverse=False)


def foldr(
    fn: Fn,
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    name: str | None = None,
) -> Any:
    """Fold a function over parts of tensors along their first axis, from the last to the first.

    Args:
        fn: ``fn(accumulated, part)``, from the last result and a part of ``elems`` to a result of
            the structure and dtypes of ``accumulated``.
        elems: A tensor [n, ...], or lists, tuples and dicts of these with one n.
        initializer: The first ``accumulated``; the last part of ``elems`` if None.
        parallel_iterations: How many iterations may be under way at a time.
        back_prop: Whether gradients flow through.
        swap_memory: Keep in host memory what the gradient needs.
        name: The name of the scope.

    Returns:
        The last result.

    Raises:
        GraphError: if ``fn`` is no function.
        StructureError: if it returns another structure.
        ShapeError: if ``elems`` have no first axis, or axes of different lengths.
    """
    options = (parallel_iterations, back_prop, swap_memory)
    return _fold("foldr", fn, elems, initializer, options, name, reverse=True)


def _fold(
    what: str,
    fn: Fn,
    elems: Any,
    initializer: Any,
    options: tuple[int, bool, bool],
    name: str | None,
    reverse: bool,
) -> Any:
    _check_function(fn, what)
    with name_scope(name, what, flatten(elems)):
        parts = _Elements(elems, what)
        first, start, skipped = _start(parts, initializer, reverse)
        if skipped:
            first = first - 1 if reverse else first + 1
        form = elems if initializer is None else initializer

        def body(i: Tensor, held: Any) -> Any:
            return i - 1 if reverse else i + 1, _applied(what, fn, form, held, parts[i])

        _, held = while_loop(
            (lambda i, _: i >= 0) if reverse else (lambda i, _: i < parts.length),
            body,
            (first, start),
            parallel_iterations=options[0],
            back_prop=options[1],
            swap_memory=options[2],
            maximum_iterations=parts.length,
        )
        return pack(form, held)


def _start(parts: _Elements, initializer: Any, reverse: bool) -> tuple[Any, list[Tensor], bool]:
    """Return the first number, what is accumulated before it, and whether that is its part."""
    first = convert_to_tensor(parts.length) - 1 if reverse else convert_to_tensor(0)
    if initializer is not None:
        return first, [convert_to_tensor(t) for t in flatten(initializer)], False
    if parts.static_length == 0:
        raise ShapeError("elems are empty, so that there is no first part; give an initializer")
    return first, [convert_to_tensor(t) for t in flatten(parts[first])], True


def _applied(what: str, fn: Fn, form: Any, held: Any, part: Any) -> list[Tensor]:
    made = fn(pack(form, held), part)
    if not same_structure(made, form):
        raise StructureError(
            f"{what}: fn must return the structure of what it accumulates, got {shown(made)}"
        )
    return _converted(flatten(made), [h.dtype for h in held])


def _converted(values: Sequence[Any], dtypes: Sequence[DType]) -> list[Tensor]:
    pairs = zip(values, dtypes, strict=True)
    return [convert_to_tensor(value, preferred_dtype=dtype) for value, dtype in pairs]


def _stacked(array: TensorArray, parts: _Elements) -> Tensor:
    found = array.stack()
    found.set_shape(
        Shape([parts.static_length]).concatenate(found.spec.shape[1:] if found.shape.rank else None)
    )
    return found


def _rest(tensor: Tensor) -> Shape:
    return Shape(None) if tensor.shape.rank is None else tensor.spec.shape[1:]


def _check_function(fn: Any, what: str) -> None:
    if not callable(fn):
        raise GraphError(f"{what} takes a function first, got {shown(fn)}")
