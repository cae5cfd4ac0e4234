"""Compressed strings, and examples in JSON."""

from __future__ import annotations

import gzip
import json
import zlib

import pytest

import headrace as hr
from headrace import errors
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu")

COMPRESS = {"ZLIB": zlib.compress, "GZIP": gzip.compress}


@pytest.mark.parametrize("kind", COMPRESS)
def test_strings_are_decompressed(kind):
    texts = [b"", b"one", b"x" * 100_000]
    found = run(hr.decode_compressed([COMPRESS[kind](text) for text in texts], kind))
    assert found.tolist() == texts
    assert run(hr.io.decode_compressed(COMPRESS[kind](b"one") * 2, kind)) == b"oneone"
    assert run(hr.decode_compressed(b"", kind)) == b""
    assert hr.decode_compressed([[b"a"]], kind).shape == [1, 1]


def test_without_a_compression_strings_stay():
    assert run(hr.decode_compressed([b"a", b"b"])).tolist() == [b"a", b"b"]


@pytest.mark.parametrize("kind", COMPRESS)
def test_damaged_strings_are_told(kind):
    whole = COMPRESS[kind](b"hello" * 100)
    with pytest.raises(errors.DataLossError, match=f"is cut short: its {kind} data end early"):
        run(hr.decode_compressed([whole[:-1]], kind))
    with pytest.raises(errors.DataLossError, match=f"is no {kind} data, or is damaged"):
        run(hr.decode_compressed([b"zz"], kind))
    with pytest.raises(errors.DataLossError, match=r"is damaged|is cut short"):
        run(hr.decode_compressed([whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:]], kind))


def test_compressions_are_known():
    with pytest.raises(errors.InvalidArgumentError, match="'ZLIB' or 'GZIP', got 'FOO'"):
        hr.decode_compressed([b""], "FOO")


def test_examples_in_json_are_parsed():
    features = {
        "a": {"int64List": {"value": ["1", "2"]}},
        "b": {"bytesList": {"value": ["YWI="]}},
        "f": {"float_list": {"value": [1.5]}},
    }
    text = json.dumps({"features": {"feature": features}})
    parsed = hr.parse_example(
        hr.decode_json_example([text]),
        {
            "a": hr.FixedLenFeature([2], hr.int64),
            "b": hr.FixedLenFeature([], hr.string),
            "f": hr.FixedLenFeature([], hr.float32),
        },
    )
    found = run(parsed)
    assert found["a"].tolist() == [[1, 2]]
    assert found["b"].tolist() == [b"ab"]
    assert found["f"].tolist() == [1.5]
    assert hr.io.decode_json_example(text).shape == []


@pytest.mark.parametrize("text", ["{", '{"x": 1}', "3", b"\xff", '{"features": {"feature": 3}}'])
def test_what_is_no_example_in_json_is_told(text):
    with pytest.raises(errors.InvalidArgumentError, match="is no Example in JSON"):
        run(hr.decode_json_example([text]))
