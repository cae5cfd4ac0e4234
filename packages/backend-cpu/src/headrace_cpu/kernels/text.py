"""Kernels of strings. Strings are Python's bytes in arrays of objects, so these run on the host."""

from __future__ import annotations

import codecs
import functools
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from headrace.errors import AttributeValueError
from headrace.extend import KernelTable, regex
from headrace_cpu.kernels.numeric import Array, check_broadcast, check_indices, check_size, scalar

KERNELS = KernelTable()


def mapped(function: Callable[[Any], Any], strings: Array, dtype: Any = object) -> Array:
    """Return what a function makes of each string, in the same shape."""
    strings = np.asarray(strings, object)
    return filled(map(function, strings.ravel().tolist()), strings.shape, dtype)


def filled(values: Iterable[Any], shape: tuple[int, ...], dtype: Any = object) -> Array:
    """Return values, in row-major order, as an array of a shape."""
    listed = list(values)
    return np.fromiter(listed, dtype, len(listed)).reshape(shape)


def one_string(x: Array, label: str) -> bytes:
    """Return the one element of a scalar.

    Raises:
        ValueError: if it is no scalar.
    """
    array = np.asarray(x, object)
    if array.ndim:
        raise ValueError(f"{label} must be a scalar, got shape {list(array.shape)}")
    found = array.item()
    assert isinstance(found, bytes)
    return found


@KERNELS.plain("StringJoin")
def join(xp: Any, inputs: list[Array], *, separator: str) -> Array:
    """Join elementwise."""
    arrays = [np.asarray(x, object) for x in inputs]
    shapes = {a.shape for a in arrays if a.ndim}
    if len(shapes) > 1:
        listed = ", ".join(sorted(str(list(s)) for s in shapes))
        raise ValueError(f"inputs must be scalars or have one shape, got {listed}")
    shape = shapes.pop() if shapes else ()
    glue = separator.encode()
    rows = [np.broadcast_to(a, shape).ravel().tolist() for a in arrays]
    return filled(map(glue.join, zip(*rows, strict=True)), shape)


@KERNELS.plain("UnsortedSegmentJoin")
def unsorted_segment_join(
    xp: Any, inputs: Array, segment_ids: Array, num_segments: Array, *, separator: str
) -> Array:
    """Join by segment."""
    count = int(scalar(num_segments, "num_segments"))
    texts = np.asarray(inputs, object)
    lead = segment_ids.ndim
    if not lead or texts.shape[:lead] != segment_ids.shape:
        raise ValueError(
            f"segment_ids {list(segment_ids.shape)} must be leading axes of inputs "
            f"{list(texts.shape)}, at least one"
        )
    inner = texts.shape[lead:]
    check_size((count, *inner))
    check_indices(segment_ids, count, "segment ids")
    width = math.prod(inner)
    # Most of many segments may be empty: only those that are not take more than a pointer.
    joined = np.full(count * width, b"", object)
    parts: dict[int, list[bytes]] = {}
    rows = texts.reshape((segment_ids.size, width)).tolist()
    for segment, row in zip(segment_ids.ravel().tolist(), rows, strict=True):
        for column, text in enumerate(row):
            parts.setdefault(segment * width + column, []).append(text)
    glue = separator.encode()
    for place, texts_of_segment in parts.items():
        joined[place] = glue.join(texts_of_segment)
    return joined.reshape((count, *inner))


@KERNELS.plain("StringSplit")
def split_at_bytes(
    xp: Any, source: Array, delimiter: Array, *, skip_empty: bool
) -> tuple[Array, Array, Array]:
    """Split at any of some bytes."""
    separators = one_string(delimiter, "delimiter")
    unlike = bytes(sorted(set(separators)))
    if not unlike:
        return _sparse(source, lambda text: [text[i : i + 1] for i in range(len(text))])
    # With one separator in place of all of them Python's own function splits. What is between
    # separators is none of them, and stays.
    source = np.asarray(source, object)
    if len(unlike) > 1:
        same = bytes.maketrans(unlike, unlike[:1] * len(unlike))
        source = mapped(operator.methodcaller("translate", same), source)
    separator = unlike[:1]
    texts = source.ravel().tolist()
    whole = separator.join([b"", *texts, b""])
    if separator * 2 not in whole and source.ndim == 1 and texts:
        # No piece of any string is empty: all of them are split at once.
        counts = np.fromiter([text.count(separator) for text in texts], np.int64, len(texts)) + 1
        return _gathered(counts, whole[1:-1].split(separator))
    split = operator.methodcaller("split", separator)
    if not skip_empty:
        return _sparse(source, lambda text: split(text) if text else [])
    return _sparse(source, lambda text: list(filter(None, split(text))))


@KERNELS.plain("StringSplitV2")
def split_words(xp: Any, source: Array, sep: Array, *, maxsplit: int) -> tuple[Array, Array, Array]:
    """Split at a separator, or at white space."""
    separator = one_string(sep, "sep") or None
    limit = maxsplit if maxsplit > 0 else -1

    def pieces(text: bytes) -> list[bytes]:
        if maxsplit == 0:
            return [text]
        found = text.split(separator, limit)
        # As in TensorFlow, what is left after the last split counts, even if it is nothing.
        return [*found, b""] if separator is None and len(found) == limit else found

    return _sparse(source, pieces)


def _sparse(source: Array, pieces: Callable[[bytes], list[bytes]]) -> tuple[Array, Array, Array]:
    source = np.asarray(source, object)
    if source.ndim != 1:
        raise ValueError(f"the strings to split must be a vector, got shape {list(source.shape)}")
    rows = list(map(pieces, source.tolist()))
    counts = np.fromiter(map(len, rows), np.int64, len(rows))
    return _gathered(counts, list(itertools.chain.from_iterable(rows)))


def _gathered(counts: Array, pieces: list[bytes]) -> tuple[Array, Array, Array]:
    """Return the pieces of strings as a sparse matrix, given how many each has."""
    total = len(pieces)
    indices = np.empty((total, 2), np.int64)
    most = int(counts.max()) if counts.size else 0
    if most * counts.size == total:
        indices[:, 0] = np.repeat(np.arange(counts.size), most)
        indices.reshape((counts.size, most, 2))[:, :, 1] = np.arange(most)
    else:
        indices[:, 0] = np.repeat(np.arange(counts.size), counts)
        indices[:, 1] = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
    return indices, filled(pieces, (total,)), np.array([counts.size, most], np.int64)


@KERNELS.plain("Substr")
def substr(xp: Any, input: Array, pos: Array, len: Array, *, unit: str) -> Array:
    """Take parts."""
    strings, starts, lengths = np.asarray(input, object), np.asarray(pos), np.asarray(len)
    if starts.shape != lengths.shape:
        raise ValueError(
            f"pos and len must have one shape, got {list(starts.shape)} and {list(lengths.shape)}"
        )
    check_broadcast(strings.shape, starts.shape)
    if not starts.ndim and unit == "BYTE":
        found = _equal_parts(strings.ravel().tolist(), int(starts), int(lengths))
        if found is not None:
            return filled(found, strings.shape)
    shape = np.broadcast_shapes(strings.shape, starts.shape)
    texts, starts, lengths = (np.broadcast_to(a, shape) for a in (strings, starts, lengths))
    part = _bytes_part if unit == "BYTE" else _characters_part
    triples = zip(texts.ravel(), starts.ravel().tolist(), lengths.ravel().tolist(), strict=True)
    return filled((part(*triple) for triple in triples), shape)


def _equal_parts(texts: list[bytes], start: int, length: int) -> Iterable[bytes] | None:
    """Return the same bytes of each string; None where one is too short."""
    if min(map(len, texts), default=0) < abs(start):
        return None
    stop = None if length < 0 or start < 0 <= start + length else start + length
    return map(operator.itemgetter(slice(start, stop)), texts)


def _bytes_part(text: bytes, start: int, length: int) -> bytes:
    first = _inside(text, start, len(text))
    return text[first:] if length < 0 else text[first : first + length]


def _characters_part(text: bytes, start: int, length: int) -> bytes:
    starts = _character_starts(text)
    first = _inside(text, start, len(starts) - 1)
    last = min(first + max(length, 0), len(starts) - 1)
    return text[starts[first] : starts[last]]


def _inside(text: bytes, start: int, length: int) -> int:
    if not -length <= start <= length:
        raise IndexError(f"pos {start} is out of range for the string {text[:40]!r}")
    return start + length if start < 0 else start


def _character_starts(text: bytes) -> list[int]:
    """Return where characters begin, and the end: at every byte that continues none."""
    codes = np.frombuffer(text, np.uint8)
    return [*np.flatnonzero((codes & 0xC0) != 0x80).tolist(), len(text)]


@KERNELS.plain("RegexReplace")
def regex_replace(
    xp: Any, input: Array, pattern: Array, rewrite: Array, *, replace_global: bool
) -> Array:
    """Replace matches."""
    known = one_string(pattern, "pattern")
    matcher = _matcher(known)
    parts = [
        part if isinstance(part, int) else regex.bytes_of(part)
        for part in regex.parse_rewrite(one_string(rewrite, "rewrite"))
    ]
    # A group that the pattern does not have is empty.
    parts = [b"" if isinstance(part, int) and part > matcher.groups else part for part in parts]
    if replace_global and regex.is_run(known):
        strings = np.asarray(input, object)
        found = _replaced_at_once(regex.compile_pattern(known), parts, strings.ravel().tolist())
        if found is not None:
            return filled(found, strings.shape)
    return mapped(lambda text: _rewritten(matcher, parts, text, replace_global), input)


# It is in no UTF-8, and what it is read as matches nothing.
_APART = b"\xff"


def _replaced_at_once(
    pattern: re.Pattern[str], parts: Sequence[bytes | int], texts: Sequence[bytes]
) -> list[bytes] | None:
    """Return texts with all matches replaced, found in all of them together; None where not.

    Python's own matcher is as quick as any where nothing that was matched is given back, and is
    called once.
    """
    whole = _APART.join(texts)
    new = b"".join(b"\\g<0>" if part == 0 else _escaped(part) for part in parts)
    if not texts or _APART in new:
        return None
    try:
        b" ".join(texts).decode()
    except UnicodeDecodeError:
        # What is no UTF-8 is not what it is read as.
        return None
    found = pattern.sub(regex.text_of(new), regex.text_of(whole))
    return regex.bytes_of(found).split(_APART)


def _escaped(part: bytes | int) -> bytes:
    assert isinstance(part, bytes)
    return part.replace(b"\\", b"\\\\")


@functools.lru_cache(maxsize=256)
def _matcher(pattern: bytes) -> Any:
    """Return a matcher that takes time linear in the text, whatever the pattern."""
    import re2

    regex.compile_pattern(pattern)  # the refusals that building gives to constants
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise AttributeValueError(f"the pattern {pattern[:60]!r} is invalid: {error}") from None


def _rewritten(matcher: Any, parts: Sequence[bytes | int], text: bytes, every: bool) -> bytes:
    """Return ``text`` with its matches, or the first of them, replaced.

    An empty match right after another match does not count, unlike in Python.
    """
    done: list[bytes] = []
    at, last = 0, -1
    while at <= len(text):
        match = matcher.search(text, at)
        if match is None:
            break
        start, end = match.span()
        done.append(text[at:start])
        if start == end == last:
            step = _character(text, start)
            done.append(text[start : start + step])
            at = start + step
            continue
        done += [part if isinstance(part, bytes) else match.group(part) or b"" for part in parts]
        at = last = end
        if not every:
            break
    done.append(text[at:])
    return b"".join(done)


def _character(text: bytes, at: int) -> int:
    """Return the number of bytes of the character that begins somewhere; 1 if none does."""
    for size in (1, 2, 3, 4):
        try:
            text[at : at + size].decode()
        except UnicodeDecodeError:
            continue
        return size
    return 1


@KERNELS.plain("RegexFullMatch")
def regex_full_match(xp: Any, input: Array, pattern: Array) -> Array:
    """Match all of each string."""
    matcher = _matcher(one_string(pattern, "pattern"))
    return mapped(lambda text: matcher.fullmatch(text) is not None, input, np.bool_)


@KERNELS.plain("StringStrip")
def strip(xp: Any, input: Array) -> Array:
    """Drop white space at both ends."""
    return mapped(bytes.strip, input)


@KERNELS.plain("StringLength")
def length(xp: Any, input: Array, *, unit: str) -> Array:
    """Count bytes or characters."""
    count = len if unit == "BYTE" else lambda text: len(_character_starts(text)) - 1
    return mapped(count, input, np.int32)


@KERNELS.plain("StringLower")
def lower(xp: Any, input: Array, *, encoding: str) -> Array:
    """Change to lower case."""
    if not encoding:
        return mapped(bytes.lower, input)
    return mapped(lambda text: text.decode(errors="replace").lower().encode(), input)


@KERNELS.plain("StringUpper")
def upper(xp: Any, input: Array, *, encoding: str) -> Array:
    """Change to upper case."""
    if not encoding:
        return mapped(bytes.upper, input)
    return mapped(lambda text: text.decode(errors="replace").upper().encode(), input)


@KERNELS.plain("ReduceJoin")
def reduce_join(
    xp: Any, inputs: Array, reduction_indices: Array, *, keep_dims: bool, separator: str
) -> Array:
    """Join along axes, the first one given running fastest."""
    inputs = np.asarray(inputs, object)
    given = np.asarray(reduction_indices).reshape(-1).tolist()
    for axis in given:
        if not -inputs.ndim <= axis < inputs.ndim:
            raise IndexError(f"axis {axis} is out of range for shape {list(inputs.shape)}")
    axes = [axis % inputs.ndim for axis in given]
    if len(set(axes)) < len(axes):
        raise ValueError(f"an axis is named twice: {given}")
    if not axes:
        return inputs
    kept = [axis for axis in range(inputs.ndim) if axis not in axes]
    dims = inputs.shape
    count = int(np.prod([dims[a] for a in axes], dtype=object))
    outer = tuple(dims[a] for a in kept)
    rows = inputs.transpose([*kept, *reversed(axes)]).reshape(
        (int(np.prod(outer, dtype=object)), count)
    )
    glue = separator.encode()
    shape = tuple(1 if a in axes else d for a, d in enumerate(dims)) if keep_dims else outer
    return filled((glue.join(row) for row in rows.tolist()), shape)


_CONTROLS = re.compile("[\x00-\x1f]")


@KERNELS.plain("UnicodeTranscode")
def transcode(
    xp: Any,
    input: Array,
    *,
    input_encoding: str,
    output_encoding: str,
    errors: str,
    replacement_char: int,
    replace_control_characters: bool,
) -> Array:
    """Write text in another encoding."""
    put = "" if errors == "ignore" else chr(replacement_char)

    def convert(data: bytes) -> bytes:
        if errors == "strict":
            text = "".join(part or "" for part, _ in read(data, input_encoding, strict=True))
        else:
            text = "".join(put if part is None else part for part, _ in read(data, input_encoding))
        if replace_control_characters:
            if errors == "strict" and _CONTROLS.search(text):
                raise ValueError("Invalid formatting on input string: it holds control characters")
            text = _CONTROLS.sub(lambda _: put, text)
        return text.encode(output_encoding, "replace")

    return mapped(convert, input)


def read(data: bytes, encoding: str, *, strict: bool = False) -> Iterator[tuple[str | None, bytes]]:
    """Yield the text of a string in parts, None for each that is no text; and the bytes of each.

    Raises:
        ValueError: if ``strict``, for the first part that is no text.
    """
    if codecs.lookup(encoding).name in ("utf-16", "utf-32"):
        # Without a mark of the order, the higher byte is the first.
        wide = encoding[-2:]
        marks = (codecs.BOM_UTF16, codecs.BOM_UTF32)[wide == "32"]
        if data[: len(marks)] not in (marks, marks[::-1]):
            encoding = f"utf-{wide}-be"
    at = 0
    while True:
        rest = data[at:]
        try:
            yield rest.decode(encoding), rest
            return
        except UnicodeDecodeError as error:
            if strict:
                raise ValueError(
                    "Invalid formatting on input string: "
                    f"{data[:40]!r} is not valid {encoding}: {error.reason}"
                ) from None
            if error.start:
                yield rest[: error.start].decode(encoding, "ignore"), rest[: error.start]
            end = max(error.end, error.start + 1)
            yield None, rest[error.start : end]
            at += end


@KERNELS.plain("UnicodeEncode")
def unicode_encode(
    xp: Any, input: Array, *, output_encoding: str, errors: str, replacement_char: int
) -> Array:
    """Write code points as text."""
    if not input.ndim:
        raise ValueError("code points are a vector at least, got a scalar")

    shape = input.shape[:-1]
    rows = np.asarray(input).reshape((int(np.prod(shape, dtype=object)), input.shape[-1]))
    put = {"ignore": "", "replace": chr(replacement_char)}.get(errors)
    return filled((encoded(row, output_encoding, put) for row in rows.tolist()), shape)


def encoded(codes: list[int], encoding: str, put: str | None) -> bytes:
    """Return the text of code points, with ``put`` for numbers that are none.

    Raises:
        ValueError: if there is such a number, and ``put`` is None.
    """
    text = []
    for code in codes:
        if 0 <= code <= 0x10FFFF and not 0xD800 <= code < 0xE000:
            text.append(chr(code))
        elif put is None:
            raise ValueError(
                f"Code point is out of range for Unicode, or a noncharacter: {code}, which "
                "errors='strict' refuses"
            )
        else:
            text.append(put)
    return "".join(text).encode(encoding)
