"""Strings and their pieces, of which each string has its own number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import dtypes
from headrace.arguments import whole
from headrace.errors import ArgumentTypeError, AttributeValueError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.schema import OPERATORS
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat, gather, reshape, shape
from headrace.ops.text import string_split, strings_split, unicode_encode
from headrace.ops.text_pieces import string_ngrams, unicode_code_points, unicode_encode_rows
from headrace.ragged.tensor import RaggedTensor, as_ragged


def pieces_of_rows(
    strings: Any, indices: Tensor, values: Tensor, dense_shape: Tensor
) -> RaggedTensor:
    """Return the pieces of strings in rows, of what makes a sparse tensor of them."""
    rows = reshape(gather(indices, [0], axis=1), [-1])
    made = RaggedTensor.from_value_rowids(values, rows, nrows=dense_shape[0], validate=False)
    known = convert_to_tensor(strings).spec.shape
    if known.rank == 1 and known[0] is not None:
        made.row_splits.set_shape([known[0] + 1])
    return made


def _given(input: Any, what: str) -> Any:
    """Return strings whose number of axes is known, ragged ones with all axes but one ragged."""
    strings = as_ragged(input, dtypes.string)
    rank = strings.shape.ndims
    if rank is None:
        raise ShapeError(f"{what} needs to know the number of axes of its input")
    if rank > 1:
        if not isinstance(strings, RaggedTensor):
            return RaggedTensor.from_tensor(strings, ragged_rank=rank - 1)
        if strings.ragged_rank < rank - 1:
            inner = strings.flat_values
            missing = rank - 1 - strings.ragged_rank
            return strings.with_flat_values(RaggedTensor.from_tensor(inner, ragged_rank=missing))
    return strings


def pieces_of_strings(strings: Tensor, pieces: RaggedTensor) -> Any:
    """Return pieces of the strings of a tensor in its form: a vector for a scalar."""
    if strings.shape.rank == 0:
        return pieces.values
    return _given(strings, "split").with_flat_values(pieces)


def split(
    input: Any = None,
    sep: Any = None,
    maxsplit: int = -1,
    result_type: str = "SparseTensor",
    source: Any = None,
    name: str | None = None,
) -> Any:
    """Split the strings of a ragged tensor; see ``hr.strings.split``."""
    with name_scope(name, "StringSplit"):
        strings = as_ragged(input if input is not None else source, dtypes.string)
        pieces = strings_split(strings.flat_values, sep, maxsplit, "RaggedTensor")
        made = strings.with_flat_values(pieces)
        return made if result_type == "RaggedTensor" else made.to_sparse()


def bytes_split(input: Any, name: str | None = None) -> Any:
    """Split strings into their bytes.

    Args:
        input: [...], string, a tensor or a ragged tensor.
        name: The name of the scope.

    Returns:
        [..., (bytes)], string, a ragged tensor; a vector for a scalar.

    Raises:
        ShapeError: if the number of axes is unknown.
    """
    with name_scope(name, "StringsByteSplit"):
        strings = _given(input, "bytes_split")
        flat = strings.flat_values if isinstance(strings, RaggedTensor) else strings
        pieces = string_split(reshape(flat, [-1]), "", False, result_type="RaggedTensor")
        return _like(strings, pieces)


def _like(strings: Any, pieces: RaggedTensor) -> Any:
    """Return pieces of strings in the form of these: a vector for a scalar."""
    if isinstance(strings, RaggedTensor):
        return strings.with_flat_values(pieces)
    return pieces.values if strings.shape.rank == 0 else pieces


def _decoded(
    input: Any, encoding: Any, errors: Any, replacement_char: int, controls: bool
) -> tuple[Any, Any]:
    """Return code points and where they begin, in the form of the strings."""
    strings = _given(input, "decoding")
    flat = strings.flat_values if isinstance(strings, RaggedTensor) else strings
    splits, codes, starts = unicode_code_points(
        reshape(flat, [-1]), encoding, errors, replacement_char, controls
    )
    return (
        _like(strings, RaggedTensor.from_row_splits(codes, splits, validate=False)),
        _like(strings, RaggedTensor.from_row_splits(starts, splits, validate=False)),
    )


def unicode_decode(
    input: Any,
    input_encoding: Any,
    errors: Any = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> Any:
    """Return the code points of strings.

    Args:
        input: [...], string, a tensor or a ragged tensor.
        input_encoding: An encoding that Python knows, such as "UTF-8" or "latin1".
        errors: What becomes of bytes that are no text: "replace" puts ``replacement_char`` there,
            "ignore" leaves them out, "strict" raises when it runs.
        replacement_char: The code point of what is put in place.
        replace_control_characters: Whether the control characters below 32 are replaced, or left
            out, as ``errors`` says.
        name: The name of the scope.

    Returns:
        [..., (characters)], int32, a ragged tensor; a vector for a scalar.

    Raises:
        ShapeError: if the number of axes is unknown.
        AttributeValueError: if there is no such encoding.
    """
    with name_scope(name, "UnicodeDecode"):
        return _decoded(
            input, input_encoding, errors, replacement_char, replace_control_characters
        )[0]


def unicode_decode_with_offsets(
    input: Any,
    input_encoding: Any,
    errors: Any = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Return the code points of strings, and the bytes at which they begin.

    Args:
        input: As for ``unicode_decode``, and the others likewise.
        input_encoding: The encoding.
        errors: What becomes of bytes that are no text.
        replacement_char: The code point of what is put in place.
        replace_control_characters: Whether control characters are replaced.
        name: The name of the scope.

    Returns:
        [..., (characters)], int32, and the byte of its string at which each begins, int64.

    Raises:
        ShapeError: if the number of axes is unknown.
        AttributeValueError: if there is no such encoding.
    """
    with name_scope(name, "UnicodeDecodeWithOffsets"):
        return _decoded(input, input_encoding, errors, replacement_char, replace_control_characters)


def unicode_split(
    input: Any,
    input_encoding: Any,
    errors: Any = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """Split strings into their characters.

    Args:
        input: [...], string, a tensor or a ragged tensor.
        input_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: As for ``unicode_decode``.
        replacement_char: The code point of what is put in place.
        name: The name of the scope.

    Returns:
        [..., (characters)], string, a ragged tensor; a vector for a scalar.

    Raises:
        ShapeError: if the number of axes is unknown.
        AttributeValueError: if there is no such encoding.
    """
    with name_scope(name, "UnicodeSplit"):
        codes, _ = _decoded(input, input_encoding, errors, replacement_char, False)
        return _characters(codes, input_encoding, errors, replacement_char)


def _characters(codes: Any, encoding: Any, errors: Any, replacement_char: int) -> Any:
    flat = codes.flat_values if isinstance(codes, RaggedTensor) else codes
    # One string of each code point.
    made = unicode_encode(reshape(flat, [-1, 1]), encoding, errors, replacement_char)
    return codes.with_flat_values(made) if isinstance(codes, RaggedTensor) else made


def unicode_split_with_offsets(
    input: Any,
    input_encoding: Any,
    errors: Any = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Split strings into their characters, and return the bytes at which they begin.

    Args:
        input: As for ``unicode_split``, and the others likewise.
        input_encoding: The encoding.
        errors: What becomes of bytes that are no text.
        replacement_char: The code point of what is put in place.
        name: The name of the scope.

    Returns:
        [..., (characters)], string, and the byte of its string at which each begins, int64.

    Raises:
        ShapeError: if the number of axes is unknown.
        AttributeValueError: if there is no such encoding.
    """
    with name_scope(name, "UnicodeSplitWithOffsets"):
        codes, starts = _decoded(input, input_encoding, errors, replacement_char, False)
        return _characters(codes, input_encoding, errors, replacement_char), starts


def encode_rows(
    input: Any,
    output_encoding: Any,
    errors: Any = "replace",
    replacement_char: int = 65533,
    name: str | None = None,
) -> Any:
    """Return the texts of code points whose last axis is ragged, or lies inside of ragged ones."""
    with name_scope(name, "UnicodeEncode"):
        codes = as_ragged(input)
        if codes.flat_values.shape.rank != 1:
            made = unicode_encode(codes.flat_values, output_encoding, errors, replacement_char)
            return codes.with_flat_values(made)
        if codes.ragged_rank > 1:
            inner = encode_rows(codes.values, output_encoding, errors, replacement_char)
            return codes.with_values(inner)
        return unicode_encode_rows(
            codes.values, codes.row_splits, output_encoding, errors, replacement_char
        )


def ngrams(
    data: Any,
    ngram_width: Any,
    separator: str = " ",
    pad_values: Any = None,
    padding_width: int | None = None,
    preserve_short_sequences: bool = False,
    name: str | None = None,
) -> Any:
    """Join runs of neighbouring strings along the last axis.

    Args:
        data: [..., n], string, a tensor or a ragged tensor.
        ngram_width: How many strings a run has, or a list of such numbers: those of the first come
            first in each row.
        separator: What goes between strings of a run.
        pad_values: A string that pads rows at both ends, or two, for the beginning and the end;
            rows are not padded if None.
        padding_width: How often they are padded at most; by one string less than a run has if None.
        preserve_short_sequences: Whether a row that is too short for a run becomes one as a whole.
        name: The name of the scope.

    Returns:
        [..., runs], string, ragged where ``data`` is.

    Raises:
        ArgumentTypeError: if ``pad_values`` are no strings.
        AttributeValueError: if widths are not positive, or there is nothing to pad with.
        ShapeError: if ``data`` has no axis, or an unknown number of them.
    """
    left, right = _pads(pad_values)
    if padding_width is not None and whole(padding_width, "padding_width") < 1:
        raise AttributeValueError("padding_width must be greater than 0.")
    if padding_width is not None and pad_values is None:
        raise AttributeValueError("pad_values must be provided if padding_width is set.")
    often = 0 if pad_values is None else -1 if padding_width is None else padding_width
    widths = list(ngram_width) if isinstance(ngram_width, list | tuple) else [ngram_width]
    if any(whole(width, "ngram_width") < 1 for width in widths):
        raise AttributeValueError(
            f"All ngram_widths must be greater than 0. Got {shown(ngram_width)}"
        )
    with name_scope(name, "StringNGrams"):
        strings = as_ragged(data, dtypes.string)
        rank = strings.shape.ndims
        if rank is None:
            raise ShapeError("Rank of data must be known.")
        if rank == 0:
            raise ShapeError("Data must have rank>0")
        rows = strings
        if rank == 1:
            rows = RaggedTensor.from_row_starts(strings, [0], validate=False)
        elif not isinstance(strings, RaggedTensor):
            rows = RaggedTensor.from_tensor(strings, ragged_rank=rank - 1)
        made = _joined(rows, separator, widths, left, right, often, preserve_short_sequences)
        if isinstance(strings, RaggedTensor):
            return made
        if rank == 1:
            return made.values
        return reshape(made.flat_values, concat([shape(strings)[:-1], [-1]], 0))


def _pads(pad_values: Any) -> tuple[str, str]:
    given = pad_values
    if given is None:
        return "", ""
    pair = list(given) if isinstance(given, list | tuple) else [given, given]
    if len(pair) < 2 or not all(isinstance(text, str | bytes) for text in pair[:2]):
        raise ArgumentTypeError("pad_values must be a string, tuple of strings, or None.")
    try:
        left, right = (t.decode() if isinstance(t, bytes) else t for t in pair[:2])
    except UnicodeDecodeError as error:
        raise AttributeValueError(f"pad_values must be UTF-8, got {shown(pad_values)}") from error
    return left, right


def _joined(rows: RaggedTensor, separator: str, widths: Sequence[int], *options: Any) -> Any:
    """Return the runs of each row of the innermost ragged axis."""
    if rows.ragged_rank > 1:
        return rows.with_values(_joined(rows.values, separator, widths, *options))
    found, splits = string_ngrams(
        convert_to_tensor(rows.values), rows.row_splits, separator, tuple(widths), *options
    )
    return RaggedTensor.from_row_splits(found, splits, validate=False)


# For functions of strings, which stand below.
OPERATORS["pieces_of_rows"] = pieces_of_rows
OPERATORS["pieces_of_strings"] = pieces_of_strings
