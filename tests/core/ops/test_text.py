"""Functions of strings that build with ops, their names and aliases, and regular expressions."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    ExecutionError,
    InvalidArgumentError,
    ShapeError,
)
from headrace.regex import compile_pattern
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu")


def listed(sparse):
    return sparse.indices.tolist(), sparse.values.tolist(), sparse.dense_shape.tolist()


def test_joining():
    assert run(hr.string_join(["a", ["b", "c"]], "-")).tolist() == [b"a-b", b"a-c"]
    assert run(hr.strings.join([hr.constant("a")])) == b"a"
    assert run(hr.string_join([])) == b""
    assert run(hr.string_join(["a", "b"], separator="é", name="j")) == "aéb".encode()


def test_splitting_at_bytes():
    found = listed(run(hr.string_split(["hello world", "a b c"])))
    assert found == (
        [[0, 0], [0, 1], [1, 0], [1, 1], [1, 2]],
        [b"hello", b"world", b"a", b"b", b"c"],
        [2, 3],
    )
    assert listed(run(hr.string_split(["a,b|c"], delimiter=",|")))[1] == [b"a", b"b", b"c"]
    assert listed(run(hr.string_split(["a,,b", ""], ",", False)))[1] == [b"a", b"", b"b"]
    assert listed(run(hr.string_split(["ab"], "")))[1] == [b"a", b"b"]


def test_splitting_as_python_does():
    rows = ["a b  c", " x ", ""]
    assert listed(run(hr.strings.split(rows)))[1:] == ([b"a", b"b", b"c", b"x"], [3, 3])
    assert listed(run(hr.strings.split(rows, " ", 1)))[1] == [b"a", b"b  c", b"", b"x ", b""]
    assert listed(run(hr.strings.split(source=["a--b"], sep="--")))[1] == [b"a", b"b"]
    assert listed(run(hr.strings.split("a b"))) == ([[0, 0], [0, 1]], [b"a", b"b"], [1, 2])


def test_splitting_a_matrix_adds_an_axis():
    fed = hr.placeholder(hr.string, [None, 2])
    found = listed(run(hr.strings.split(fed), {fed: [["a b", "c"], ["", "d e f"]]}))
    assert found[0] == [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 1, 0], [1, 1, 1], [1, 1, 2]]
    assert found[2] == [2, 2, 3]


def test_what_is_not_split():
    with pytest.raises(AttributeValueError, match="must be 'SparseTensor'"):
        hr.string_split(["a"], result_type="list")
    with pytest.raises(AttributeValueError, match="not both"):
        hr.string_split(["a"], sep=",", delimiter=",")
    with pytest.raises(AttributeValueError, match="only one of them"):
        hr.strings.split()
    with pytest.raises(ShapeError, match="must be a vector"):
        hr.string_split([["a"]])
    x = hr.placeholder(hr.string)
    with hr.Session() as session, pytest.raises(InvalidArgumentError, match=r"got \[1, 1\]"):
        session.run(hr.strings.split(x), {x: [["a"]]})


def test_joining_along_axes():
    a = [["a", "b"], ["c", "d"]]
    assert run(hr.reduce_join(a)) == b"abcd"
    assert run(hr.reduce_join(a, 0)).tolist() == [b"ac", b"bd"]
    assert run(hr.reduce_join(a, [0, 1], separator=".")) == b"a.c.b.d"
    assert run(hr.reduce_join(a, -1, keep_dims=True)).tolist() == [[b"ab"], [b"cd"]]
    assert run(hr.strings.reduce_join(a, reduction_indices=1, keepdims=True)).shape == (2, 1)
    assert run(hr.reduce_join(a, [])).tolist() == [[b"a", b"b"], [b"c", b"d"]]
    assert run(hr.reduce_join("a")) == b"a"
    axis = hr.placeholder(hr.int32, [1])
    assert run(hr.reduce_join(a, axis), {axis: [0]}).tolist() == [b"ac", b"bd"]
    fed = hr.placeholder(hr.string)
    assert run(hr.reduce_join(fed), {fed: a}) == b"abcd"
    with pytest.raises(ExecutionError, match="axis 2 is out of range"):
        run(hr.reduce_join(a, axis), {axis: [2]})
    with pytest.raises(AttributeValueError, match="axis or reduction_indices"):
        hr.reduce_join(a, 0, reduction_indices=0)


def test_parts_of_strings():
    assert run(hr.substr(["hello", "world"], [1, -2], [2, 9])).tolist() == [b"el", b"ld"]
    assert run(hr.strings.substr("größe", 2, 2, unit="UTF8_CHAR")) == "öß".encode()


def test_elements_of_string_tensors_are_bytes():
    words = hr.constant([b"a\0", b"b"])
    for element in (words[0], hr.unstack(words)[0], hr.gather(words, 0), hr.substr(words[0], 0, 2)):
        assert type(run(element)) is bytes
        assert run(element) == b"a\0"
    assert run(hr.string_join([words[0], words[1]])) == b"a\0b"
    assert run(hr.equal(words[0], b"a\0"))
    assert not run(hr.equal(words[0], b"a"))


def test_lengths_and_cases():
    words = ["héllo", "A"]
    assert run(hr.strings.length(words)).tolist() == [6, 1]
    assert run(hr.strings.length(words, unit="UTF8_CHAR")).tolist() == [5, 1]
    assert run(hr.strings.upper(words)).tolist() == ["HéLLO".encode(), b"A"]
    assert run(hr.strings.upper(words, encoding="utf-8")).tolist() == ["HÉLLO".encode(), b"A"]
    assert run(hr.strings.lower(words, "")).tolist() == ["héllo".encode(), b"a"]
    assert run(hr.string_strip([" a\n"])).tolist() == [b"a"]


def test_strings_are_compared():
    left, right = hr.constant(["a", "b"]), hr.constant(["a", "c"])
    assert run(hr.equal(left, right)).tolist() == [True, False]
    assert run(hr.not_equal(left, "a")).tolist() == [False, True]
    with pytest.raises(DTypeError, match="do not mix"):
        hr.equal(left, hr.constant([1, 2]))


def test_numbers():
    assert run(hr.string_to_number(["1.5", " 2 "])).tolist() == [1.5, 2]
    assert run(hr.strings.to_number(input="7", out_type=hr.int32)) == 7
    assert run(hr.as_string([1.5, 2.0], precision=1)).tolist() == [b"1.5", b"2.0"]
    assert run(hr.strings.as_string(True)) == b"true"
    with pytest.raises(AttributeValueError, match="only one of them"):
        hr.string_to_number("1", input="1")


def test_hashes():
    assert run(hr.string_to_hash_bucket(["a", "b", "c"], 10)).dtype == np.int64
    assert run(hr.strings.to_hash_bucket(input="a", num_buckets=1)) == 0
    assert run(hr.string_to_hash_bucket_fast(["a"], 2**62)).tolist() == [3694432073954588131]
    found = hr.strings.to_hash_bucket_strong(["Hello", "TF"], 3, [1, 2])
    assert run(found).tolist() == [2, 0]
    with pytest.raises(AttributeValueError, match="needs num_buckets"):
        hr.string_to_hash_bucket("a")


def test_bytes_and_records():
    assert run(hr.decode_raw(["abcd"], hr.uint8)).tolist() == [[97, 98, 99, 100]]
    assert run(hr.decode_raw(bytes="ab", out_type=hr.int16, little_endian=False)) == [24930]
    assert run(hr.decode_base64(hr.encode_base64("\x00é", pad=True))) == "\x00é".encode()
    columns = hr.decode_csv(["1,a", ",b"], [[7], [""]])
    assert [c.tolist() for c in run(columns)] == [[1, 7], [b"a", b"b"]]
    (needed,) = hr.decode_csv(["1.5"], [[]])
    assert (needed.dtype, run(needed).tolist()) == (hr.float32, [1.5])
    with pytest.raises(DTypeError, match="one default per column"):
        hr.decode_csv(["1"], hr.constant([1]))
    with pytest.raises(AttributeValueError, match="needs out_type"):
        hr.decode_raw("a")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "complex128", "bool", "uint64", "string"])
def test_tensors_in_strings(dtype):
    value = hr.constant(["a", "bc"]) if dtype == "string" else hr.cast([[1, 0, 3]], dtype)
    found, expected = run([hr.parse_tensor(hr.serialize_tensor(value), dtype), value])
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype


def test_code_points():
    assert run(hr.strings.unicode_encode([72, 233], "UTF-8")) == "Hé".encode()
    found = hr.strings.unicode_transcode(["é"], "UTF-8", "UTF-16-BE")
    assert run(found).tolist() == [b"\x00\xe9"]


def test_patterns_may_come_from_a_step():
    pattern = hr.placeholder(hr.string, [])
    found = hr.regex_replace("axb", pattern, "-")
    assert run(found, {pattern: "x"}) == b"a-b"
    with pytest.raises(AttributeValueError, match=r"a '\(' is not closed"):
        run(found, {pattern: "("})
    assert run(hr.strings.regex_full_match(["ab", "b"], "a?b")).tolist() == [True, True]


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"\d+", "12", "²"),
        (r"\S\D\W", "xé!", "x1!"),
        (r"[\d\s-]+", "1 -", "a"),
        (r"[^\d]", "x", "1"),
        (r"[\D]", "x", "1"),
        (r"[[:^alpha:]]", "1", "a"),
        (r"[]a]+", "]a", "b"),
        (r"[a\]b-]+", "a]-b", "c"),
        (r"\x41\x{e9}\101\n", "AéA\n", "A"),
        (r"\p{Lu}\P{Lu}\pN", "Aa1", "aA1"),
        (r"(?i)straße", "STRAßE", "strasse"),
        (r"(?i:a)b", "Ab", "AB"),
        (r"(?s)a.b", "a\nb", "a\n\nb"),
        (r"(?-s:.)", "a", "\n"),
        (r"(?m)a$\n^b", "a\nb", "a\nc"),
        (r"(?:ab){2}c{0,1}?", "abab", "ab"),
        (r"\Qa.b\E.", "a.bc", "axbc"),
        (r"{}|x{,2}", "x{,2}", "xx"),
        (r"\Aab\z", "ab", "ab\n"),
        (r"(?P<first>a)(?<second>b)", "ab", "a"),
        (r"((a)|b)*", "abab", "c"),
    ],
)
def test_patterns_mean_what_they_mean_in_re2(pattern, matching, other):
    matched = run(hr.strings.regex_full_match([matching, other], pattern))
    assert matched.tolist() == [True, False]
    # What checks patterns when they are built agrees with what matches them.
    checked = compile_pattern(pattern.encode())
    assert [bool(checked.fullmatch(text)) for text in (matching, other)] == [True, False]


def test_matching_takes_linear_time():
    text = "a" * 5000
    assert not run(hr.strings.regex_full_match(text, "(a*)*b"))
    assert run(hr.regex_replace(text, "(a|aa)*b|(a+)+$", "-")) == b"-"


@pytest.mark.parametrize(
    "pattern",
    [
        *("(?<=a)b", "(?!a)", "(?>a)", "(?#c)", "(?(1)a)", "(?P=a)", "(?Ua)", r"\C\8", r"a**"),
        *("a{3,2}", "[[:foo:]]", r"\pX", r"[\b]", "a\\", "[a", r"\x{110000}", "(?P<1>a)"),
        "(?P<a>x)(?P<a>y)",
    ],
)
def test_patterns_that_re2_does_not_have_are_refused(pattern):
    with pytest.raises(AttributeValueError, match="invalid"):
        compile_pattern(pattern.encode())
