"""Kernels of the pieces that strings are made of."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array, check_rank
from headrace_cpu.kernels.text import encoded, filled, read

KERNELS = KernelTable()


@KERNELS.plain("UnicodeDecode")
def decode(
    xp: Any,
    input: Array,
    *,
    input_encoding: str,
    errors: str,
    replacement_char: int,
    replace_control_characters: bool,
) -> tuple[Array, Array, Array]:
    """Take texts apart, character by character."""
    put = None if errors == "ignore" else replacement_char
    splits, codes, starts = [0], [], []
    for data in np.asarray(input).tolist():
        at = 0
        for text, raw in read(data, input_encoding, strict=errors == "strict"):
            if text is None:
                found: Iterator[tuple[int | None, int]] = iter([(put, len(raw))])
            else:
                found = zip(map(ord, text), _sizes(text, raw, input_encoding), strict=True)
            for code, size in found:
                chosen = put if replace_control_characters and code and code < 32 else code
                if replace_control_characters and code == 0:
                    chosen = put
                if chosen is not None:
                    codes.append(chosen)
                    starts.append(at)
                at += size
        splits.append(len(codes))
    return (
        np.array(splits, np.int64),
        np.array(codes, np.int64).astype(np.int32),
        np.array(starts, np.int64),
    )


def _sizes(text: str, raw: bytes, encoding: str) -> list[int]:
    """Return how many bytes each character takes."""
    if len(text) == len(raw):
        return [1] * len(text)
    chosen = encoding
    if encoding.lower() in ("utf-16", "utf-32"):
        chosen = f"{encoding}-be"
    sizes = [len(character.encode(chosen)) for character in text]
    if sizes and sum(sizes) != len(raw):
        # A mark of the order at the beginning.
        sizes[0] += len(raw) - sum(sizes)
    return sizes


@KERNELS.plain("UnicodeEncodeRows")
def encode_rows(
    xp: Any,
    values: Array,
    splits: Array,
    *,
    output_encoding: str,
    errors: str,
    replacement_char: int,
) -> Array:
    """Write each row of code points as text."""
    check_rank(values, 1, "values")
    check_rank(splits, 1, "splits")
    put = {"ignore": "", "replace": chr(replacement_char)}.get(errors)
    codes = values.tolist()
    rows = _rows(splits, len(codes))
    return filled((encoded(codes[a:b], output_encoding, put) for a, b in rows), (splits.size - 1,))


def _rows(splits: Array, count: int) -> list[tuple[int, int]]:
    """Return where each row begins and ends.

    Raises:
        ValueError: if splits do not ascend from 0 to the number of values.
    """
    ends = splits.tolist()
    if not ends or ends[0] != 0 or ends[-1] != count or sorted(ends) != ends:
        raise ValueError(f"splits must ascend from 0 to {count}, the number of values")
    return list(itertools.pairwise(ends))


@functools.cache
def _scripts() -> tuple[Array, Array]:
    """Return the code points at which a script begins, ascending, and that script."""
    text = Path(__file__).with_name("unicode_scripts.txt").read_text("ascii")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    starts = np.array([int(start, 16) for start, _ in lines], np.int64)
    return starts, np.array([int(script) for _, script in lines], np.int32)


@KERNELS.plain("UnicodeScript")
def script(xp: Any, input: Array) -> Array:
    """Look up the script of the range of each code point."""
    starts, scripts = _scripts()
    inside = (input >= 0) & (input <= 0x10FFFF)
    places = np.searchsorted(starts, np.where(inside, input, 0), side="right") - 1
    return np.where(inside, scripts[places], np.int32(-1))


@KERNELS.plain("StringNGrams")
def ngrams(
    xp: Any,
    data: Array,
    splits: Array,
    *,
    separator: str,
    ngram_widths: Sequence[int],
    left_pad: str,
    right_pad: str,
    pad_width: int,
    preserve_short_sequences: bool,
) -> tuple[Array, Array]:
    """Join neighbours in each row."""
    words = data.tolist()
    glue, left, right = (text.encode() for text in (separator, left_pad, right_pad))
    found: list[bytes] = []
    ends = [0]
    for a, b in _rows(splits, len(words)):
        row, before = words[a:b], len(found)
        for width in ngram_widths:
            often = min(width - 1 if pad_width < 0 else pad_width, width - 1)
            padded = [left] * often + row + [right] * often
            runs = range(len(padded) - width + 1)
            found += [glue.join(padded[i : i + width]) for i in runs]
        if preserve_short_sequences and row and len(found) == before:
            often = max(pad_width, 0)
            found.append(glue.join([left] * often + row + [right] * often))
        ends.append(len(found))
    return filled(found, (len(found),)), np.array(ends, splits.dtype)
