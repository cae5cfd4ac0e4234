"""Strings and the pieces that they are made of: code points, and runs of neighbours.

Pieces of many strings lie one after the other in one vector, beside a vector of splits: those of
string ``i`` are ``pieces[splits[i]:splits[i + 1]]``. ``headrace.ragged`` makes tensors of both.
"""

from __future__ import annotations

from typing import Literal

from headrace import dtypes
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace.graph.spec import TensorSpec, like
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Index, Integer, String
from headrace.ops.text import Handling, check_code_point, check_encoding
from headrace.shapes import Shape

_TEXT = "strings have no gradient"


@op("UnicodeDecode", public="", no_gradient=_TEXT)
def unicode_code_points(
    input: String,
    input_encoding: str,
    errors: Handling = "replace",
    replacement_char: int = 65533,
    replace_control_characters: bool = False,
) -> tuple[Spec, Spec, Spec]:
    """Code points of strings.

    Args:
        input: [n], string.
        input_encoding: An encoding that Python knows, such as "UTF-8" or "latin1".
        errors: What becomes of bytes that are no text: "replace" puts ``replacement_char`` there,
            "ignore" leaves them out, "strict" raises when it runs.
        replacement_char: The code point of what is put in place.
        replace_control_characters: Whether the control characters below 32 are replaced, too.

    Returns:
        [n + 1], int64, the splits; the code points, int32; and the byte of its string at which each
        begins, int64.
    """
    check_encoding(input_encoding)
    check_code_point(replacement_char)
    if input.rank not in (None, 1):
        raise ShapeError(f"input must be a vector, got shape {input.shape}")
    count = None if input.rank is None else input.shape[0]
    splits = Shape([None if count is None else count + 1])
    pieces = Shape([None])
    return (
        TensorSpec(dtypes.int64, splits),
        TensorSpec(dtypes.int32, pieces),
        TensorSpec(dtypes.int64, pieces),
    )


def _rows(splits: TensorSpec, what: str) -> Shape:
    if splits.rank not in (None, 1):
        raise ShapeError(f"{what} must be a vector, got shape {splits.shape}")
    count = None if splits.rank is None else splits.shape[0]
    if count == 0:
        raise ShapeError(f"{what} begin with 0, got none")
    return Shape([None if count is None else count - 1])


@op("UnicodeEncodeRows", public="", no_gradient=_TEXT)
def unicode_encode_rows(
    values: Integer,
    splits: Index,
    output_encoding: Literal["UTF-8", "UTF-16-BE", "UTF-32-BE"],
    errors: Handling = "replace",
    replacement_char: int = 65533,
) -> Spec:
    """Strings of code points, of which each string has its own number.

    Args:
        values: [m], int32, the code points of all strings.
        splits: [n + 1], those of each.
        output_encoding: "UTF-8", "UTF-16-BE" or "UTF-32-BE".
        errors: As for ``UnicodeEncode``.
        replacement_char: As for ``UnicodeEncode``.

    Returns:
        [n], string.
    """
    if values.dtype != dtypes.int32:
        raise DTypeError(f"code points are int32, got {values.dtype}")
    check_code_point(replacement_char)
    if values.rank not in (None, 1):
        raise ShapeError(f"code points must be a vector, got shape {values.shape}")
    return TensorSpec(dtypes.string, _rows(splits, "splits"))


@op("UnicodeScript", elements_of="input", public="strings.unicode_script", no_gradient=_TEXT)
def unicode_script(input: Integer) -> Spec:
    """Scripts of code points, by the numbers that ICU gives them: 0 Common, 25 Latin and so on.

    Args:
        input: [...], int32, code points.

    Returns:
        [...], int32; -1 for what is no code point.
    """
    if input.dtype != dtypes.int32:
        raise DTypeError(f"code points are int32, got {input.dtype}")
    return like(input)


@op("StringNGrams", public="", no_gradient=_TEXT)
def string_ngrams(
    data: String,
    splits: Index,
    separator: str,
    ngram_widths: tuple[int, ...],
    left_pad: str,
    right_pad: str,
    pad_width: int,
    preserve_short_sequences: bool,
) -> tuple[Spec, Spec]:
    """Runs of neighbouring strings in rows, joined.

    Args:
        data: [m], string, the strings of all rows.
        splits: [n + 1], those of each row.
        separator: What goes between strings of a run.
        ngram_widths: How many strings a run has; runs of the first number come first.
        left_pad: The string that pads rows at their beginning.
        right_pad: The string that pads rows at their end.
        pad_width: How often they are padded, never so often that a run is padding alone; -1 for as
            often as that allows.
        preserve_short_sequences: Whether a row that is too short for a run becomes one as a whole.

    Returns:
        The runs, and their splits [n + 1].
    """
    if not ngram_widths or min(ngram_widths) < 1:
        raise AttributeValueError(f"ngram_widths must be positive, got {list(ngram_widths)}")
    if data.rank not in (None, 1):
        raise ShapeError(f"data must be a vector, got shape {data.shape}")
    _rows(splits, "splits")
    return TensorSpec(dtypes.string, Shape([None])), like(splits)
