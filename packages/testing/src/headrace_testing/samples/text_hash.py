"""Samples of hashes. What comes out is what TensorFlow's ops gave for the same strings."""

from __future__ import annotations

import numpy as np

from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace_testing.inputs import array
from headrace_testing.sample import Reject, Row, Sample

# Of each length that a hash treats in a way of its own.
_WORDS = [
    "",
    "a",
    "abc",
    "abcdefgh",
    "0123456789abcdef",
    "0123456789abcdef0123456789abcdef",
    "x" * 64,
    "x" * 65,
    "abc" * 500,
]
_TEXTS = array([word.encode() for word in _WORDS], "string")

SAMPLES: list[Row] = [
    Sample(
        "StringToHashBucket",
        [array([b"", b"a", b"abc", b"hello world, this is long text more than 16"], "string")],
        {"num_buckets": 2**40},
        lambda s, num_buckets: np.array([142163811899, 825286642172, 559149780406, 962775444226]),
    ),
    Sample(
        "StringToHashBucketFast",
        [_TEXTS],
        {"num_buckets": 2**62},
        lambda s, num_buckets: np.array(
            [
                1936946117179621455,
                3694432073954588131,
                2640714258260161385,
                4533385575889643785,
                1493332391325024359,
                1958373538681310840,
                2304502108871267256,
                323337772074164025,
                2810410660457086776,
            ]
        ),
    ),
    Sample(
        "StringToHashBucketStrong",
        [array([[b"", b"a"], [b"abc", b"hello world"]], "string")],
        {"num_buckets": 2**62, "key": (1, 2)},
        lambda s, num_buckets, key: np.array(
            [
                [443797209252341627, 546566331822570742],
                [1250540936487842205, 1015233985318741638],
            ]
        ),
    ),
    *(
        Sample(
            op,
            [array(words, "string")],
            attrs,
            lambda s, **_: np.zeros(s.shape, np.int64),
            label=label,
        )
        for op, attrs in (
            ("StringToHashBucket", {"num_buckets": 1}),
            ("StringToHashBucketFast", {"num_buckets": 1}),
            ("StringToHashBucketStrong", {"num_buckets": 1, "key": (1, -1)}),
        )
        for label, words in (("scalar", b"word"), ("empty", np.zeros((2, 0), object)))
    ),
    Sample(
        "Fingerprint",
        [array([b"a", b"abc"], "string")],
        {},
        lambda d: np.array(
            [[227, 117, 223, 182, 101, 66, 69, 179], [105, 243, 231, 116, 160, 179, 165, 36]],
            np.uint8,
        ),
    ),
    Sample(
        "Fingerprint",
        [array([[b"a", b"abc"], [b"x", b"y"]], "string")],
        {"method": "farmhash64"},
        lambda d, method: np.array(
            [[225, 123, 13, 242, 31, 176, 14, 223], [186, 9, 112, 82, 61, 81, 48, 156]], np.uint8
        ),
        label="rows of strings",
    ),
    Sample(
        "Fingerprint",
        [array([[[1, 2]], [[3, 4]]], "int64")],
        {},
        lambda d: np.array(
            [[13, 174, 106, 137, 46, 191, 85, 144], [243, 64, 135, 33, 239, 128, 109, 162]],
            np.uint8,
        ),
        label="rows of numbers",
    ),
    Reject("Fingerprint", [array([1], "int32")], {"method": "md5"}, AttributeValueError, "method"),
    Reject("Fingerprint", [array(1, "int32")], {}, ShapeError, "row"),
    Reject(
        "StringToHashBucketFast",
        [array([b"a"], "string")],
        {"num_buckets": 0},
        AttributeValueError,
        "at least 1",
    ),
    Reject("StringToHashBucket", [array([1], "int32")], {"num_buckets": 1}, DTypeError, "string"),
    Reject(
        "StringToHashBucketStrong",
        [array([b"a"], "string")],
        {"num_buckets": 2, "key": (1,)},
        AttributeValueError,
        "two integers",
    ),
]
