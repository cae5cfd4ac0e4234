"""Kernels that hash strings. Strings of one length are hashed together, a column per string.

FarmHash's 64-bit fingerprint is that of Geoff Pike's FarmHash, 2014 (https://github.com/google/farmhash,
namespace farmhashna). SipHash-2-4 is that of Jean-Philippe Aumasson and Daniel J. Bernstein,
"SipHash: a fast short-input PRF", 2012. MurmurHash64A is Austin Appleby's, public domain.
Arithmetic is that of unsigned words, which wrap around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import Array

KERNELS = KernelTable()

# One word for each string.
Words: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"
# From the bytes [strings, length] of strings of one length to a word for each.
Hash: TypeAlias = Callable[[Array], Words]


def _word(value: int) -> np.uint64:
    return np.uint64(value & 0xFFFFFFFFFFFFFFFF)


def hashes(strings: Array, hashed: Hash) -> Words:
    """Return the hash of each string, in one row."""
    texts = np.asarray(strings, object).ravel().tolist()
    found = np.empty(len(texts), np.uint64)
    by_length: dict[int, list[int]] = {}
    for i, text in enumerate(texts):
        by_length.setdefault(len(text), []).append(i)
    for size, places in by_length.items():
        data = np.frombuffer(b"".join(texts[i] for i in places), np.uint8)
        found[places] = hashed(data.reshape((len(places), size)))
    return found


def buckets(strings: Array, count: int, hashed: Hash) -> Array:
    """Return the bucket of each string, of ``count``."""
    return (hashes(strings, hashed) % _word(count)).astype(np.int64).reshape(np.shape(strings))


@KERNELS.plain("StringToHashBucket")
def hash_bucket(xp: Any, string_tensor: Array, *, num_buckets: int) -> Array:
    """Hash with MurmurHash64A."""
    return buckets(string_tensor, num_buckets, murmur_hash)


@KERNELS.plain("StringToHashBucketFast")
def hash_bucket_fast(xp: Any, input: Array, *, num_buckets: int) -> Array:
    """Hash with FarmHash's fingerprint."""
    return buckets(input, num_buckets, fingerprint)


@KERNELS.plain("StringToHashBucketStrong")
def hash_bucket_strong(xp: Any, input: Array, *, num_buckets: int, key: Sequence[int]) -> Array:
    """Hash with SipHash-2-4."""
    first, second = (_word(part) for part in key)
    return buckets(input, num_buckets, lambda data: sip_hash(data, first, second))


@KERNELS.plain("Fingerprint")
def fingerprint_rows(xp: Any, data: Array, *, method: str) -> Array:
    """Hash the bytes of rows; of strings, their hashes where a row has several."""
    array = np.asarray(data)
    if not array.ndim:
        raise ValueError("data must have a row at least, got a scalar")
    if array.dtype == object:
        words = hashes(array, fingerprint)
        if array.size == len(array):
            return _bytes(words)
        array = words.reshape(array.shape)
    rows = np.ascontiguousarray(array).reshape((len(array), -1 if array.size else 0))
    return _bytes(fingerprint(rows.view(np.uint8)))


def _bytes(words: Words) -> Array:
    return words.astype("<u8").view(np.uint8).reshape((len(words), 8))


def _fetch(data: Array, at: int) -> Words:
    """Return the 8 bytes from ``at`` as words, the first byte lowest."""
    return np.ascontiguousarray(data[:, at : at + 8]).view("<u8")[:, 0].astype(np.uint64)


def _fetch32(data: Array, at: int) -> Words:
    return np.ascontiguousarray(data[:, at : at + 4]).view("<u4")[:, 0].astype(np.uint64)


def _rest(data: Array, at: int) -> Words:
    """Return the bytes from ``at``, fewer than 8, as the lowest bytes of words."""
    padded = np.zeros((len(data), 8), np.uint8)
    padded[:, : data.shape[1] - at] = data[:, at:]
    return _fetch(padded, 0)


def _rotated(x: Words, right: int) -> Words:
    return (x >> _word(right)) | (x << _word(64 - right))


def _rotated_left(x: Words, left: int) -> Words:
    return _rotated(x, 64 - left)


# -- FarmHash

_K0 = _word(0xC3A5C85C97CB3127)
_K1 = _word(0xB492B66FBE98F273)
_K2 = _word(0x9AE16A3B2F90404F)


def _mixed(x: Words) -> Words:
    return x ^ (x >> _word(47))


def _joined(u: Words, v: Words, factor: Any) -> Words:
    a = _mixed((u ^ v) * factor)
    joined: Words = _mixed((v ^ a) * factor) * factor
    return joined


def fingerprint(data: Array) -> Words:
    """Return FarmHash's Fingerprint64 of each row of bytes."""
    size = data.shape[1]
    if size <= 16:
        return _up_to_16(data, size)
    factor = _word(int(_K2) + size * 2)
    if size <= 32:
        a, b = _fetch(data, 0) * _K1, _fetch(data, 8)
        c, d = _fetch(data, size - 8) * factor, _fetch(data, size - 16) * _K2
        left = _rotated(a + b, 43) + _rotated(c, 30) + d
        return _joined(left, a + _rotated(b + _K2, 18) + c, factor)
    if size <= 64:
        a, b = _fetch(data, 0) * _K2, _fetch(data, 8)
        c, d = _fetch(data, size - 8) * factor, _fetch(data, size - 16) * _K2
        y = _rotated(a + b, 43) + _rotated(c, 30) + d
        z = _joined(y, a + _rotated(b + _K2, 18) + c, factor)
        e, f = _fetch(data, 16) * factor, _fetch(data, 24)
        g, h = (y + _fetch(data, size - 32)) * factor, (z + _fetch(data, size - 24)) * factor
        left = _rotated(e + f, 43) + _rotated(g, 30) + h
        return _joined(left, e + _rotated(f + a, 18) + g, factor)
    return _long(data, size)


def _up_to_16(data: Array, size: int) -> Words:
    factor = _word(int(_K2) + size * 2)
    if size >= 8:
        a, b = _fetch(data, 0) + _K2, _fetch(data, size - 8)
        c = _rotated(b, 37) * factor + a
        d = (_rotated(a, 25) + b) * factor
        return _joined(c, d, factor)
    if size >= 4:
        low = (_fetch32(data, 0) << _word(3)) + _word(size)
        return _joined(low, _fetch32(data, size - 4), factor)
    if size > 0:
        first, middle, last = (data[:, i].astype(np.uint64) for i in (0, size >> 1, size - 1))
        y = first + (middle << _word(8))
        z = (last << _word(2)) + _word(size)
        return _mixed(y * _K2 ^ z * _K0) * _K2
    return np.full(len(data), _K2, np.uint64)


def _weak(data: Array, at: int, a: Words, b: Words) -> tuple[Words, Words]:
    """Return two words of 32 bytes and two seeds."""
    w, x, y, z = (_fetch(data, at + 8 * i) for i in range(4))
    a = a + w
    b = _rotated(b + a + z, 21)
    c = a
    a = a + x + y
    b = b + _rotated(a, 44)
    return a + z, b + c


def _long(data: Array, size: int) -> Words:
    """Return the fingerprint of rows of more than 64 bytes."""
    zero = np.zeros(len(data), np.uint64)
    y = zero + _word(81 * int(_K1) + 113)
    z = _mixed(y * _K2 + _word(113)) * _K2
    v, w = (zero, zero), (zero, zero)
    x = zero + _word(81) * _K2 + _fetch(data, 0)
    end = (size - 1) // 64 * 64
    for at in range(0, end, 64):
        x, y, z, v, w = _round(data, at, x, y, z, v, w, _K1, _word(1))
    factor = _K1 + ((z & _word(0xFF)) << _word(1))
    first = w[0] + _word((size - 1) & 63)
    v = (v[0] + first, v[1])
    w = (first + v[0], w[1])
    x, y, z, v, w = _round(data, size - 64, x, y, z, v, w, factor, _word(9))
    return _joined(
        _joined(v[0], w[0], factor) + _mixed(y) * _K0 + z,
        _joined(v[1], w[1], factor) + x,
        factor,
    )


_Pair: TypeAlias = "tuple[Words, Words]"


def _round(
    data: Array,
    at: int,
    x: Words,
    y: Words,
    z: Words,
    v: _Pair,
    w: _Pair,
    factor: Any,
    weight: np.uint64,
) -> tuple[Words, Words, Words, _Pair, _Pair]:
    """Return the state after 64 bytes more."""
    x = _rotated(x + y + v[0] + _fetch(data, at + 8), 37) * factor
    y = _rotated(y + v[1] + _fetch(data, at + 48), 42) * factor
    x = x ^ (w[1] * weight)
    y = y + v[0] * weight + _fetch(data, at + 40)
    z = _rotated(z + w[0], 33) * factor
    v = _weak(data, at, v[1] * factor, x + w[0])
    w = _weak(data, at + 32, z + w[1], y + _fetch(data, at + 16))
    return z, y, x, v, w


# -- MurmurHash


def murmur_hash(data: Array) -> Words:
    """Return MurmurHash64A of each row of bytes, with the seed that TensorFlow uses."""
    factor, size = _word(0xC6A4A7935BD1E995), data.shape[1]
    h = np.full(len(data), _word(0xDECAFCAFFE ^ (size * int(factor))), np.uint64)
    for at in range(0, size - 7, 8):
        k = _fetch(data, at) * factor
        h = (h ^ ((k ^ (k >> _word(47))) * factor)) * factor
    if size % 8:
        h = (h ^ _rest(data, size - size % 8)) * factor
    return _mixed(_mixed(h) * factor)


# -- SipHash


def sip_hash(data: Array, first: np.uint64, second: np.uint64) -> Words:
    """Return SipHash-2-4 of each row of bytes, under a key of two words."""
    size = data.shape[1]
    constants = (0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573)
    keys = (first, second, first, second)
    zero = np.zeros(len(data), np.uint64)
    state = [zero + (key ^ _word(c)) for key, c in zip(keys, constants, strict=True)]
    words = [_fetch(data, at) for at in range(0, size - 7, 8)]
    words.append(_rest(data, size - size % 8) | _word((size & 0xFF) << 56))
    for word in words:
        state[3] = state[3] ^ word
        _sip_rounds(state, 2)
        state[0] = state[0] ^ word
    state[2] = state[2] ^ _word(0xFF)
    _sip_rounds(state, 4)
    found: Words = state[0] ^ state[1] ^ state[2] ^ state[3]
    return found


def _sip_rounds(state: list[Words], count: int) -> None:
    a, b, c, d = state
    for _ in range(count):
        a, c = a + b, c + d
        b, d = _rotated_left(b, 13) ^ a, _rotated_left(d, 16) ^ c
        a, c = _rotated_left(a, 32) + d, c + b
        b, d = _rotated_left(b, 17) ^ c, _rotated_left(d, 21) ^ a
        c = _rotated_left(c, 32)
    state[:] = [a, b, c, d]
