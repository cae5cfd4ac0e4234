"""Samples of strings. Oracles are plain Python on one string at a time, or written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import (
    AttributeValueError,
    DTypeError,
    ExecutionError,
    HeadraceError,
    ShapeError,
)
from headrace_testing.inputs import array, integers, strings
from headrace_testing.sample import Reject, Row, Sample

_EMPTY = array(np.zeros((0, 2), object), "string")
_WHITE = array([b" a\t\n", b"\x0b b c\f", b" ", b"", b"\xc2\xa0x"], "string")
_GERMAN = array(["größer".encode(), b"ABC", b"", "Éa".encode()], "string")


def _each(function: Callable[[bytes], Any], dtype: Any = object) -> Callable[..., Any]:
    """Return the oracle that applies a function to each string."""

    def oracle(x: Any, *_: Any, **__: Any) -> Any:
        made = np.empty(x.shape, dtype)
        for place in np.ndindex(x.shape):
            made[place] = function(x[place])
        return made

    return oracle


def _words(*values: bytes) -> Any:
    return np.array(values, object)


def _split(indices: Any, values: list[bytes], shape: tuple[int, int]) -> Callable[..., Any]:
    """Return the oracle whose answer is written out."""
    found = (
        np.array(indices, np.int64).reshape((-1, 2)),
        np.array(values, object).reshape(-1),
        np.array(shape, np.int64),
    )
    return lambda *_, **__: found


def _text(value: Any) -> Any:
    return array(value, "string")


_PATTERNS: list[tuple[str, bytes, bytes, bytes, bytes, bool]] = [
    # label, pattern, rewrite, text, result, all of them
    ("groups", rb"(a)(x)", rb"\2\0[\\]\1", b"axxb", rb"xax[\]axb", True),
    ("empty_match", b"x*", b"-", b"axxb", b"-a-b-", True),
    ("nothing", b"b*", b"-", b"ppp", b"-p-p-p-", True),
    ("first", b"x", b"y", b"axxb", b"ayxb", False),
    ("end", b"e$", b"X", b"line\n", b"line\n", True),
    ("characters", b".", b"X", "é\n".encode() + b"\xff", b"X\n\xff", True),
    ("negated", b"[^a]", b"X", b"ab\xff", b"aX\xff", True),
    ("ascii", rb"\w\b", b"X", "aé b".encode(), "Xé X".encode(), True),
    ("posix", rb"[[:digit:]x-z\]]|\pL", b"", b"1a]-y\xc3\xa9", b"-", True),
    ("quoted", rb"\Q.*\E+", b"X", b"a.**.*", b"aXX", True),
    ("flags", rb"a(?i)b|c", b"X", b"aBAbC", b"XAbX", True),
    ("missing_group", b"(a)", rb"\2", b"aab", b"b", True),
    ("counted", rb"a{2,}|b{,1}", b"X", b"aaab{,1}", b"XX", True),
]

SAMPLES: list[Row] = [
    Sample(
        "UnsortedSegmentJoin",
        [_text([[b"a", b"b"], [b"c", b"d"]]), array([1, 1], "int32"), array(3, "int32")],
        {"separator": ", "},
        lambda *_, separator: np.array([[b"", b""], [b"a, c", b"b, d"], [b"", b""]], object),
    ),
    Reject(
        "UnsortedSegmentJoin",
        [_text([b"a", b"b"]), array([0], "int32"), array(2, "int32")],
        {},
        ShapeError,
        "must be the leading axes of inputs",
        label="shape",
    ),
    Reject(
        "UnsortedSegmentJoin",
        [_text([b"a", b"b"]), array([0, 2], "int32"), array(2, "int32")],
        {},
        ExecutionError,
        "segment ids",
        when="run",
        label="ids",
    ),
    Sample(
        "StringJoin",
        [[strings((2, 3)), _text(b"+"), strings((2, 3))]],
        {"separator": "ß"},
        lambda inputs, separator: (
            inputs[0] + separator.encode() + inputs[1] + separator.encode() + inputs[2]
        ),
        seed=1,
    ),
    Sample(
        "StringJoin",
        [[_text(b"a"), _text(b"b")]],
        {"separator": ""},
        lambda inputs, separator: np.array(b"ab", object),
        label="scalars",
    ),
    Sample(
        "StringJoin",
        [[_EMPTY, _text(b"b")]],
        {"separator": ""},
        lambda inputs, separator: inputs[0],
        label="empty",
    ),
    Reject(
        "StringJoin",
        [[_text([b"a"]), _text([b"b", b"c"])]],
        {"separator": ""},
        ShapeError,
        "one shape",
    ),
    Reject(
        "StringJoin", [[_text(b"a"), integers((), 0, 9)]], {"separator": ""}, DTypeError, "string"
    ),
    Sample(
        "StringSplit",
        [_text([b"a.b,,c", b"", b",x"]), _text(b".,")],
        {"skip_empty": True},
        _split([[0, 0], [0, 1], [0, 2], [2, 0]], [b"a", b"b", b"c", b"x"], (3, 3)),
        exact_shape=False,
    ),
    Sample(
        "StringSplit",
        [_text([b"a  b", b"", b" "]), _text(b" ")],
        {"skip_empty": False},
        _split([[0, 0], [0, 1], [0, 2], [2, 0], [2, 1]], [b"a", b"", b"b", b"", b""], (3, 3)),
        exact_shape=False,
        label="empty_pieces",
    ),
    Sample(
        "StringSplit",
        [_text([b"ab", b"\xff"]), _text(b"")],
        {"skip_empty": True},
        _split([[0, 0], [0, 1], [1, 0]], [b"a", b"b", b"\xff"], (2, 2)),
        exact_shape=False,
        label="bytes",
    ),
    Sample(
        "StringSplit",
        [_text(np.zeros(0, object)), _text(b" ")],
        {"skip_empty": True},
        _split([], [], (0, 0)),
        exact_shape=False,
        label="empty",
    ),
    Reject(
        "StringSplit",
        [_text([[b"a"]]), _text(b" ")],
        {"skip_empty": True},
        ShapeError,
        "must be a vector",
    ),
    Reject(
        "StringSplit",
        [_text([b"a"]), _text([b" "])],
        {"skip_empty": True},
        ShapeError,
        "delimiter must be a scalar",
        label="delimiter",
    ),
    Sample(
        "StringSplitV2",
        [_text([b" a b  c", b"", b"d "]), _text(b"")],
        {"maxsplit": -1},
        _split([[0, 0], [0, 1], [0, 2], [2, 0]], [b"a", b"b", b"c", b"d"], (3, 3)),
        exact_shape=False,
    ),
    Sample(
        "StringSplitV2",
        [_text([b"a<>b<>c", b"<>"]), _text(b"<>")],
        {"maxsplit": 1},
        _split([[0, 0], [0, 1], [1, 0], [1, 1]], [b"a", b"b<>c", b"", b""], (2, 2)),
        exact_shape=False,
        label="separator",
    ),
    Sample(
        "StringSplitV2",
        [_text([b" a b "]), _text(b"")],
        {"maxsplit": 0},
        _split([[0, 0]], [b" a b "], (1, 1)),
        exact_shape=False,
        label="never",
    ),
    Reject(
        "StringSplitV2", [_text(b"a"), _text(b"")], {"maxsplit": 1}, ShapeError, "must be a vector"
    ),
    Sample(
        "Substr",
        [_text([[b"hello"], [b"world"]]), array([1, -2, 5], "int32"), array([2, -1, 3], "int32")],
        {},
        lambda *_: np.array([[b"el", b"lo", b""], [b"or", b"ld", b""]], object),
    ),
    Sample(
        "Substr",
        [
            _text(["größer".encode(), b"a\xffb"]),
            array([2, -2], "int64"),
            array([3, 1], "int64"),
        ],
        {"unit": "UTF8_CHAR"},
        lambda *_, unit: _words("öße".encode(), b"\xff"),
        label="characters",
    ),
    Sample(
        "Substr",
        [_text(b"hello"), array(1, "int64"), array(2**62, "int64")],
        {},
        lambda *_: np.array(b"ello", object),
        label="scalar",
    ),
    Sample(
        "Substr",
        [_EMPTY, array(9, "int32"), array(9, "int32")],
        {},
        lambda x, *_: x,
        label="empty",
    ),
    Reject(
        "Substr",
        [_text(b"abc"), array(4, "int32"), array(1, "int32")],
        {},
        ExecutionError,
        r"pos 4 is out of range for the string b'abc'",
        when="run",
    ),
    Reject(
        "Substr",
        [_text(b"abc"), array(0, "int32"), array(1, "int64")],
        {},
        DTypeError,
        "one dtype",
        label="dtypes",
    ),
    Reject(
        "Substr",
        [_text(b"abc"), array(0, "int32"), array([1], "int32")],
        {},
        ShapeError,
        "one shape",
        label="shapes",
    ),
    Reject(
        "Substr",
        [_text(b"abc"), array(0, "int32"), array(1, "int32")],
        {"unit": "WORD"},
        AttributeValueError,
        "unit must be",
        label="unit",
    ),
    *(
        Sample(
            "RegexReplace",
            [_text([text, b""]), _text(pattern), _text(rewrite)],
            {"replace_global": every},
            lambda x, *_, result=result, empty=empty, **__: _words(result, empty),
            label=label,
        )
        for label, pattern, rewrite, text, result, every in _PATTERNS
        for empty in (b"-" if b"*" in pattern and b"Q" not in pattern else b"",)
    ),
    Sample(
        "RegexReplace",
        [_EMPTY, _text(b"a"), _text(b"b")],
        {},
        lambda x, *_: x,
        label="empty",
    ),
    *(
        Reject(
            "RegexReplace",
            [_text(b"a"), _text(pattern), _text(b"")],
            {},
            AttributeValueError,
            match,
            label=label,
        )
        for label, pattern, match in (
            ("open", b"(a", r"a '\(' is not closed"),
            ("closed", b"a)", r"a '\)' is not opened"),
            ("lookahead", b"(?=a)", "not supported"),
            ("reference", rb"(a)\1", "references to groups"),
            ("repeated", b"a++", "another repetition"),
            ("nothing", b"*a", "nothing stands before"),
            ("many", b"a{2000}", "at most 1000"),
            ("class", b"[a", r"a '\[' is not closed"),
            ("backwards", b"[z-a]", "runs backwards"),
            ("escape", rb"\y", "no escape"),
            ("script", rb"\p{Greek}", "Unicode's categories"),
            ("bytes", b"\xff", "not UTF-8"),
            ("deep", b"(" * 300 + b")" * 300, "nested more than 200"),
        )
    ),
    Reject(
        "RegexReplace",
        [_text(b"a"), _text(b"a"), _text(rb"\q")],
        {},
        AttributeValueError,
        "the rewrite",
        label="rewrite",
    ),
    Reject(
        "RegexReplace",
        [_text(b"a"), _text([b"a"]), _text(b"")],
        {},
        ShapeError,
        "pattern must be a scalar",
        label="vector",
    ),
    Sample(
        "RegexFullMatch",
        [_text([[b"abc", b"ab"], [b"abcd", b"ab\n"]]), _text(b"ab|abc?")],
        {},
        lambda *_: np.array([[True, True], [False, False]]),
    ),
    Sample(
        "RegexFullMatch",
        [_text(b""), _text(b"")],
        {},
        lambda *_: np.array(True),
        label="scalar",
    ),
    Sample(
        "RegexFullMatch",
        [_EMPTY, _text(b"a")],
        {},
        lambda x, *_: np.zeros(x.shape, bool),
        label="empty",
    ),
    Reject(
        "RegexFullMatch", [_text(b"a"), _text(b"[")], {}, AttributeValueError, "the pattern '\\['"
    ),
    *(
        Sample("StringStrip", [maker], {}, _each(lambda t: t.strip(b" \t\n\r\x0b\f")), label=label)
        for label, maker in (("", _WHITE), ("scalar", _text(b" a ")), ("empty", _EMPTY))
    ),
    Reject("StringStrip", [integers((2,), 0, 9)], {}, DTypeError, "must be string"),
    *(
        Sample(
            "StringLength", [maker], {"unit": unit}, _each(count, np.int32), label=f"{label}{unit}"
        )
        for label, maker in (("", _GERMAN), ("scalar", _text("é".encode())), ("empty", _EMPTY))
        for unit, count in (("BYTE", len), ("UTF8_CHAR", lambda t: len(t.decode())))
    ),
    Sample(
        "StringLength",
        [_text([b"\xff\xfe", b"\x80\x80a"])],
        {"unit": "UTF8_CHAR"},
        lambda x, unit: np.array([2, 1], np.int32),
        label="no_text",
    ),
    Reject(
        "StringLength",
        [_text(b"a")],
        {"unit": "WORD"},
        AttributeValueError,
        "unit must be",
    ),
    *(
        Sample(
            op,
            [_GERMAN],
            {"encoding": encoding},
            lambda x, encoding, result=result: _words(*(r.encode() for r in result)),
            label=encoding,
        )
        for op, encoding, result in (
            ("StringLower", "", ("größer", "abc", "", "Éa")),
            ("StringLower", "utf-8", ("größer", "abc", "", "éa")),
            ("StringUpper", "", ("GRößER", "ABC", "", "ÉA")),
            ("StringUpper", "utf-8", ("GRÖSSER", "ABC", "", "ÉA")),
        )
    ),
    *(
        Reject(op, [_text(b"a")], {"encoding": "x"}, AttributeValueError, "encoding must be")
        for op in ("StringLower", "StringUpper")
    ),
    *(
        Sample(
            "ReduceJoin",
            [_text([[b"a", b"b"], [b"c", b"d"]]), array(np.array(axes, np.int32), "int32")],
            {"keep_dims": keep, "separator": "."},
            lambda *_, result=result, **__: np.array(result, object),
            label=label,
        )
        for label, axes, keep, result in (
            ("rows", [1], False, [b"a.b", b"c.d"]),
            ("columns_kept", [-2], True, [[b"a.c", b"b.d"]]),
            ("both", [0, 1], False, b"a.c.b.d"),
            ("other_order", [1, 0], True, [[b"a.b.c.d"]]),
            ("none", [], False, [[b"a", b"b"], [b"c", b"d"]]),
            ("scalar_axis", 0, False, [b"a.c", b"b.d"]),
        )
    ),
    Sample(
        "ReduceJoin",
        [_EMPTY, array([0], "int64")],
        {"keep_dims": False, "separator": "x"},
        lambda *_, **__: _words(b"", b""),
        label="empty",
    ),
    *(
        Reject(
            "ReduceJoin",
            [_text([[b"a"]]), array(axes, "int32")],
            {"keep_dims": False, "separator": ""},
            ShapeError,
            match,
            label=label,
        )
        for label, axes, match in (
            ("range", [2], "axis 2 is out of range"),
            ("twice", [0, -2], "named twice"),
        )
    ),
    *(
        Sample(
            "UnicodeTranscode",
            [_text([["é".encode(), b"a\xffb"], [b"\x01\n", b"\xf0\x9f\x98b"]])],
            attrs,
            lambda x, result=result, **_: np.array(result, object),
            label=label,
        )
        for label, attrs, result in (
            (
                "",
                {"input_encoding": "UTF-8", "output_encoding": "UTF-8"},
                [["é".encode(), "a\ufffdb".encode()], [b"\x01\n", "\ufffdb".encode()]],
            ),
            (
                "question_marks",
                {
                    "input_encoding": "UTF-8",
                    "output_encoding": "UTF-8",
                    "replacement_char": 63,
                    "replace_control_characters": True,
                },
                [["é".encode(), b"a?b"], [b"??", b"?b"]],
            ),
            (
                "left_out",
                {"input_encoding": "utf8", "output_encoding": "UTF-16-BE", "errors": "ignore"},
                [[b"\0\xe9", b"\0a\0b"], [b"\0\x01\0\n", b"\0b"]],
            ),
        )
    ),
    Sample(
        "UnicodeTranscode",
        [_text(b"a\xe9")],
        {"input_encoding": "latin1", "output_encoding": "UTF-32-BE", "errors": "strict"},
        lambda x, **_: np.array(b"\0\0\0a\0\0\0\xe9", object),
        label="latin",
    ),
    Reject(
        "UnicodeTranscode",
        [_text(b"\xff")],
        {"input_encoding": "UTF-8", "output_encoding": "UTF-8", "errors": "strict"},
        HeadraceError,
        "is not valid UTF-8",
        when="run",
    ),
    *(
        Reject(
            "UnicodeTranscode",
            [_text(b"a")],
            {"input_encoding": "UTF-8", "output_encoding": "UTF-8", **attrs},
            AttributeValueError,
            match,
            label=label,
        )
        for label, attrs, match in (
            ("encoding", {"input_encoding": "nope"}, "there is no encoding"),
            ("no_text", {"input_encoding": "zlib"}, "no encoding of text"),
            ("replacement", {"replacement_char": 0xD800}, "must be a code point"),
        )
    ),
    *(
        Sample(
            "UnicodeEncode",
            [array([[72, 233], [0x1F600, 0xD800]], "int32")],
            {"output_encoding": "UTF-8", **attrs},
            lambda x, result=result, **_: _words("Hé".encode(), result.encode()),
            label=label,
        )
        for label, attrs, result in (
            ("", {}, "\U0001f600\ufffd"),
            ("question_mark", {"replacement_char": 63}, "\U0001f600?"),
            ("left_out", {"errors": "ignore"}, "\U0001f600"),
        )
    ),
    Sample(
        "UnicodeEncode",
        [array(np.zeros((2, 0)), "int32")],
        {"output_encoding": "UTF-16-BE"},
        lambda x, **_: _words(b"", b""),
        label="empty",
    ),
    Reject(
        "UnicodeEncode",
        [array([-1], "int32")],
        {"output_encoding": "UTF-8", "errors": "strict"},
        ExecutionError,
        "noncharacter: -1",
        when="run",
    ),
    Reject(
        "UnicodeEncode",
        [array(1, "int32")],
        {"output_encoding": "UTF-8"},
        ShapeError,
        "a vector at least",
        label="scalar",
    ),
    Reject(
        "UnicodeEncode",
        [array([1], "int64")],
        {"output_encoding": "UTF-8"},
        DTypeError,
        "int32, got int64",
        label="dtype",
    ),
]
