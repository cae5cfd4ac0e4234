"""Hashing strings into buckets, with the functions that TensorFlow uses."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.errors import AttributeValueError, ShapeError, shown
from headrace.graph.dispatch import dispatched
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, String
from headrace.shapes import Shape

_TEXT = "strings have no gradient"


def _bucketed(strings: TensorSpec, num_buckets: int) -> TensorSpec:
    if not 1 <= num_buckets < 2**63:
        raise AttributeValueError(f"num_buckets must be at least 1, got {num_buckets}")
    return strings.with_dtype(dtypes.int64)


@op("StringToHashBucket", public="", no_gradient=_TEXT)
def _hash_bucket(string_tensor: String, num_buckets: int) -> Spec:
    """Hash strings with MurmurHash64A.

    Args:
        string_tensor: [...], string.
        num_buckets: The number of buckets.

    Returns:
        [...], int64, in [0, num_buckets).
    """
    return _bucketed(string_tensor, num_buckets)


@dispatched("string_tensor")
def string_to_hash_bucket(
    string_tensor: Any = None,
    num_buckets: int | None = None,
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Hash strings into buckets, with MurmurHash64A; ``string_to_hash_bucket_fast`` is preferable.

    Args:
        string_tensor: [...], string.
        num_buckets: The number of buckets.
        name: The name of the operation.
        input: Another name of ``string_tensor``.

    Returns:
        [...], int64, in [0, num_buckets).

    Raises:
        AttributeValueError: if there is no bucket, or not exactly one input.
    """
    if (string_tensor is None) == (input is None):
        raise AttributeValueError("give string_tensor or input, and only one of them")
    if num_buckets is None:
        raise AttributeValueError("string_to_hash_bucket needs num_buckets")
    strings = string_tensor if string_tensor is not None else input
    return _hash_bucket(strings, num_buckets, name=name or "StringToHashBucket")


@op("StringToHashBucketFast", elements_of="input", no_gradient=_TEXT)
def string_to_hash_bucket_fast(input: String, num_buckets: int) -> Spec:
    """Hash strings into buckets, with FarmHash's Fingerprint64.

    Whoever knows the function can make strings that fall into one bucket:
    ``string_to_hash_bucket_strong`` withstands that.

    Args:
        input: [...], string.
        num_buckets: The number of buckets.

    Returns:
        [...], int64, in [0, num_buckets).
    """
    return _bucketed(input, num_buckets)


@op("StringToHashBucketStrong", elements_of="input", no_gradient=_TEXT)
def string_to_hash_bucket_strong(input: String, num_buckets: int, key: tuple[int, ...]) -> Spec:
    """Hash strings into buckets, with SipHash-2-4 and a secret key.

    Args:
        input: [...], string.
        num_buckets: The number of buckets.
        key: Two integers of 64 bits.

    Returns:
        [...], int64, in [0, num_buckets).
    """
    if len(key) != 2 or not all(-(2**63) <= part < 2**64 for part in key):
        raise AttributeValueError(f"key must be two integers of 64 bits, got {shown(key)}")
    return _bucketed(input, num_buckets)


@op("Fingerprint", no_gradient="fingerprints have none")
def fingerprint(data: Anything, method: Any = "farmhash64") -> Spec:
    """Fingerprints of rows: equal ones have the same, others nearly never.

    Args:
        data: [rows, ...], any dtype. Of rows of strings, the fingerprints of the strings are taken.
        method: "farmhash64", FarmHash's Fingerprint64.

    Returns:
        [rows, 8], uint8: the bytes of each fingerprint, the lowest first.
    """
    text = method.decode() if isinstance(method, bytes) else method
    if text != "farmhash64":
        raise AttributeValueError(f"method must be 'farmhash64', got {shown(method)}")
    if data.rank == 0:
        raise ShapeError("data must have a row at least, got a scalar")
    rows = None if data.rank is None else data.shape[0]
    return TensorSpec(dtypes.uint8, Shape([rows, 8]))
