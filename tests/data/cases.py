"""Pipelines that run both here and in TensorFlow 1.15, whose elements are in ``tables.json``.

Each case takes the namespace, ``hr`` or ``tf``, and returns a data set of a fixed order. Python 3.7
reads this module, too.
"""

import numpy as np


def _dataset(tf):
    return tf.data.Dataset


def _squares():
    for i in range(5):
        yield i, [float(i)] * (i % 3)


def _words():
    yield "one", {"n": 1}
    yield "two", {"n": 2}


def _ragged(tf):
    return _dataset(tf).range(6).map(lambda x: tf.range(x))


def _sparse(tf):
    indices = np.array([[0, 0], [0, 2], [2, 1], [3, 0]], np.int64)
    return tf.SparseTensor(indices, np.array([1.0, 2.0, 3.0, 4.0]), np.array([4, 3], np.int64))


def _rows(tf):
    return tf.ragged.constant([[1, 2], [], [3, 4, 5]])


def _nested_rows(tf):
    return tf.ragged.constant([[[1, 2], []], [], [[3]], [[4], [5, 6, 7]]])


def _buckets(tf, **kwargs):
    lengths = [1, 5, 2, 3, 4, 1, 5, 2, 2]
    dataset = _dataset(tf).from_generator(
        lambda: iter([list(range(n)) for n in lengths]), tf.int64, [None]
    )
    return dataset.apply(
        tf.data.experimental.bucket_by_sequence_length(
            lambda x: tf.shape(x)[0], [3, 6], [2, 3, 2], **kwargs
        )
    )


CASES = {
    # sources
    "from_tensors": lambda tf: _dataset(tf).from_tensors([1, 2, 3]),
    "from_tensors_nested": lambda tf: _dataset(tf).from_tensors((1, {"b": [2.5], "a": "x"})),
    "from_tensor_slices": lambda tf: _dataset(tf).from_tensor_slices([[1, 2], [3, 4], [5, 6]]),
    "from_tensor_slices_nested": lambda tf: _dataset(tf).from_tensor_slices(
        {"x": [1.0, 2.0], "y": (["a", "b"], [[True], [False]])}
    ),
    "from_tensor_slices_sparse": lambda tf: _dataset(tf).from_tensor_slices(_sparse(tf)),
    "from_sparse_tensor_slices": lambda tf: _dataset(tf).from_sparse_tensor_slices(_sparse(tf)),
    "range_stop": lambda tf: _dataset(tf).range(4),
    "range_start": lambda tf: _dataset(tf).range(2, 5),
    "range_step": lambda tf: _dataset(tf).range(7, 0, -3),
    "range_empty": lambda tf: _dataset(tf).range(3, 1),
    "generator": lambda tf: _dataset(tf).from_generator(_squares, (tf.int64, tf.float32)),
    "generator_shapes": lambda tf: _dataset(tf).from_generator(
        _squares, (tf.int32, tf.float64), ([], [None])
    ),
    "generator_nested": lambda tf: _dataset(tf).from_generator(
        _words, (tf.string, {"n": tf.int64})
    ),
    "generator_args": lambda tf: _dataset(tf).from_generator(
        lambda n: iter(range(n)), tf.int64, [], args=(4,)
    ),
    # selecting
    "take": lambda tf: _dataset(tf).range(5).take(3),
    "take_more": lambda tf: _dataset(tf).range(3).take(9),
    "take_all": lambda tf: _dataset(tf).range(3).take(-1),
    "take_none": lambda tf: _dataset(tf).range(3).take(0),
    "skip": lambda tf: _dataset(tf).range(5).skip(2),
    "skip_more": lambda tf: _dataset(tf).range(3).skip(4),
    "skip_all": lambda tf: _dataset(tf).range(3).skip(-1),
    "shard": lambda tf: _dataset(tf).range(8).shard(3, 1),
    "filter": lambda tf: _dataset(tf).range(8).filter(lambda x: x % 3 > 0),
    "filter_tuple": lambda tf: (
        _dataset(tf).range(6).enumerate(4).filter(lambda i, x: tf.equal((i + x) % 4, 0))
    ),
    "take_while": lambda tf: (
        _dataset(tf).range(9).apply(tf.data.experimental.take_while(lambda x: x < 4))
    ),
    "unique": lambda tf: (
        _dataset(tf).from_tensor_slices([3, 1, 3, 2, 1]).apply(tf.data.experimental.unique())
    ),
    # joining
    "concatenate": lambda tf: _dataset(tf).range(2).concatenate(_dataset(tf).range(5, 7)),
    "concatenate_shapes": lambda tf: (
        _dataset(tf).from_tensors([1]).concatenate(_dataset(tf).from_tensors([2, 3]))
    ),
    "zip": lambda tf: _dataset(tf).zip((_dataset(tf).range(3), _dataset(tf).range(10, 20))),
    "zip_dict": lambda tf: _dataset(tf).zip(
        {"b": _dataset(tf).range(2), "a": (_dataset(tf).range(2, 4),)}
    ),
    "repeat": lambda tf: _dataset(tf).range(3).repeat(2),
    "repeat_endless": lambda tf: _dataset(tf).range(3).repeat().take(7),
    "repeat_zero": lambda tf: _dataset(tf).range(3).repeat(0),
    "repeat_empty": lambda tf: _dataset(tf).range(0).repeat(),
    "enumerate": lambda tf: _dataset(tf).from_tensor_slices(["a", "b"]).enumerate(7),
    # batching
    "batch": lambda tf: _dataset(tf).range(7).batch(3),
    "batch_drop": lambda tf: _dataset(tf).range(7).batch(3, drop_remainder=True),
    "batch_nested": lambda tf: _dataset(tf).range(4).map(lambda x: (x, {"y": [x, x]})).batch(2),
    "batch_strings": lambda tf: _dataset(tf).from_tensor_slices(["a", "bc", ""]).batch(2),
    "batch_twice": lambda tf: _dataset(tf).range(8).batch(2).batch(3),
    "batch_sparse": lambda tf: _dataset(tf).from_tensor_slices(_sparse(tf)).batch(3),
    "padded_batch": lambda tf: _ragged(tf).padded_batch(3, [None]),
    "padded_batch_fixed": lambda tf: _ragged(tf).padded_batch(4, [7]),
    "padded_batch_value": lambda tf: _ragged(tf).padded_batch(
        3, [-1], padding_values=tf.constant(-1, tf.int64)
    ),
    "padded_batch_drop": lambda tf: _ragged(tf).padded_batch(4, [None], drop_remainder=True),
    "padded_batch_nested": lambda tf: (
        _dataset(tf)
        .range(1, 5)
        .map(lambda x: {"a": tf.fill([x, 2], 1.5), "b": tf.as_string(tf.range(x))})
        .padded_batch(3, {"a": [None, 3], "b": [None]}, {"a": 0.5, "b": "?"})
    ),
    "unbatch": lambda tf: _dataset(tf).range(7).batch(3).unbatch(),
    "unbatch_tuple": lambda tf: (
        _dataset(tf).from_tensors(([1, 2], [[3.0], [4.0]])).apply(tf.data.experimental.unbatch())
    ),
    "unbatch_batch": lambda tf: _dataset(tf).range(6).batch(2).unbatch().batch(4),
    # ragged tensors
    "ragged_tensors": lambda tf: _dataset(tf).from_tensors((_rows(tf), 7)),
    "ragged_value": lambda tf: _dataset(tf).from_tensors(
        tf.ragged.constant_value([[1.5], [2.5, 3.5]], np.float64)
    ),
    "ragged_rows": lambda tf: _dataset(tf).from_tensor_slices(_nested_rows(tf)),
    "ragged_rows_batch": lambda tf: _dataset(tf).from_tensor_slices(_rows(tf)).batch(2),
    "ragged_rows_drop": lambda tf: (
        _dataset(tf).from_tensor_slices(_nested_rows(tf)).batch(3, drop_remainder=True)
    ),
    "ragged_map": lambda tf: (
        _dataset(tf).range(4).map(lambda x: {"r": tf.ragged.range([x, 2]), "x": x}).batch(3)
    ),
    "ragged_map_sum": lambda tf: (
        _dataset(tf).from_tensors(_rows(tf)).map(lambda r: tf.reduce_sum(r * 2, axis=1))
    ),
    "ragged_unbatch": lambda tf: _dataset(tf).from_tensors(_nested_rows(tf)).unbatch(),
    "ragged_unbatch_batch": lambda tf: _dataset(tf).from_tensors(_rows(tf)).unbatch().batch(2),
    "ragged_inner": lambda tf: (
        _dataset(tf)
        .from_tensors(tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1))
        .repeat(2)
        .batch(2)
    ),
    "ragged_window": lambda tf: (
        _dataset(tf).from_tensors(_rows(tf)).repeat(3).window(2).flat_map(lambda w: w.batch(2))
    ),
    "ragged_filter": lambda tf: (
        _dataset(tf)
        .from_tensor_slices(_nested_rows(tf))
        .filter(lambda r: r.nrows() > 0)
        .cache()
        .prefetch(1)
        .repeat(2)
    ),
    "ragged_zip": lambda tf: _dataset(tf).zip(
        (_dataset(tf).from_tensors(_rows(tf)).repeat(2), _dataset(tf).range(2))
    ),
    # functions
    "map": lambda tf: _dataset(tf).range(4).map(lambda x: x * x + 1),
    "map_tuple": lambda tf: _dataset(tf).range(3).map(lambda x: (x, tf.cast(x, tf.float32) / 2)),
    "map_list": lambda tf: _dataset(tf).range(3).map(lambda x: [x, x + 1]),
    "map_dict": lambda tf: (
        _dataset(tf).from_tensor_slices({"b": [1, 2], "a": [3, 4]}).map(lambda d: d["a"] - d["b"])
    ),
    "map_nested": lambda tf: (
        _dataset(tf)
        .from_tensor_slices(([1, 2], ([3, 4], [5, 6])))
        .map(lambda a, b: a * b[0] + b[1])
    ),
    "map_constant": lambda tf: _dataset(tf).range(3).map(lambda x: 7),
    "map_parallel": lambda tf: _dataset(tf).range(9).map(lambda x: x * 2, num_parallel_calls=3),
    "map_auto": lambda tf: (
        _dataset(tf).range(5).map(lambda x: -x, num_parallel_calls=tf.data.experimental.AUTOTUNE)
    ),
    "map_cond": lambda tf: (
        _dataset(tf).range(4).map(lambda x: tf.cond(x < 2, lambda: x + 10, lambda: x - 10))
    ),
    "map_while": lambda tf: (
        _dataset(tf)
        .range(4)
        .map(
            lambda x: tf.while_loop(
                lambda i, s: i < x, lambda i, s: (i + 1, s + i), [x * 0, x * 0]
            )[1]
        )
    ),
    "map_sparse": lambda tf: (
        _dataset(tf).range(3).map(lambda x: tf.SparseTensor([[0, 1]], tf.expand_dims(x, 0), [2, 3]))
    ),
    "map_and_batch": lambda tf: (
        _dataset(tf)
        .range(5)
        .apply(tf.data.experimental.map_and_batch(lambda x: x + 1, 2, num_parallel_calls=2))
    ),
    "flat_map": lambda tf: _dataset(tf).range(4).flat_map(lambda x: _dataset(tf).range(x)),
    "flat_map_captured": lambda tf: (
        _dataset(tf).range(3).flat_map(lambda x: _dataset(tf).range(2).map(lambda y: x * 10 + y))
    ),
    "interleave": lambda tf: (
        _dataset(tf)
        .range(4)
        .interleave(lambda x: _dataset(tf).from_tensors(x).repeat(3), cycle_length=2)
    ),
    "interleave_block": lambda tf: (
        _dataset(tf)
        .range(5)
        .interleave(
            lambda x: _dataset(tf).from_tensors(x).repeat(5), cycle_length=2, block_length=4
        )
    ),
    "interleave_uneven": lambda tf: (
        _dataset(tf)
        .range(6)
        .interleave(
            lambda x: _dataset(tf).range(x).map(lambda y: x * 10 + y),
            cycle_length=3,
            block_length=2,
        )
    ),
    "interleave_parallel": lambda tf: (
        _dataset(tf)
        .range(4)
        .interleave(lambda x: _dataset(tf).from_tensors(x).repeat(3), 2, 2, num_parallel_calls=2)
    ),
    "parallel_interleave": lambda tf: (
        _dataset(tf)
        .range(4)
        .apply(
            tf.data.experimental.parallel_interleave(
                lambda x: _dataset(tf).from_tensors(x).repeat(3), cycle_length=2
            )
        )
    ),
    "scan": lambda tf: (
        _dataset(tf)
        .range(5)
        .apply(tf.data.experimental.scan(np.int64(1), lambda s, x: (s * 2, s + x)))
    ),
    "reduce": lambda tf: _dataset(tf).from_tensors(
        _dataset(tf).range(5).reduce(np.int64(3), lambda s, x: s + x * x)
    ),
    "reduce_tuple": lambda tf: _dataset(tf).from_tensors(
        _dataset(tf).range(5).reduce((0, np.int64(1)), lambda s, x: (s[0] + 1, s[1] + x))
    ),
    # windows and groups
    "window": lambda tf: _dataset(tf).range(7).window(3).flat_map(lambda w: w.batch(3)),
    "window_shift": lambda tf: _dataset(tf).range(7).window(3, 1).flat_map(lambda w: w.batch(3)),
    "window_stride": lambda tf: (
        _dataset(tf).range(9).window(3, 1, 2).flat_map(lambda w: w.batch(3))
    ),
    "window_gap": lambda tf: _dataset(tf).range(9).window(2, 4).flat_map(lambda w: w.batch(2)),
    "window_drop": lambda tf: (
        _dataset(tf).range(8).window(3, drop_remainder=True).flat_map(lambda w: w.batch(3))
    ),
    "window_tuple": lambda tf: (
        _dataset(tf)
        .zip((_dataset(tf).range(5), _dataset(tf).range(10, 15)))
        .window(2)
        .flat_map(lambda a, b: _dataset(tf).zip((a.batch(2), b.batch(2))))
    ),
    "group_by_window": lambda tf: (
        _dataset(tf)
        .range(10)
        .apply(
            tf.data.experimental.group_by_window(
                lambda x: x % 3, lambda k, d: d.batch(2), window_size=2
            )
        )
    ),
    "group_by_window_func": lambda tf: (
        _dataset(tf)
        .range(12)
        .apply(
            tf.data.experimental.group_by_window(
                lambda x: x % 2, lambda k, d: d.batch(9), window_size_func=lambda k: k + 2
            )
        )
    ),
    "bucket": _buckets,
    "bucket_boundary": lambda tf: _buckets(tf, pad_to_bucket_boundary=True),
    "bucket_drop": lambda tf: _buckets(tf, drop_remainder=True),
    # others
    "cache": lambda tf: _dataset(tf).range(3).cache().repeat(2),
    "prefetch": lambda tf: _dataset(tf).range(5).prefetch(2),
    "prefetch_auto": lambda tf: _dataset(tf).range(3).prefetch(tf.data.experimental.AUTOTUNE),
    "shuffle_one": lambda tf: _dataset(tf).range(4).shuffle(1),
    "ignore_errors": lambda tf: (
        _dataset(tf)
        .from_tensor_slices([1.0, 2.0, 0.0, 4.0])
        .map(lambda x: tf.check_numerics(1.0 / x, "none"))
        .apply(tf.data.experimental.ignore_errors())
    ),
    "counter": lambda tf: tf.data.experimental.Counter(3, -2).take(4),
    "apply": lambda tf: _dataset(tf).range(3).apply(lambda d: d.map(lambda x: x + 1)),
    "cardinality": lambda tf: _dataset(tf).from_tensors(
        tf.stack(
            [
                tf.data.experimental.cardinality(d)
                for d in (
                    _dataset(tf).range(7).batch(2),
                    _dataset(tf).range(7).repeat(),
                    _dataset(tf).range(7).filter(lambda x: x > 1),
                    _dataset(tf).range(7).skip(2).take(3).repeat(2),
                    _dataset(tf).zip((_dataset(tf).range(3), _dataset(tf).range(4))),
                )
            ]
        )
    ),
}


def _plain(value):
    """A fetched element as JSON."""
    if hasattr(value, "row_splits"):
        return ["ragged", _plain(value.values), _plain(value.row_splits)]
    if hasattr(value, "_fields"):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in sorted(value.items())}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    array = np.asarray(value)
    if array.dtype == object or array.dtype.kind == "S":
        items = [bytes(item).decode() for item in array.ravel().tolist()]
        return ["string", list(array.shape), items]
    return [array.dtype.name, list(array.shape), array.ravel().tolist()]


def _shapes(value):
    if isinstance(value, dict):
        return {key: _shapes(part) for key, part in sorted(value.items())}
    if isinstance(value, tuple):
        return [_shapes(part) for part in value]
    return None if value.ndims is None else value.as_list()


def record(tf, case):
    """Everything that is known of a case: its elements, dtypes and shapes."""
    dataset = case(tf)
    make = tf.data.make_initializable_iterator
    iterator = make(dataset)
    element = iterator.get_next()
    found = []
    with tf.Session() as session:
        session.run(iterator.initializer)
        try:
            while len(found) < 50:
                found.append(_plain(session.run(element)))
        except tf.errors.OutOfRangeError:
            pass
    return {"elements": found, "shapes": _shapes(tf.data.get_output_shapes(dataset))}
