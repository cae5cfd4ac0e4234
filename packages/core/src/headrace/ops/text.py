"""Strings: joining, splitting, searching and changing them. Strings are bytes, text is UTF-8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from headrace import dtypes
from headrace.arguments import items
from headrace.dtypes import DType
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown, told
from headrace.graph.convert import as_tensor, convert_to_tensor, natural_dtype
from headrace.graph.dispatch import dispatched
from headrace.graph.schema import OPERATORS
from headrace.graph.scopes import name_scope
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.spec import TensorSpec, like
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat, gather, rank, reshape, shape
from headrace.ops.constant import constant
from headrace.ops.constant import range as range_of
from headrace.ops.conversion import cast
from headrace.ops.declare import Spec, op
from headrace.ops.elementwise import subtract
from headrace.ops.identity import ensure_shape
from headrace.ops.kinds import Index, Integer, String, Whole
from headrace.regex import compile_pattern, parse_rewrite
from headrace.shapes import SCALAR, Shape, broadcast

_TEXT = "strings have no gradient"

Unit = Literal["BYTE", "UTF8_CHAR"]
Handling = Literal["strict", "replace", "ignore"]


@op("StringJoin", public="", no_gradient=_TEXT)
def _join(inputs: Sequence[String], separator: str) -> Spec:
    """Join strings elementwise.

    Args:
        inputs: Strings, each a scalar or of the shape of the others.
        separator: What goes between.

    Returns:
        The shape of the inputs that are no scalars, string.
    """
    shape = SCALAR
    for spec in inputs:
        if spec.rank == 0:
            continue
        if shape.rank == 0:
            shape = spec.shape
        elif not shape.is_compatible_with(spec.shape):
            raise ShapeError(
                f"inputs must be scalars or have one shape, got {shape} and {spec.shape}"
            )
        else:
            shape = shape.merge_with(spec.shape)
    return TensorSpec(dtypes.string, shape)


@dispatched("inputs")
def string_join(inputs: Sequence[Any], separator: str = "", name: str | None = None) -> Tensor:
    """Join strings elementwise.

    Args:
        inputs: Strings, each a scalar or of the shape of the others.
        separator: What goes between them.
        name: The name of the operation.

    Returns:
        The shape of the inputs that are no scalars, string; an empty scalar where there are none.

    Raises:
        ShapeError: if two that are no scalars have different shapes.
    """
    listed = items(inputs, "inputs")
    if not listed:
        return constant("", name=name or "StringJoin")
    return _join(listed, separator, name=name or "StringJoin")


@op(
    "UnsortedSegmentJoin",
    host_inputs=["num_segments"],
    public="strings.unsorted_segment_join",
    no_gradient=_TEXT,
)
def unsorted_segment_join(
    inputs: String, segment_ids: Index, num_segments: Whole, separator: str = ""
) -> Spec:
    """Join the strings that have the same id, in the order in which they stand.

    Args:
        inputs: [ids..., ...], string.
        segment_ids: [ids...], int32 or int64; the leading axes of ``inputs``. Ids that are
            negative or too large raise when it runs.
        num_segments: [], how many strings there are for each id.
        separator: What goes between them.

    Returns:
        [num_segments, ...], string; empty for ids that do not occur.
    """
    if num_segments.rank not in (None, 0):
        raise ShapeError(f"num_segments must be a scalar, got shape {num_segments.shape}")
    count = None if num_segments.value is None else int(num_segments.value)
    if count is not None and count < 0:
        raise AttributeValueError(f"num_segments must not be negative, got {count}")
    if inputs.shape.dims is None or segment_ids.shape.dims is None:
        return TensorSpec(dtypes.string, Shape(None))
    lead = len(segment_ids.shape.dims)
    if not segment_ids.shape.is_compatible_with(inputs.shape[:lead]):
        raise ShapeError(
            f"segment_ids {segment_ids.shape} must be the leading axes of inputs {inputs.shape}"
        )
    return TensorSpec(dtypes.string, Shape([count]).concatenate(inputs.shape[lead:]))


def _split_specs(source: TensorSpec) -> tuple[Spec, Spec, Spec]:
    if source.rank not in (None, 1):
        raise ShapeError(f"the strings to split must be a vector, got shape {source.shape}")
    pieces = Shape([None])
    return (
        TensorSpec(dtypes.int64, Shape([None, 2])),
        TensorSpec(dtypes.string, pieces),
        TensorSpec(dtypes.int64, Shape([2])),
    )


@op("StringSplit", public="", no_gradient=_TEXT)
def _string_split(source: String, delimiter: String, skip_empty: bool) -> tuple[Spec, Spec, Spec]:
    """Split strings at any of some bytes.

    Args:
        source: [n], string.
        delimiter: [], the bytes to split at; empty to split into single bytes.
        skip_empty: Whether empty pieces are left out.

    Returns:
        The pieces as a sparse matrix: indices [pieces, 2], values [pieces] and shape [2].
    """
    _scalar(delimiter, "delimiter")
    return _split_specs(source)


@op("StringSplitV2", public="", no_gradient=_TEXT)
def _split_words(source: String, sep: String, maxsplit: int) -> tuple[Spec, Spec, Spec]:
    """Split strings at a separator, as Python's ``split`` does.

    Args:
        source: [n], string.
        sep: [], the separator; empty for runs of white space.
        maxsplit: How often to split at most; -1 for no limit.

    Returns:
        The pieces as a sparse matrix: indices [pieces, 2], values [pieces] and shape [2].
    """
    _scalar(sep, "sep")
    return _split_specs(source)


def _scalar(spec: TensorSpec, label: str) -> None:
    if spec.rank not in (None, 0):
        raise ShapeError(f"{label} must be a scalar, got shape {spec.shape}")


def _as_asked(
    result_type: str, strings: Any, indices: Tensor, values: Tensor, dense_shape: Tensor
) -> Any:
    """Return pieces of strings as a sparse tensor, or as a ragged one.

    Raises:
        AttributeValueError: if something else is asked for.
    """
    if result_type == "RaggedTensor":
        return OPERATORS["pieces_of_rows"](strings, indices, values, dense_shape)
    if result_type != "SparseTensor":
        raise AttributeValueError(
            f"result_type must be 'SparseTensor' or 'RaggedTensor', got {shown(result_type, 40)}"
        )
    return SparseTensor(indices, values, dense_shape)


def string_split(
    source: Any,
    sep: Any = None,
    skip_empty: bool = True,
    delimiter: Any = None,
    result_type: str = "SparseTensor",
    name: str | None = None,
) -> Any:
    """Split strings at any byte of a set.

    Args:
        source: [n], string.
        sep: [], each of its bytes is a separator. A space if neither it nor ``delimiter`` is
            given; empty to split into single bytes.
        skip_empty: Whether empty pieces are left out. An empty string has none anyway.
        delimiter: Another name of ``sep``.
        result_type: "SparseTensor" or "RaggedTensor".
        name: The name of the scope.

    Returns:
        [n, most pieces], string: row ``i`` has the pieces of ``source[i]`` from the left.

    Raises:
        ShapeError: if ``source`` is no vector, or ``sep`` no scalar.
    """
    if sep is not None and delimiter is not None:
        raise AttributeValueError("give sep or delimiter, not both")
    chosen = sep if sep is not None else delimiter if delimiter is not None else " "
    with name_scope(name, "StringSplit"):
        pieces = _string_split(source, chosen, bool(skip_empty))
        return _as_asked(result_type, source, *pieces)


@dispatched()
def strings_split(
    input: Any = None,
    sep: Any = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> Any:
    """Split strings at a separator, as Python's ``str.split`` does.

    Args:
        input: [n] or [n, m...], string; a scalar counts as a vector of one, and what has an unknown
            rank must be a vector.
        sep: [], the separator, of any length. Runs of white space if it is None or empty; then
            there are no empty pieces, but what is left after the last of ``maxsplit`` splits.
        maxsplit: How often to split at most; -1 for no limit.
        result_type: "SparseTensor" or "RaggedTensor".
        source: Another name of ``input``.
        name: The name of the scope.

    Returns:
        [n..., most pieces], string: the pieces of each string along the last axis, which is the
        ragged one of a ragged tensor.

    Raises:
        ShapeError: if ``sep`` is no scalar.
    """
    if (input is None) == (source is None):
        raise AttributeValueError("give input or source, and only one of them")
    with name_scope(name, "StringSplit"):
        strings = convert_to_tensor(input if input is not None else source, dtypes.string)
        axes = strings.shape.rank
        if axes is None:
            strings, axes = ensure_shape(strings, [None]), 1
        dims = shape(strings, out_type=dtypes.int64)
        indices, values, whole = _split_words(
            reshape(strings, [-1]), "" if sep is None else sep, maxsplit
        )
        if result_type != "SparseTensor" and axes != 1:
            pieces = _as_asked(result_type, reshape(strings, [-1]), indices, values, whole)
            return OPERATORS["pieces_of_strings"](strings, pieces)
        if axes <= 1:
            return _as_asked(result_type, strings, indices, values, whole)
        # The row of each piece becomes its place along every axis, the last one running fastest.
        rest = gather(indices, [0], axis=1)
        columns: list[Any] = []
        for axis in reversed(range(axes)):
            columns.insert(0, rest % dims[axis])
            rest = rest // dims[axis]
        places = concat([*columns, gather(indices, [1], axis=1)], 1)
        return SparseTensor(places, values, concat([dims, whole[1:]], 0))


@op("Substr", elements_of="input", public="", no_gradient=_TEXT)
def _substr(input: String, pos: Index, len: Index, unit: Unit = "BYTE") -> Spec:
    """Parts of strings.

    Args:
        input: [...], string.
        pos: [...], int32 or int64, where each part begins.
        len: The shape and dtype of ``pos``: how long each part is.
        unit: "BYTE" or "UTF8_CHAR", what ``pos`` and ``len`` count.

    Returns:
        The broadcast shape of ``input`` and ``pos``, string.
    """
    if pos.dtype != len.dtype:
        raise DTypeError(f"pos is {pos.dtype}, len is {len.dtype}; both must have one dtype")
    if not pos.shape.is_compatible_with(len.shape):
        raise ShapeError(f"pos and len must have one shape, got {pos.shape} and {len.shape}")
    return TensorSpec(dtypes.string, broadcast(input.shape, pos.shape.merge_with(len.shape)))


@dispatched("input")
def substr(input: Any, pos: Any, len: Any, name: str | None = None, unit: Unit = "BYTE") -> Tensor:
    """Parts of strings.

    Args:
        input: [...], string.
        pos: [...], int32 or int64, where each part begins; negative ones count from the end.
            Positions outside of the string raise when it runs, its end is no error.
        len: The shape of ``pos``: how long each part is, where the string goes on so far. A
            negative length goes to the end, in bytes, and is empty in characters. Two tensors have
            one dtype; numbers and arrays take that of the other one.
        name: The name of the operation.
        unit: "BYTE" or "UTF8_CHAR", what ``pos`` and ``len`` count.

    Returns:
        The broadcast shape of ``input`` and ``pos``, string.

    Raises:
        DTypeError: if places are no integers, or tensors of two dtypes.
    """
    held = [as_tensor(pos), as_tensor(len)]
    kinds = [_place_dtype(t, v) for t, v in zip(held, (pos, len), strict=True)]
    if kinds[0] != kinds[1] and None in held and all(kind.is_integer for kind in kinds):
        kind = next((t.dtype for t in held if t is not None), dtypes.int64)
        pos, len = (
            cast(convert_to_tensor(v), kind) if t is None else t
            for t, v in zip(held, (pos, len), strict=True)
        )
    return _substr(input, pos, len, unit=unit, name=name or "Substr")


def _place_dtype(held: Tensor | None, value: Any) -> DType:
    return natural_dtype(value) if held is None else held.dtype


@op("RegexReplace", elements_of="input", no_gradient=_TEXT)
def regex_replace(
    input: String, pattern: String, rewrite: String, replace_global: bool = True
) -> Spec:
    r"""Replace what matches a regular expression.

    The syntax is that of RE2; what it lacks (lookaround, references to groups in the pattern) is
    refused.

    Args:
        input: [...], string; read as UTF-8, bytes that are none match nothing.
        pattern: [], the expression. One that is no constant is checked when it runs.
        rewrite: [], what to put in place: ``\1`` to ``\9`` are the groups, ``\0`` is all that
            matched, and ``\\`` is a backslash. A group that the pattern does not have is empty.
        replace_global: Whether all matches are replaced, or only the first.

    Returns:
        [...], string.
    """
    _scalar(pattern, "pattern")
    _scalar(rewrite, "rewrite")
    if pattern.value is not None:
        compile_pattern(pattern.value.item())
    if rewrite.value is not None:
        parse_rewrite(rewrite.value.item())
    return like(input)


@op("RegexFullMatch", elements_of="input", public="strings.regex_full_match", no_gradient=_TEXT)
def regex_full_match(input: String, pattern: String) -> Spec:
    """Whether all of a string matches a regular expression.

    Args:
        input: [...], string; read as UTF-8.
        pattern: [], the expression, in the syntax of RE2. One that is no constant is checked when
            it runs.

    Returns:
        [...], bool.
    """
    _scalar(pattern, "pattern")
    if pattern.value is not None:
        compile_pattern(pattern.value.item())
    return TensorSpec(dtypes.bool_, input.shape)


@op("StringStrip", elements_of="input", no_gradient=_TEXT)
def string_strip(input: String) -> Spec:
    """Strings without the white space (of ASCII) at both ends.

    Args:
        input: [...], string.

    Returns:
        [...], string.
    """
    return like(input)


@op("StringLength", elements_of="input", public="strings.length", no_gradient=_TEXT)
def string_length(input: String, name: str | None = None, unit: Unit = "BYTE") -> Spec:
    """The length of each string.

    Args:
        input: [...], string.
        name: The name of the operation.
        unit: "BYTE" or "UTF8_CHAR", what to count.

    Returns:
        [...], int32.
    """
    return TensorSpec(dtypes.int32, input.shape)


@op("StringLower", elements_of="input", public="strings.lower", no_gradient=_TEXT)
def string_lower(input: String, encoding: Literal["", "utf-8"] = "") -> Spec:
    """Strings in lower case.

    Args:
        input: [...], string.
        encoding: "utf-8" to change all letters; empty to change those of ASCII alone.

    Returns:
        [...], string.
    """
    return like(input)


@op("StringUpper", elements_of="input", public="strings.upper", no_gradient=_TEXT)
def string_upper(input: String, encoding: Literal["", "utf-8"] = "") -> Spec:
    """Strings in upper case.

    Args:
        input: [...], string.
        encoding: "utf-8" to change all letters; empty to change those of ASCII alone.

    Returns:
        [...], string.
    """
    return like(input)


@op("ReduceJoin", public="", no_gradient=_TEXT)
def _reduce_join(inputs: String, reduction_indices: Index, keep_dims: bool, separator: str) -> Spec:
    """Join the strings along axes.

    Args:
        inputs: [...], string.
        reduction_indices: [axes], the axes in the order in which they are joined; negative ones
            count from the end.
        keep_dims: Whether joined axes stay, with size 1.
        separator: What goes between.

    Returns:
        ``inputs`` without these axes, string.
    """
    if reduction_indices.rank not in (None, 0, 1):
        raise ShapeError(f"the axes must be a vector, got shape {reduction_indices.shape}")
    given = reduction_indices.value
    if inputs.shape.dims is None or given is None:
        if not keep_dims or inputs.rank is None:
            return TensorSpec(dtypes.string)
        return TensorSpec(dtypes.string, Shape([None] * inputs.rank))
    dims = inputs.shape.dims
    axes = set()
    for axis in map(int, given.reshape(-1)):
        if not -len(dims) <= axis < len(dims):
            raise ShapeError(f"axis {axis} is out of range for shape {inputs.shape}")
        if axis % len(dims) in axes:
            raise ShapeError(f"axis {axis} is named twice")
        axes.add(axis % len(dims))
    left = [1 if i in axes else d for i, d in enumerate(dims) if keep_dims or i not in axes]
    return TensorSpec(dtypes.string, Shape(left))


@dispatched()
def reduce_join(
    inputs: Any,
    axis: Any = None,
    keep_dims: bool | None = None,
    separator: str = "",
    name: str | None = None,
    reduction_indices: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """Join the strings along axes.

    Args:
        inputs: [...], string.
        axis: The axes, in the order in which they are joined: with ``[0, 1]`` the first index runs
            fastest. All, the last one fastest, if None; nothing is joined for an empty list.
        keep_dims: Another name of ``keepdims``.
        separator: What goes between the strings.
        name: The name of the operation.
        reduction_indices: Another name of ``axis``.
        keepdims: Whether joined axes stay, with size 1.

    Returns:
        ``inputs`` without the joined axes, string; empty strings where there is nothing to join.

    Raises:
        ShapeError: if there is no such axis, or one is named twice.
    """
    if axis is not None and reduction_indices is not None:
        raise AttributeValueError("give axis or reduction_indices, not both")
    if keep_dims is not None and keepdims is not None:
        raise AttributeValueError("give keepdims or keep_dims, not both")
    keep = bool(keepdims if keepdims is not None else keep_dims)
    chosen = axis if axis is not None else reduction_indices
    strings = convert_to_tensor(inputs, dtypes.string)
    if chosen is None and strings.shape.rank is not None:
        chosen = list(reversed(range(strings.shape.rank)))
    elif chosen is None:
        last = subtract(rank(strings), 1)
        chosen = range_of(last, -1, -1)
    return _reduce_join(strings, chosen, keep, separator, name=name or "ReduceJoin")


@op("UnicodeTranscode", elements_of="input", public="strings.unicode_transcode", no_gradient=_TEXT)
def unicode_transcode(
    input: String,
    input_encoding: str,
    output_encoding: Literal["UTF-8", "UTF-16-BE", "UTF-32-BE"],
    errors: Handling = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
) -> Spec:
    """Text in another encoding.

    Args:
        input: [...], string.
        input_encoding: An encoding that Python knows, such as "UTF-8" or "latin1".
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: What becomes of bytes that are no text: "replace" puts ``replacement_char`` there,
            "ignore" leaves them out, "strict" raises when it runs.
        replacement_char: The code point of what is put in place.
        replace_control_characters: Whether the control characters below 32 are replaced, or left
            out, as ``errors`` says.

    Returns:
        [...], string.
    """
    check_encoding(input_encoding)
    check_code_point(replacement_char)
    return like(input)


@op("UnicodeEncode", public="strings.unicode_encode", no_gradient=_TEXT)
def unicode_encode(
    input: Integer,
    output_encoding: Literal["UTF-8", "UTF-16-BE", "UTF-32-BE"],
    errors: Handling = "replace",
    replacement_char: int = 65533,
) -> Spec:
    """Text of code points.

    Args:
        input: [..., n], int32, code points.
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: What becomes of numbers that are no code points: "replace" puts
            ``replacement_char`` there, "ignore" leaves them out, "strict" raises when it runs.
        replacement_char: The code point of what is put in place.

    Returns:
        [...], string: the vectors along the last axis as texts.
    """
    if input.dtype != dtypes.int32:
        raise DTypeError(f"code points are int32, got {input.dtype}")
    check_code_point(replacement_char)
    if input.rank == 0:
        raise ShapeError("code points are a vector at least, got a scalar")
    return TensorSpec(dtypes.string, Shape(None) if input.rank is None else input.shape[:-1])


def check_encoding(name: str) -> None:
    """Refuse what is no encoding of text.

    Raises:
        AttributeValueError: if there is no encoding of the name.
    """
    import codecs

    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError):
        raise AttributeValueError(f"there is no encoding {shown(name, 40)}") from None
    # Codecs such as "zlib" turn bytes into bytes.
    if not getattr(found, "_is_text_encoding", True):
        raise AttributeValueError(f"{shown(name, 40)} is no encoding of text")


def check_code_point(value: int) -> None:
    """Refuse what is no code point.

    Raises:
        AttributeValueError: if it is none, or half of a pair.
    """
    if not 0 <= value <= 0x10FFFF or 0xD800 <= value < 0xE000:
        raise AttributeValueError(f"replacement_char must be a code point, got {told(value)}")
