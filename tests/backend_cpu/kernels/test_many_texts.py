"""Strings that are replaced, cut and written together, which are what they are one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest

import headrace as hr
from headrace.extend import regex
from headrace_cpu.kernels import text

TEXTS = [
    b"", b"a1b22", b"333", b"abcabc", b"\\x5c0", b"caf\xc3\xa9 9\xc3\xa9", b"no", b"a\nb\n7",
    b"line 12\r\n", b"\xf0\x9f\x98\x80 3",
]  # fmt: skip


@pytest.mark.parametrize("rewrite", [b"#", b"", b"<\\0>", b"\\0\\0", b"\\\\1", b"7\xc3\xa9"])
@pytest.mark.parametrize(
    "pattern",
    [
        b"[0-9]+",
        b"b",
        b"ab[a-z]{1,2}",
        b"[^0-9]",
        b".",
        b"[^a]+",
        b"\\d",
        b"\\W+",
        b"\xc3\xa9+",
        b"a{2",
    ],
)
def test_matches_in_all_texts_are_those_in_each(pattern, rewrite):
    assert regex.is_run(pattern)
    matcher = text._matcher(pattern)
    parts = [p if isinstance(p, int) else regex.bytes_of(p) for p in regex.parse_rewrite(rewrite)]
    parts = [b"" if isinstance(part, int) and part > 0 else part for part in parts]
    want = [text._rewritten(matcher, parts, each, True) for each in TEXTS]
    found = text._replaced_at_once(regex.compile_pattern(pattern), parts, TEXTS)
    assert found == want
    odd = [b"\xed\xa0\x80 3", b"\xc3", b"\xa9 1"]
    for more in odd:
        assert text._replaced_at_once(regex.compile_pattern(pattern), parts, [*TEXTS, more]) is None
    with hr.Session() as session:
        made = hr.regex_replace(hr.constant(np.array(TEXTS, object)), pattern, rewrite)
        assert session.run(made).tolist() == want


@pytest.mark.parametrize(
    "pattern",
    [
        b"",
        b"a*",
        b"a?",
        b"a+b",
        b"a+?",
        b"a{0,2}",
        b"(a)",
        b"a|b",
        b"^a",
        b"a$",
        b"\\ba",
        b"\\Qa\\E",
    ],
)
def test_patterns_that_may_give_back_or_be_empty_are_no_runs(pattern):
    assert not regex.is_run(pattern)


def test_texts_that_are_no_utf_8_are_replaced_one_by_one():
    texts = np.array([b"a\xff1", b"2"], object)
    with hr.Session() as session:
        assert session.run(hr.regex_replace(texts, "[0-9]", "#")).tolist() == [b"a\xff#", b"#"]
        assert session.run(hr.regex_replace(texts[1:], "[0-9]", b"\xff")).tolist() == [b"\xff"]


@pytest.mark.parametrize("start", [-3, -2, 0, 1, 3])
@pytest.mark.parametrize("length", [-1, 0, 1, 2, 5])
def test_equal_parts_are_those_of_each_text(start, length):
    texts = np.array([[b"abc", b"abcdefg"], [b"wxyz", b"\xff\x00\n"]], object)
    with hr.Session() as session:
        found = session.run(hr.strings.substr(texts, start, length))
        one_by_one = session.run(hr.strings.substr(texts, [[start] * 2] * 2, [[length] * 2] * 2))
    np.testing.assert_array_equal(found, one_by_one)


def test_a_text_that_is_too_short_for_a_part_is_named():
    texts = np.array([b"abc", b"a"], object)
    with (
        hr.Session() as session,
        pytest.raises(
            hr.errors.InvalidInputError, match="pos 2 is out of range for the string b'a'"
        ),
    ):
        session.run(hr.strings.substr(hr.placeholder_with_default(texts, [2]), 2, 1))


@pytest.mark.parametrize("odd", [(), (math.inf, -math.inf, math.nan)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "form",
    [{}, {"precision": 3}, {"scientific": True}, {"shortest": True, "precision": 4}, {"width": 9},
     {"width": 12, "fill": "0"}, {"width": 12, "fill": "-"}, {"fill": "+"}, {"fill": " "}],
    ids=str,
)  # fmt: skip
def test_numbers_are_written_together_as_they_are_one_by_one(form, dtype, odd):
    values = np.array([0.0, -0.0, 1.5, -2.25, 1e4, 1e-7, 3.14159, *odd]).astype(dtype)
    with hr.Session() as session:
        found = session.run(hr.as_string(values, **form))
        assert found.tolist() == [session.run(hr.as_string(each, **form)) for each in values]
    if not odd and form == {"precision": 3}:
        assert found.tolist()[2:4] == [b"1.500", b"-2.250"]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint64"])
@pytest.mark.parametrize("more", [[], [4095], [4096], [-1], [[0]]], ids=str)
def test_whole_numbers_are_written_as_python_writes_them(more, dtype):
    limits = np.iinfo(dtype)
    values = np.array([[0, 1, 10, 100], [99, 7, 0, 120]]) if more == [[0]] else np.array([0, *more])
    values = np.clip(values, limits.min, limits.max).astype(dtype)
    with hr.Session() as session:
        found = session.run(hr.as_string(values))
        scalar = session.run(hr.as_string(values.reshape(-1)[-1]))
    assert found.shape == values.shape
    assert found.ravel().tolist() == [b"%d" % value for value in values.ravel().tolist()]
    assert scalar == b"%d" % values.reshape(-1)[-1]
