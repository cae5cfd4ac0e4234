"""Contractions of tensors: products summed over axes that are named by labels or by position.

Composites: each product of two tensors becomes one batched matrix product.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    ShapeError,
    shown,
    told,
)
from headrace.graph.convert import as_tensor, contains_tensor, convert_to_tensor
from headrace.graph.naming import names_result
from headrace.graph.scopes import control_dependencies, name_scope
from headrace.graph.spec import MAX_RANK
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import static_value
from headrace.ops.array import expand_dims, rank, reshape, shape, transpose
from headrace.ops.constant import range as range_op
from headrace.ops.constant import zeros_like
from headrace.ops.conversion import cast
from headrace.ops.elementwise import (
    floormod,
    greater_equal,
    less,
    logical_and,
    maximum,
    not_equal,
)
from headrace.ops.gather import boolean_mask, gather
from headrace.ops.identity import identity
from headrace.ops.joining import concat
from headrace.ops.linalg import choose, matmul, on_diagonal
from headrace.ops.reduce import reduce_all, reduce_prod, reduce_sum
from headrace.ops.report import assert_true
from headrace.shapes import normalize_axis


@names_result
def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Multiply tensors and sum over pairs of axes.

    Args:
        a: [...], numeric.
        b: [...], the dtype of ``a``.
        axes: How many of the last axes of ``a`` are summed with the first of ``b``, in order; or
            two lists of axes, of ``a`` and of ``b``, or one axis of each. A tensor that only a step
            knows has two rows.
        name: The name of the operations.

    Returns:
        The axes of ``a`` that are left, then those of ``b``; the dtype of ``a``.

    Raises:
        AttributeValueError: if the axes are no pairs.
        ShapeError: if an axis does not exist, or a pair has different sizes.
    """
    with name_scope(name, "Tensordot"):
        x, y = _operands(a, b)
        pairs = _axes_of_step(axes)
        if pairs is not None:
            return _dot_by_masks(x, y, pairs[0], pairs[1])
        if x.shape.rank is None or y.shape.rank is None:
            return _unranked_dot(x, y, axes)
        left, right = _pairs(axes, x.shape.rank, y.shape.rank)
        for i, j in zip(left, right, strict=True):
            mine, theirs = x.spec.shape[i], y.spec.shape[j]
            if mine is not None and theirs is not None and mine != theirs:
                raise ShapeError(
                    f"tensordot: axis {i} of a {x.spec.shape} and axis {j} of b {y.spec.shape} "
                    "differ in size"
                )
        free_x = [i for i in range(x.shape.rank) if i not in left]
        free_y = [j for j in range(y.shape.rank) if j not in right]
        matrix_x = _as_matrix(x, free_x, left, rows_first=True)
        matrix_y = _as_matrix(y, free_y, right, rows_first=False)
        product = matmul(matrix_x, matrix_y)
        return reshape(product, [*_sizes(x, free_x), *_sizes(y, free_y)])


def _operands(a: Any, b: Any) -> tuple[Tensor, Tensor]:
    """Return two tensors; plain data takes the dtype of the other operand."""
    if _is_data(a) and not _is_data(b):
        y = convert_to_tensor(b)
        return convert_to_tensor(a, None, None, y.dtype), y
    x = convert_to_tensor(a)
    return x, convert_to_tensor(b, None, None, x.dtype)


def _is_data(value: Any) -> bool:
    return as_tensor(value) is None and not contains_tensor(value)


def _axes_of_step(axes: Any) -> Tensor | None:
    """Return axes that only a step knows, a row for each tensor; None for all others."""
    tensor = convert_to_tensor(axes) if contains_tensor(axes) else as_tensor(axes)
    if tensor is None or static_value(tensor) is not None:
        return None
    if tensor.dtype not in (dtypes.int32, dtypes.int64):
        raise AttributeValueError(f"tensordot: axes must be integers, got {shown(tensor)}")
    if tensor.shape.rank == 0 or (tensor.shape.rank and tensor.spec.shape[0] not in (2, None)):
        raise AttributeValueError(
            f"tensordot: axes that a step decides have a row for each tensor, got {shown(tensor)}"
        )
    found: Tensor = cast(tensor, dtypes.int32)
    return found


def _axes_argument(axes: Any) -> Any:
    """Return axes as numbers: a count, or two lists."""
    tensor = convert_to_tensor(axes) if contains_tensor(axes) else as_tensor(axes)
    if tensor is not None:
        axes = static_value(tensor)
    if isinstance(axes, np.ndarray):
        axes = axes.tolist()
    if isinstance(axes, int | np.integer) and not isinstance(axes, bool):
        if axes < 0:
            raise AttributeValueError(f"tensordot: axes must be at least 0, got {told(axes)}")
        return int(axes)
    if not isinstance(axes, list | tuple) or len(axes) != 2:
        raise AttributeValueError(
            f"tensordot: axes must be a number, or two lists of axes, got {shown(axes)}"
        )
    pair = []
    for part in axes:
        listed = part if isinstance(part, list | tuple | np.ndarray) else [part]
        if not all(isinstance(i, int | np.integer) and not isinstance(i, bool) for i in listed):
            raise AttributeValueError(f"tensordot: axes must be integers, got {shown(axes)}")
        pair.append([int(i) for i in listed])
    if len(pair[0]) != len(pair[1]):
        raise AttributeValueError(f"tensordot: axes must be pairs, got {shown(axes)}")
    return tuple(pair)


def _pairs(axes: Any, rank_a: int, rank_b: int) -> tuple[list[int], list[int]]:
    """Return the axes to sum over, counted from the front."""
    given = _axes_argument(axes)
    if isinstance(given, int):
        if given > min(rank_a, rank_b):
            raise ShapeError(
                f"tensordot: {shown(given)} axes are more than a tensor of rank "
                f"{min(rank_a, rank_b)} has"
            )
        return list(range(rank_a - given, rank_a)), list(range(given))
    left = [normalize_axis(i, rank_a, "tensordot: axis") for i in given[0]]
    right = [normalize_axis(i, rank_b, "tensordot: axis") for i in given[1]]
    if len(set(left)) < len(left) or len(set(right)) < len(right):
        raise AttributeValueError(f"tensordot: an axis is named twice in {shown(axes)}")
    return left, right


def _unranked_dot(x: Tensor, y: Tensor, axes: Any) -> Tensor:
    """Contract tensors of which one or both have an unknown rank."""
    given = _axes_argument(axes)
    if not isinstance(given, int):
        for axis in (*given[0], *given[1]):
            if not -MAX_RANK <= axis < MAX_RANK:
                raise AttributeValueError(
                    f"tensordot: no tensor has an axis {axis}, as in axes {shown(axes)}"
                )
        left, right = (np.array(axes, np.int32).reshape(-1) for axes in given)
        return _dot_by_masks(x, y, left, right)
    for side in (x, y):
        if side.shape.rank is not None and given > side.shape.rank:
            raise ShapeError(f"tensordot: {given} axes are more than {side!r} has")
    enough = [greater_equal(rank(side), given) for side in (x, y)]
    with control_dependencies([assert_true(each, ["tensordot: axes", given]) for each in enough]):
        dims_x, dims_y = identity(shape(x)), identity(shape(y))
    split = shape(dims_x)[0] - given
    rows, columns = reduce_prod(dims_x[:split]), reduce_prod(dims_y[given:])
    # Of either side its own: where nothing is in it, it has any shape.
    matrix_x = reshape(x, [rows, reduce_prod(dims_x[split:])])
    matrix_y = reshape(y, [reduce_prod(dims_y[:given]), columns])
    product = matmul(matrix_x, matrix_y)
    return reshape(product, concat([dims_x[:split], dims_y[given:]], 0))


def _dot_by_masks(x: Tensor, y: Tensor, left: Any, right: Any) -> Tensor:
    """Contract tensors along axes that need not be known, each a vector or a scalar."""
    one, other = _matrix_by_masks(x, left), _matrix_by_masks(y, right)
    product = matmul(one[0], other[0], transpose_b=True)
    return reshape(product, concat([one[1], other[1]], 0))


def _matrix_by_masks(x: Tensor, axes: Any) -> tuple[Tensor, Tensor]:
    """Return [free, summed] and the sizes of the free axes, of a tensor of unknown rank."""
    dims = shape(x)
    size = shape(dims)[0]
    every = range_op(size)
    given = reshape(convert_to_tensor(axes), [-1])
    there = reduce_all(logical_and(greater_equal(given, -size), less(given, size)))
    with control_dependencies([assert_true(there, ["tensordot: axes", given])]):
        # A scalar has no axis to count from the end.
        summed = floormod(given, maximum(size, 1))
    apart = reduce_all(not_equal(expand_dims(every, 1), expand_dims(summed, 0)), 1)
    free = boolean_mask(every, apart)
    moved = transpose(x, concat([free, summed], 0))
    kept = gather(dims, free)
    rows, columns = reduce_prod(kept), reduce_prod(gather(dims, summed))
    return reshape(moved, [rows, columns]), kept


def _sizes(x: Tensor, axes: Sequence[int]) -> list[Any]:
    """Return the sizes of axes: numbers where they are known, else tensors."""
    known = [x.spec.shape[i] if x.shape.rank is not None else None for i in axes]
    if None not in known:
        return known
    dims = shape(x)
    return [dims[i] if size is None else size for i, size in zip(axes, known, strict=True)]


def _product(sizes: Sequence[Any]) -> Any:
    total: Any = 1
    for size in sizes:
        total = size if isinstance(total, int) and total == 1 else total * size
    return total


def _as_matrix(x: Tensor, free: list[int], summed: list[int], rows_first: bool) -> Tensor:
    """Return a matrix: the free axes as its rows and the summed ones as its columns, or swapped."""
    order = [*free, *summed] if rows_first else [*summed, *free]
    moved = x if order == list(range(len(order))) else transpose(x, order)
    rows, columns = _product(_sizes(x, free)), _product(_sizes(x, summed))
    return reshape(moved, [rows, columns] if rows_first else [columns, rows])


def einsum(equation: str, *inputs: Any, **kwargs: Any) -> Tensor:
    """Multiply tensors and sum over axes, both named by an equation.

    In ``"ij,jk->ik"`` each letter labels an axis. Axes with the same letter are multiplied
    element by element; those whose letter is missing on the right are summed. A letter that one
    tensor has twice takes its diagonal. ``...`` stands for further axes, which broadcast. Without
    ``->`` the result has the letters that occur once, in alphabetical order.

    Tensors are contracted in pairs from left to right, each pair by one batched matrix product.

    Args:
        equation: The labels.
        inputs: The tensors, one for each group of labels; or one list of them.
        kwargs: ``name``, the name of the operations.

    Returns:
        A tensor with the axes on the right, of the dtype of the inputs.

    Raises:
        ArgumentTypeError: if there are other keyword arguments than ``name``.
        AttributeValueError: if the equation is malformed, or does not fit the number of inputs.
        ShapeError: if a tensor has not the axes that its labels name, or sizes differ.
    """
    name = kwargs.pop("name", None)
    if kwargs:
        raise ArgumentTypeError(f"einsum: unknown arguments {', '.join(sorted(kwargs))}")
    if len(inputs) == 1 and isinstance(inputs[0], list | tuple):
        inputs = tuple(inputs[0])
    with name_scope(name, "einsum"):
        terms, output = _parsed(equation, len(inputs))
        tensors = _same_dtype(inputs)
        ranks = [_ellipsis_rank(t, x) for t, x in zip(terms, tensors, strict=True)]
        ellipsis = max(ranks)
        if ellipsis and ELLIPSIS not in output:
            raise AttributeValueError(
                f"einsum: the axes of ... are missing on the right of {shown(equation)}"
            )
        parts = [
            _Labeled(x, _labels_of(term, count)).diagonal()
            for term, x, count in zip(terms, tensors, ranks, strict=True)
        ]
        wanted = _labels_of(output, ellipsis)
        _check_sizes(parts, equation)
        left = parts[0]
        for i, right in enumerate(parts[1:], 1):
            later = [*wanted, *(label for part in parts[i + 1 :] for label in part.labels)]
            left = _contracted(left, right, later)
        return left.summed_to(wanted).ordered(wanted).tensor


# How an ellipsis is written among labels.
ELLIPSIS = "."


def _parsed(equation: str, count: int) -> tuple[list[str], str]:
    """Return the labels of each input and those of the output; an ellipsis is one point."""
    if not isinstance(equation, str):
        raise AttributeValueError(f"einsum: the equation must be a string, got {shown(equation)}")
    text = re.sub(r"\s", "", equation).replace("...", ELLIPSIS)
    match = re.fullmatch(r"([a-zA-Z.,]*)(?:->([a-zA-Z.]*))?", text)
    if match is None:
        raise AttributeValueError(
            f"einsum: {equation!r} is no equation: expected letters and ... separated by commas, "
            "then -> and those of the result"
        )
    terms = match[1].split(",")
    output = match[2]
    if any(part.count(ELLIPSIS) > 1 for part in (*terms, output or "")):
        raise AttributeValueError(f"einsum: {equation!r} has more than one ... in a term")
    if len(terms) != count:
        raise AttributeValueError(f"einsum: {equation!r} takes {len(terms)} inputs, got {count}")
    letters = "".join(terms).replace(ELLIPSIS, "")
    if output is None:
        once = sorted(label for label in set(letters) if letters.count(label) == 1)
        return terms, ELLIPSIS * any(ELLIPSIS in term for term in terms) + "".join(once)
    named = output.replace(ELLIPSIS, "")
    if len(set(named)) < len(named):
        raise AttributeValueError(f"einsum: a label stands twice on the right of {shown(equation)}")
    unknown = sorted(set(named) - set(letters))
    if unknown:
        raise AttributeValueError(
            f"einsum: {', '.join(unknown)} on the right of {shown(equation)} is not on the left"
        )
    return terms, output


def _same_dtype(inputs: Sequence[Any]) -> list[Tensor]:
    first = next((i for i in inputs if not _is_data(i)), None)
    dtype = None if first is None else convert_to_tensor(first).dtype
    tensors = [convert_to_tensor(i, None, None, dtype) for i in inputs]
    for tensor in tensors:
        if tensor.dtype != tensors[0].dtype or not tensor.dtype.is_numeric:
            found = ", ".join(str(t.dtype) for t in tensors)
            raise DTypeError(f"einsum: inputs must have one numeric dtype, got {found}")
    return tensors


def _ellipsis_rank(term: str, x: Tensor) -> int:
    """Return how many axes the ellipsis of a term stands for.

    Raises:
        ShapeError: if the tensor has not the axes that the term names.
    """
    letters = len(term.replace(ELLIPSIS, ""))
    if ELLIPSIS not in term:
        if x.shape.rank not in (None, letters):
            raise ShapeError(
                f"einsum: {term!r} names {letters} axes, the tensor has shape {x.spec.shape}"
            )
        return 0
    if x.shape.rank is None:
        raise ShapeError("einsum: ... needs a tensor whose rank is known")
    if x.shape.rank < letters:
        raise ShapeError(
            f"einsum: {term.replace(ELLIPSIS, '...')!r} names at least {letters} axes, the tensor "
            f"has shape {x.spec.shape}"
        )
    return x.shape.rank - letters


def _labels_of(term: str, ellipsis: int) -> list[str]:
    """Return one label per axis; axes of the ellipsis are numbered from the last one."""
    labels: list[str] = []
    for letter in term:
        numbered = [f".{i}" for i in range(ellipsis - 1, -1, -1)]
        labels += numbered if letter == ELLIPSIS else [letter]
    return labels


class _Labeled:
    """A tensor with a label for each axis."""

    def __init__(self, tensor: Tensor, labels: list[str]) -> None:
        # A permutation that changes nothing states a rank that was not known.
        known = tensor.shape.rank is not None
        self.tensor = tensor if known else transpose(tensor, list(range(len(labels))))
        self.labels = labels

    def size(self, label: str) -> Any:
        """Return the size of an axis: a number where it is known, else a tensor."""
        return _sizes(self.tensor, [self.labels.index(label)])[0]

    def sized_as(self, other: _Labeled, labels: Sequence[str]) -> _Labeled:
        """Return the tensor, refused in the step if axes with these labels differ in size."""
        unsure = [i for i in labels if not isinstance(self.size(i), int)]
        unsure += [i for i in labels if not isinstance(other.size(i), int)]
        if not unsure:
            return self
        dims = [other.size(i) if i in unsure else self.size(i) for i in self.labels]
        return _Labeled(reshape(self.tensor, dims), self.labels)

    def ordered(self, labels: list[str]) -> _Labeled:
        """Return the tensor with its axes in another order."""
        if labels == self.labels:
            return self
        return _Labeled(transpose(self.tensor, [self.labels.index(i) for i in labels]), labels)

    def summed_to(self, kept: Sequence[str]) -> _Labeled:
        """Return the sum over the axes whose label is not kept."""
        axes = [i for i, label in enumerate(self.labels) if label not in kept]
        if not axes:
            return self
        return _Labeled(
            reduce_sum(self.tensor, axes), [label for label in self.labels if label in kept]
        )

    def diagonal(self) -> _Labeled:
        """Return the tensor with each label once: diagonals of those that it has twice."""
        found = self
        for label in dict.fromkeys(self.labels):
            while found.labels.count(label) > 1:
                first = found.labels.index(label)
                second = found.labels.index(label, first + 1)
                rest = [i for i in range(len(found.labels)) if i not in (first, second)]
                x = transpose(found.tensor, [*rest, first, second])
                sizes = [x.spec.shape[i] for i in (-2, -1)]
                if None not in sizes and sizes[0] != sizes[1]:
                    raise ShapeError(
                        f"einsum: the axes labeled {label} differ in size: {sizes[0]}, {sizes[1]}"
                    )
                if None in sizes:
                    # Refused in the step, unless the axes have one size.
                    dims = _sizes(x, range(len(rest) + 1))
                    x = reshape(x, [*dims, dims[-1]])
                mask = on_diagonal(x)
                line = reduce_sum(choose(mask, x, zeros_like(x)), -2)
                found = _Labeled(line, [*(found.labels[i] for i in rest), label])
        return found


def _check_sizes(parts: Sequence[_Labeled], equation: str) -> None:
    """Refuse axes of one letter that are known to differ; those of an ellipsis broadcast."""
    known: dict[str, int] = {}
    for part in parts:
        for label, size in zip(
            part.labels, part.tensor.spec.shape.dims or [None] * len(part.labels), strict=True
        ):
            if label.startswith(ELLIPSIS) or size is None:
                continue
            if known.setdefault(label, size) != size:
                raise ShapeError(
                    f"einsum: axes labeled {label} in {equation!r} differ in size: "
                    f"{known[label]} and {size}"
                )


def _contracted(left: _Labeled, right: _Labeled, later: Sequence[str]) -> _Labeled:
    """Multiply two tensors, and sum over what neither the result nor another tensor has."""
    left = left.summed_to([*later, *right.labels])
    right = right.summed_to([*later, *left.labels])
    both = [label for label in left.labels if label in right.labels]
    right = right.sized_as(left, [label for label in both if not label.startswith(ELLIPSIS)])
    summed = [label for label in both if label not in later]
    batch = [label for label in both if label in later]
    free_left = [label for label in left.labels if label not in both]
    free_right = [label for label in right.labels if label not in both]
    labels = [*batch, *free_left, *free_right]
    if not summed:
        x = left.ordered([*batch, *free_left]).tensor
        y = right.ordered([*batch, *free_right]).tensor
        if free_left and free_right:
            dims = [*_sizes(y, range(len(batch))), *([1] * len(free_left))]
            y = reshape(y, [*dims, *_sizes(y, range(len(batch), len(right.labels)))])
            x = reshape(x, [*_sizes(x, range(len(left.labels))), *([1] * len(free_right))])
        elif free_left:
            y = reshape(y, [*_sizes(y, range(len(batch))), *([1] * len(free_left))])
        elif free_right:
            x = reshape(x, [*_sizes(x, range(len(batch))), *([1] * len(free_right))])
        return _Labeled(x * y, labels)
    x = _grouped(left.ordered([*batch, *free_left, *summed]).tensor, len(batch), len(free_left))
    y = _grouped(right.ordered([*batch, *summed, *free_right]).tensor, len(batch), len(summed))
    product = matmul(x, y)
    if len(free_left) == len(free_right) == 1:
        return _Labeled(product, labels)
    dims = _sizes(product, range(len(batch)))
    dims += [left.size(label) for label in free_left] + [right.size(label) for label in free_right]
    return _Labeled(reshape(product, dims), labels)


def _grouped(x: Tensor, batch: int, first: int) -> Tensor:
    """Return matrices behind ``batch`` leading axes: ``first`` axes as rows, others as columns."""
    rank = len(x.spec.shape)
    if first == 1 and rank - batch == 2:
        return x
    rows = _product(_sizes(x, range(batch, batch + first)))
    columns = _product(_sizes(x, range(batch + first, rank)))
    return reshape(x, [*_sizes(x, range(batch)), rows, columns])
