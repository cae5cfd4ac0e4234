"""Hashes of strings, read where Python keeps their bytes.

An array of strings holds addresses of Python's bytes objects, which never change, and which the
array keeps. A native loop reads them there, without an object for each. The hashes are those of
``kernels.text_hash``, where they are described.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace import Operation
from headrace_cpu.native.memory import address
from headrace_cpu.native_loops.native_loop import Call, Job, NativeLoop, set_status, team_for

# CPython puts the size of a bytes object behind the object's header, whose last word is its type,
# and its bytes at the end. That is checked below, once, and nothing is read there if it is not so.
_SIZE = object.__basicsize__
_TYPE = _SIZE - 8
_BYTES = bytes.__basicsize__ - 1


@functools.cache
def readable() -> bool:
    """Whether bytes objects are in memory as native loops expect them."""
    word = ctypes.c_int64.from_address
    samples = [b"", b"some", bytes(range(200))]
    return all(
        word(id(sample) + _SIZE).value == len(sample)
        and word(id(sample) + _TYPE).value == id(bytes)
        and ctypes.string_at(id(sample) + _BYTES, len(sample)) == sample
        for sample in samples
    )


_HASHES = """\
for i in range(me * count // team, (me + 1) * count // team):
    object = load_i64(strings, i, 0)
    if load_i64(object + TYPE, 0, 1) != kind:
        STATUS
    else:
        READ
        HASH
        store_i64(out, i, to_i64(remaining(h, to_u64(buckets))), 2)
"""
# The size and the place of the bytes of an object.
READ = """\
size, at = load_i64(object + SIZE, 0, 1), object + BYTES
n = to_u64(size)
"""
_WORDS = ("strings", "count", "kind", "buckets", "out")

_K = {
    "K0": 0xC3A5C85C97CB3127, "K1": 0xB492B66FBE98F273, "K2": 0x9AE16A3B2F90404F,
    "MURMUR": 0xC6A4A7935BD1E995, "SEED": 0xDECAFCAFFE,
    # The first words of long strings: y is 81 * K1 + 113, and z follows from it.
    "Y0": (81 * 0xB492B66FBE98F273 + 113) & (1 << 64) - 1,
}  # fmt: skip

_FARM = """\
factor = n * 2 + K2
if size > 64:
    LONG
elif size > 32:
    MIDDLE
elif size > 16:
    a, b = fetch_u64(at, 0, 1) * K1, fetch_u64(at, 8, 1)
    c, d = fetch_u64(at, size - 8, 1) * factor, fetch_u64(at, size - 16, 1) * K2
    u = ROT(a + b, 43) + ROT(c, 30) + d
    v = a + ROT(b + K2, 18) + c
    h = JOIN(u, v, factor)
elif size >= 8:
    a, b = fetch_u64(at, 0, 1) + K2, fetch_u64(at, size - 8, 1)
    u = ROT(b, 37) * factor + a
    v = (ROT(a, 25) + b) * factor
    h = JOIN(u, v, factor)
elif size >= 4:
    u = (to_u64(fetch_u32(at, 0, 1)) << 3) + n
    v = to_u64(fetch_u32(at, size - 4, 1))
    h = JOIN(u, v, factor)
elif size > 0:
    y = to_u64(load_u8(at, 0, 1)) + (to_u64(load_u8(at, size >> 1, 1)) << 8)
    z = (to_u64(load_u8(at, size - 1, 1)) << 2) + n
    u = y * K2 ^ z * K0
    h = (u ^ u >> 47) * K2
else:
    h = n + K2
"""
_MIDDLE = """\
a, b = fetch_u64(at, 0, 1) * K2, fetch_u64(at, 8, 1)
c, d = fetch_u64(at, size - 8, 1) * factor, fetch_u64(at, size - 16, 1) * K2
y = ROT(a + b, 43) + ROT(c, 30) + d
v = a + ROT(b + K2, 18) + c
z = JOIN(y, v, factor)
e, f = fetch_u64(at, 16, 1) * factor, fetch_u64(at, 24, 1)
g = (y + fetch_u64(at, size - 32, 1)) * factor
k = (z + fetch_u64(at, size - 24, 1)) * factor
u = ROT(e + f, 43) + ROT(g, 30) + k
v = e + ROT(f + a, 18) + g
h = JOIN(u, v, factor)
"""
# The last round is over the last 64 bytes, with other factors.
_LONG = """\
y = n * 0 + Y0
u = y * K2 + 113
z = (u ^ u >> 47) * K2
v, w, p, q = n * 0, n * 0, n * 0, n * 0
x = fetch_u64(at, 0, 1) + (n * 0 + K2) * 81
factor = n * 0 + K1
weight = n * 0 + 1
rounds = (size - 1) // 64
for turn in range(rounds + 1):
    from_ = at + turn * 64
    if turn == rounds:
        factor = ((z & 255) << 1) + K1
        u = p + (n - 1 & 63)
        v, weight = v + u, n * 0 + 9
        p, from_ = u + v, at + size - 64
    x = ROT(x + y + v + fetch_u64(from_, 8, 1), 37) * factor
    y = ROT(y + w + fetch_u64(from_, 48, 1), 42) * factor
    x = x ^ q * weight
    y = y + v * weight + fetch_u64(from_, 40, 1)
    z = ROT(z + p, 33) * factor
    a, b = w * factor + fetch_u64(from_, 0, 1), x + p
    b = ROT(b + a + fetch_u64(from_, 24, 1), 21)
    c, a = a, a + fetch_u64(from_, 8, 1) + fetch_u64(from_, 16, 1)
    b = b + ROT(a, 44)
    v, w = a + fetch_u64(from_, 24, 1), b + c
    a, b = z + q + fetch_u64(from_, 32, 1), y + fetch_u64(from_, 16, 1)
    b = ROT(b + a + fetch_u64(from_, 56, 1), 21)
    c, a = a, a + fetch_u64(from_, 40, 1) + fetch_u64(from_, 48, 1)
    b = b + ROT(a, 44)
    p, q = a + fetch_u64(from_, 56, 1), b + c
    x, z = z, x
u = JOIN(v, p, factor)
u = u + (y ^ y >> 47) * K0 + z
v = JOIN(w, q, factor) + x
h = JOIN(u, v, factor)
"""
_MURMUR = """\
h = n * MURMUR ^ SEED
for step in range(0, size - 7, 8):
    k = fetch_u64(at, step, 1) * MURMUR
    h = (h ^ (k ^ k >> 47) * MURMUR) * MURMUR
if size & 7 != 0:
    k = n * 0
    for step in range(size & -8, size):
        k = k | to_u64(load_u8(at, step, 1)) << to_u64(8 * (step & 7))
    h = (h ^ k) * MURMUR
h = (h ^ h >> 47) * MURMUR
h = h ^ h >> 47
"""
_ROT = re.compile(r"ROT\(([^()]*(?:\([^()]*\)[^()]*)*), (\d+)\)")
_JOIN = re.compile(r"^( *)(\w+) = JOIN\((\w+), (\w+), (\w+)\)(.*)$", re.MULTILINE)


def _written(text: str) -> str:
    """Return a text without the words for rotations, for joining two words, and for constants."""
    text = _JOIN.sub(
        r"\1r = (\3 ^ \4) * \5\n\1r = r ^ r >> 47\n"
        r"\1r = (\4 ^ r) * \5\n\1\2 = (r ^ r >> 47) * \5\6",
        text,
    )
    text = _ROT.sub(lambda m: f"(({m[1]}) >> {m[2]} | ({m[1]}) << {64 - int(m[2])})", text)
    for name, number in _K.items():
        text = re.sub(rf"\b{name}\b", str(number), text)
    return text


def with_places(text: str) -> str:
    """Return a text with numbers for where Python keeps the parts of a bytes object."""
    for word, place in (("TYPE", _TYPE), ("SIZE", _SIZE), ("BYTES", _BYTES)):
        text = re.sub(rf"\b{word}\b", str(place), text)
    return text


def hash_text(name: str) -> dict[str, str]:
    """Return the parts of a native loop whose ``HASH`` puts the hash of ``size`` bytes into ``h``.

    Args:
        name: "farm" or "murmur".
    """
    parts = {"HASH": {"farm": _FARM, "murmur": _MURMUR}[name], "LONG": _LONG, "MIDDLE": _MIDDLE}
    return {word: _written(part) for word, part in parts.items()}


@functools.cache
def _hashes(name: str) -> NativeLoop:
    parts = {"READ": with_places(READ), "STATUS": set_status(), **hash_text(name)}
    return NativeLoop(f"hashes_{name}", _WORDS, with_places(_HASHES), {}, parts)


def _hash_job(name: str, op: Operation) -> Job | None:
    buckets = op.attrs["num_buckets"]
    if not readable() or not 0 < buckets < 1 << 63:
        return None

    def run(calls: Sequence[Call], threads: int, strings: Any) -> Any:
        if not isinstance(strings, np.ndarray) or strings.dtype != object or not strings.size:
            return None
        # A scalar that is made contiguous has an axis.
        found = np.empty(strings.shape, np.int64)
        strings = np.ascontiguousarray(strings)
        team = team_for(8 * strings.size, threads)
        status = calls[0](team, address(strings), strings.size, id(bytes), buckets, address(found))
        return None if status else found

    return Job((_hashes(name),), run)


JOBS: dict[str, Callable[[Operation], Job | None]] = {
    "StringToHashBucketFast": functools.partial(_hash_job, "farm"),
    "StringToHashBucket": functools.partial(_hash_job, "murmur"),
}
