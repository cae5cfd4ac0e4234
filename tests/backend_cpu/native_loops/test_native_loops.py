"""Native loops give the bits of plain kernels, on any number of threads, for all dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import as_dtype
from headrace.extend.primitives import linear_recurrence

FLOATS = ("float32", "float64", "float16", "bfloat16")
WHOLE = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
SORT_SHAPES = ((5, 7), (4, 65), (2, 3, 300), (1, 3000), (3, 1), (0, 4), (3, 0))
SCANS = (((5, 7), 1), ((9, 3, 17), 2), ((3, 40, 50), 1), ((3, 5, 2), 1), ((4, 0), 1))
TOPS = (((5, 7), (1, 2, 7)), ((4, 300), (5, 60, 299)), ((2, 9000), (40,)), ((1, 20_000), (7, 90)))


def _run(build: Callable[..., Any], arrays: Any, **settings: Any) -> list[Any]:
    with hr.Graph().as_default():
        holders = [hr.placeholder(as_dtype(a.dtype), a.shape) for a in arrays]
        fetches = build(*holders)
        with hr.Session(config=hr.Config(**settings)) as session:
            found = session.run(fetches, dict(zip(holders, arrays, strict=True)))
    return list(found) if isinstance(found, list | tuple) else [found]


def _check(build: Callable[..., Any], *arrays: Any, zeros: bool = True) -> None:
    """Compare the compiled executor, which waits for native loops, with the plain one, bit by bit.

    Args:
        build: The program.
        arrays: What it is fed.
        zeros: Whether zeros must have the same sign.
    """
    expected = _run(build, arrays, executor="plain")
    for threads in (1, 2, 3):
        found = _run(build, arrays, compile_after=0, threads=threads)
        for one, other in zip(expected, found, strict=True):
            assert one.dtype == other.dtype
            assert one.shape == other.shape
            if zeros:
                assert one.tobytes() == other.tobytes()
            else:
                wide = np.float64 if one.dtype.name in FLOATS else one.dtype
                np.testing.assert_array_equal(one.astype(wide), other.astype(wide))


def _numbers(dtype: str, shape: tuple[int, ...], scale: float = 30.0, *, odd: bool = True) -> Any:
    """Return numbers with ties, and for floats with NaN, infinities and zeros of both signs."""
    rng = np.random.default_rng(len(dtype) + sum(shape))
    made = np.round(rng.standard_normal(shape) * scale)
    kind = as_dtype(dtype).numpy
    if kind.kind == "u":
        made = np.abs(made)
    with np.errstate(all="ignore"):
        made = made.astype(kind)
    if odd and dtype in FLOATS and made.size > 20:
        flat, at = made.reshape(-1), rng.integers(0, made.size, (5, 3))
        for value, places in zip((np.nan, -0.0, 0.0, np.inf, -np.inf), at, strict=True):
            flat[places] = value
    return made


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
def test_scans(dtype) -> None:
    for shape, axis in SCANS:
        values = _numbers(dtype, shape, 3.0, odd=False)
        for exclusive in (False, True):
            for reverse in (False, True):

                def build(x, axis=axis, flags=(exclusive, reverse)):
                    return hr.cumsum(x, axis, *flags), hr.cumprod(x, axis, *flags)

                _check(build, values)


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
def test_recurrences(dtype) -> None:
    for shape, axis in (*SCANS, ((2, 700), 1)):
        factors, terms = (_numbers(dtype, shape, scale, odd=False) for scale in (0.6, 2.0))
        for reverse in (False, True):

            def build(a, b, axis=axis, reverse=reverse):
                return linear_recurrence(a, b, axis, reverse)

            _check(build, factors, terms)


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
def test_orders(dtype) -> None:
    for shape in SORT_SHAPES:
        values = _numbers(dtype, shape)
        for direction in ("ASCENDING", "DESCENDING"):
            _check(lambda x, d=direction: hr.argsort(x, direction=d), values)
            plain, found = (
                _run(lambda x, d=direction: hr.sort(x, direction=d), [values], **settings)[0]
                for settings in ({"executor": "plain"}, {"compile_after": 0})
            )
            wide = np.float64 if dtype in FLOATS else plain.dtype
            np.testing.assert_array_equal(found.astype(wide), plain.astype(wide))


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
def test_largest(dtype) -> None:
    for shape, counts in TOPS:
        values = _numbers(dtype, shape)
        rising = np.sort(_numbers(dtype, shape, odd=False).astype(np.float64), -1)
        for count in counts:
            for rows in (values, rising.astype(values.dtype)):
                _check(lambda x, k=count: tuple(hr.nn.top_k(x, k)), rows)


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
def test_searches(dtype) -> None:
    rows = np.sort(_numbers(dtype, (3, 500), odd=False).astype(np.float64), -1)
    values = _numbers(dtype, (3, 77))
    for side in ("left", "right"):
        for out in ("int32", "int64"):
            _check(
                lambda s, v, side=side, out=out: hr.searchsorted(s, v, side, out),
                rows.astype(values.dtype),
                values,
            )


@pytest.mark.parametrize("dtype", FLOATS)
def test_in_top(dtype) -> None:
    targets = np.arange(-1, 5, dtype=np.int32)
    _check(lambda x, t: hr.nn.in_top_k(x, t, 2), _numbers(dtype, (6, 4)), targets)


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE, "bool"])
def test_distinct(dtype) -> None:
    for size, scale in ((1, 1.0), (1000, 30.0), (20_000, 1e4)):
        values = _numbers(dtype, (size,), scale)
        for out in ("int32", "int64"):
            _check(lambda x, out=out: tuple(hr.unique_with_counts(x, out)), values)
    far = _numbers("int64", (5000,), 1e4) * 1_000_000_007
    _check(lambda x: tuple(hr.unique_with_counts(x)), far)


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
def test_segments(dtype, index) -> None:
    rng = np.random.default_rng(5)
    for count, row, number in (
        *((1, (), 3), (30_000, (), 100), (3000, (16,), 900), (900, (4, 9), 7)),
        # Rows of which a part is held in registers, and a rest is not.
        *((700, (75,), 9), (300, (539,), 60)),
    ):
        values = _numbers(dtype, (count, *row))
        ids = rng.integers(-1, number, count).astype(index)

        for names in (("sum", "prod"), ("max", "min")):

            def build(x, i, number=number, names=names):
                return [getattr(hr, f"unsorted_segment_{name}")(x, i, number) for name in names]

            # Of zeros of both signs NumPy takes one or the other as the largest.
            _check(build, values, ids, zeros="sum" in names)
            _check(build, values, np.sort(ids), zeros="sum" in names)


def test_ids_out_of_range_are_refused() -> None:
    values, ids = np.ones(5, np.float32), np.array([0, 1, 3, 2, 1], np.int32)
    with pytest.raises(hr.errors.InvalidInputError, match="index 3 is out of"):
        _run(lambda x, i: hr.unsorted_segment_sum(x, i, 3), [values, ids], compile_after=0)
    with pytest.raises(hr.errors.InvalidInputError, match="index 3 is out of"):
        _run(lambda x, i: hr.gather(x[:3], i), [values, ids], compile_after=0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_sparse_products(dtype) -> None:
    rng = np.random.default_rng(6)
    for rows, columns, many, width in ((50, 40, 300, 1), (900, 60, 9000, 20), (90, 80, 2000, 81)):
        flat = np.sort(rng.choice(rows * columns, many, replace=False))
        places = np.stack([flat // columns, flat % columns], 1)
        values = _numbers(dtype, (many,), 3.0, odd=False)
        for first in (False, True):
            for second in (False, True):
                height = rows if first else columns
                other = _numbers(dtype, (width, height) if second else (height, width), odd=False)

                def build(i, v, b, shape=(rows, columns), flags=(first, second)):
                    return hr.sparse_tensor_dense_matmul(hr.SparseTensor(i, v, shape), b, *flags)

                plain = _run(build, [places, values, other], executor="plain")[0]
                found = _run(build, [places, values, other], compile_after=0, threads=2)[0]
                # All are whole numbers, so that sums are exact in any order.
                np.testing.assert_array_equal(found, plain)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "bool", "bfloat16", "complex128"])
def test_picks(dtype) -> None:
    rng = np.random.default_rng(7)
    cases: list[tuple[Any, ...]] = [
        ((50, 3), 0, 0, (7, 2)), ((50, 8), 0, 0, (70,)), ((2000, 64), 0, 0, (3000,)),
        ((40_000,), 0, 0, (50_000,)), ((6, 40, 3), 1, 0, (11,)), ((4, 6, 10), 2, 2, (4, 6, 7)),
        ((4, 6, 10, 3), 2, 1, (4, 7)),
    ]  # fmt: skip
    for shape, axis, lead, many in cases:
        values = _numbers(dtype, shape, odd=False)
        at = rng.integers(0, shape[axis], many)
        for index in (np.int32, np.int64):
            _check(
                lambda x, i, a=axis, b=lead: hr.gather(x, i, axis=a, batch_dims=b),
                values,
                at.astype(index),
            )
    for depth in (1, 2, 3):
        _check(hr.gather_nd, _numbers(dtype, (5, 5, 5), odd=False), rng.integers(0, 5, (60, depth)))


@pytest.mark.parametrize("name", ["add", "sub", "min", "max", "update"])
def test_rows_of_variables_change_in_place(name) -> None:
    rng = np.random.default_rng(8)
    for shape, many in (((50,), 300), ((30, 16), 100), ((3000, 40), 2000)):
        base = rng.standard_normal(shape).astype(np.float32)
        updates = rng.standard_normal((many, *shape[1:])).astype(np.float32)
        at = rng.integers(0, shape[0], many).astype(np.int32)
        found = []
        for settings in ({"executor": "plain"}, {"compile_after": 0, "threads": 2}):
            with hr.Graph().as_default():
                variable = hr.Variable(hr.zeros(shape))
                rows = hr.placeholder("int32", at.shape)
                change = getattr(hr, f"scatter_{name}")(variable, rows, hr.constant(updates))
                with hr.Session(config=hr.Config(**settings)) as session:
                    variable.load(base, session)
                    session.run(change, {rows: at})
                    # A step that is refused changes nothing.
                    with pytest.raises(hr.errors.InvalidInputError, match="out of range"):
                        session.run(change, {rows: np.append(at[1:], shape[0]).astype(np.int32)})
                    found.append(session.run(variable.value()))
        np.testing.assert_array_equal(found[0], found[1])


def _strings(*sizes: int) -> Any:
    rng = np.random.default_rng(len(sizes))
    made = np.empty(len(sizes), object)
    made[:] = [rng.integers(0, 256, size).astype(np.uint8).tobytes() for size in sizes]
    return made


def _on_strings(build: Callable[..., Any], strings: Any, **settings: Any) -> Any:
    with hr.Graph().as_default():
        holder = hr.placeholder(hr.string, strings.shape)
        fetch = build(holder)
        with hr.Session(config=hr.Config(**settings)) as session:
            session.run(hr.tables_initializer())
            # Tables have an index when as many keys were looked up as they hold.
            return [session.run(fetch, {holder: strings}) for _ in range(3)][-1]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "hashed", [hr.strings.to_hash_bucket_fast, hr.string_to_hash_bucket], ids=["farm", "murmur"]
)
def test_hashes_of_strings_of_every_size(hashed, threads) -> None:
    strings = _strings(*range(300), *[9] * 3000).reshape(100, 33)
    for buckets in (1, 1000, (1 << 62) + 1):
        plain, found = (
            _on_strings(lambda x, n=buckets: hashed(x, n), strings, **settings)
            for settings in ({"executor": "plain"}, {"compile_after": 0, "threads": threads})
        )
        assert found.dtype == plain.dtype
        np.testing.assert_array_equal(found, plain)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("values", [np.int64, np.float32, np.bool_])
def test_looking_up_strings(values, threads) -> None:
    held = _strings(*range(200))
    # Some keys have the same size, or begin alike.
    others = np.array([text[:-1] + b"~" for text in held[8:]], object)
    asked = np.concatenate([held, others] * 20)

    def build(x):
        numbers = hr.constant(np.arange(200).astype(values))
        initializer = hr.lookup.KeyValueTensorInitializer(hr.constant(held), numbers)
        return hr.lookup.StaticHashTable(initializer, numbers[3]).lookup(x)

    plain, found = (
        _on_strings(build, asked, **settings)
        for settings in ({"executor": "plain"}, {"compile_after": 0, "threads": threads})
    )
    assert found.dtype == values
    np.testing.assert_array_equal(found, plain)


@pytest.mark.parametrize("key", [b"a", 7])
@pytest.mark.parametrize("shape", [[], [1, 1]])
def test_looking_up_one_key_keeps_its_shape(key, shape) -> None:
    with hr.Graph().as_default():
        initializer = hr.lookup.KeyValueTensorInitializer(hr.constant([key]), hr.constant([5.0]))
        asked = hr.placeholder(initializer.key_dtype, shape)
        found = hr.lookup.StaticHashTable(initializer, -1.0).lookup(asked)
        with hr.Session(config=hr.Config(compile_after=0)) as session:
            session.run(hr.tables_initializer())
            value = np.full(shape, key, asked.dtype.numpy)
            for _ in range(3):
                got = session.run(found, {asked: value})
                assert (np.shape(got), np.sum(got)) == (tuple(shape), 5.0)


@pytest.mark.parametrize("dtype", [hr.int32, hr.int64])
def test_looking_up_numbers_while_they_change(dtype) -> None:
    rng = np.random.default_rng(3)
    keys = rng.choice(1 << 20, 500, replace=False).astype(dtype.numpy) - (1 << 19)
    with hr.Graph().as_default():
        table = hr.lookup.MutableHashTable(dtype, hr.float32, [-1.0, 0.0])
        asked = hr.placeholder(dtype, [None])
        rows = hr.placeholder(hr.float32, [None, 2])
        found, insert = table.lookup(asked), table.insert(asked, rows)
        removed = table.remove(asked)
        with hr.Session(config=hr.Config(compile_after=0)) as session:
            held = {}
            for turn in range(6):
                some = rng.choice(keys, 100)
                values = np.stack([some * 2.0, some * 0.0 + turn], 1).astype(np.float32)
                session.run(insert, {asked: some, rows: values})
                held.update(zip(some.tolist(), values, strict=True))
                gone = rng.choice(keys, 10)
                session.run(removed, {asked: gone})
                for key in gone.tolist():
                    held.pop(key, None)
                expected = [held.get(key, np.float32([-1, 0])) for key in keys.tolist()]
                for _ in range(2):
                    got = session.run(found, {asked: keys})
                    np.testing.assert_array_equal(got, expected)


NUMERALS = [
    *(b"0 -0 +7 12 007 1. .5 -.5 +1.25 1e3 1E-3 2.5e+2 0.1 -123456.789 3.4028235e38".split()),
    *(b"999999999999999 0.000001234567 1e22 1e-22 123456789012345e-20".split()),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numerals(dtype) -> None:
    rng = np.random.default_rng(0)
    drawn = [
        repr(float(x)).encode() for x in rng.standard_normal(300) * 10.0 ** rng.integers(-8, 8)
    ]
    short = [b"%.6g" % x for x in rng.standard_normal(2000) * 1000]
    # The last has more digits than are read natively, and what is left is read by Python.
    for texts in (NUMERALS, short, drawn, [*NUMERALS, b" inf ", b"0x1p3", b"1e-400", b"9" * 50]):
        _check(lambda x: hr.string_to_number(x, dtype), np.array(texts, object))


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_whole_numerals(dtype) -> None:
    limits = np.iinfo(dtype)
    edges = [b"%d" % limits.min, b"%d" % limits.max, b"+5", b"-0", b"0012", b" 7 "]
    drawn = [b"%d" % n for n in np.random.default_rng(0).integers(-(1 << 31), 1 << 31, 3000)]
    for texts in (drawn, edges, [b"42"]):
        _check(lambda x: hr.string_to_number(x, dtype), np.array(texts, object))


@pytest.mark.parametrize(
    "text", [b"", b"-", b".", b"1e", b"1e+", b"e5", b"1.2.3", b"1-2", b"x", b"1 2"]
)
def test_what_is_no_number_is_refused(text) -> None:
    for dtype in ("float32", "int64"):
        x = hr.placeholder("string", (3,))
        with hr.Session(config=hr.Config(compile_after=0, compile_wait=True)) as session:
            number = hr.string_to_number(x, dtype)
            for _ in range(2):
                session.run(number, {x: np.array([b"1", b"2", b"3"], object)})
            with pytest.raises(hr.errors.HeadraceError, match="is no number of dtype"):
                session.run(number, {x: np.array([b"1", text, b"3"], object)})


def test_numbers_out_of_range_are_refused() -> None:
    x = hr.placeholder("string", (1,))
    with hr.Session(config=hr.Config(compile_after=0, compile_wait=True)) as session:
        number = hr.string_to_number(x, "int32")
        for _ in range(2):
            session.run(number, {x: np.array([b"2147483647"], object)})
        with pytest.raises(hr.errors.HeadraceError, match="is no number of dtype"):
            session.run(number, {x: np.array([b"2147483648"], object)})


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
def test_sorted_segments_of_short_rows(dtype) -> None:
    rng = np.random.default_rng(6)
    # Narrower than a vector, as wide, and wider; segments of many rows, of few, and of none.
    for width, numbers in {
        1: (3, 2000),
        3: (90,),
        5: (3,),
        8: (2000,),
        16: (90,),
        31: (3,),
    }.items():
        values = _numbers(dtype, (700, width))
        for number in numbers:
            ids = np.sort(rng.integers(0, number, 700)).astype(np.int64)

            def build(x, i, number=number):
                return [
                    getattr(hr, f"unsorted_segment_{name}")(x, i, number)
                    for name in ("sum", "prod")
                ]

            _check(build, values, ids)
            _check(
                lambda x, i: (hr.segment_max(x, i), hr.segment_min(x, i)), values, ids, zeros=False
            )


@pytest.mark.parametrize("dtype", [*FLOATS, *WHOLE])
def test_histograms(dtype) -> None:
    for size, bins in ((1, 1), (1000, 7), (30_001, 100), (5000, 3000)):
        values = _numbers(dtype, (size,), odd=False)
        for low, high in ((-20, 20), (0, 3)):
            limits = np.array([abs(low) * (dtype[0] == "u"), high + 30], as_dtype(dtype).numpy)
            if dtype in FLOATS and dtype != "bfloat16":
                limits[0] = low
            for out in ("int32", "int64"):
                _check(
                    lambda x, r, bins=bins, out=out: hr.histogram_fixed_width(x, r, bins, out),
                    *(values, limits),
                )


def test_histogram_refuses_what_is_no_number() -> None:
    x = hr.placeholder("float32", (3000,))
    values = np.ones(3000, np.float32)
    with hr.Session(config=hr.Config(compile_after=0, compile_wait=True)) as session:
        counts = hr.histogram_fixed_width(x, [0.0, 2.0], 10)
        for _ in range(2):
            assert session.run(counts, {x: values})[5] == 3000
        values[1234] = np.nan
        with pytest.raises(hr.errors.HeadraceError, match="values must not be NaN"):
            session.run(counts, {x: values})
