"""Programs of batches of sparse tensors."""

# Python 3.7, which TensorFlow 1.15 needs, has no zip(strict=).
# ruff: noqa: B905

from __future__ import annotations

from typing import Any

from pipeline_steps import counter, drive, program, shape, sparse_row, sparse_rows


@program
def sparse_batch(tf: Any) -> Any:
    number = counter(tf, limit=6)
    batch = tf.train.batch([sparse_row(tf, number), number], 3)
    return [shape(batch[0]), type(batch[0]).__name__, drive(tf, batch)]


@program
def sparse_batch_of_one(tf: Any) -> Any:
    batch = tf.train.batch([sparse_row(tf, counter(tf, limit=4))], 2)
    return [type(batch).__name__, drive(tf, batch)]


@program
def sparse_batch_dict_smaller_final(tf: Any) -> Any:
    number = counter(tf, limit=5)
    batch = tf.train.batch(
        {"s": sparse_row(tf, number), "n": number}, 3, allow_smaller_final_batch=True
    )
    return drive(tf, batch)


@program
def sparse_batch_strings(tf: Any) -> Any:
    number = counter(tf, limit=4)
    sparse = tf.SparseTensor([[0, 1]], tf.as_string([number]), [2, 2])
    return drive(tf, tf.train.batch([sparse], 2))


@program
def sparse_batch_enqueue_many(tf: Any) -> Any:
    number = counter(tf, limit=4)
    batch = tf.train.batch([sparse_rows(tf, number)], 4, enqueue_many=True)
    return drive(tf, batch)


@program
def sparse_batch_empty_rows(tf: Any) -> Any:
    number = counter(tf, limit=2)
    rows = tf.SparseTensor(
        tf.constant([[1, 1]], tf.int64), tf.stack([number]), tf.constant([3, 2], tf.int64)
    )
    return drive(tf, tf.train.batch([rows], 3, enqueue_many=True))


@program
def sparse_batch_dynamic_pad(tf: Any) -> Any:
    number = counter(tf, limit=4)
    batch = tf.train.batch([sparse_row(tf, number), tf.range(number)], 2, dynamic_pad=True)
    return drive(tf, batch)


@program
def sparse_maybe_batch(tf: Any) -> Any:
    number = counter(tf, limit=8)
    return drive(tf, tf.train.maybe_batch([sparse_row(tf, number)], number % 2 > 0, 2))


@program
def sparse_maybe_batch_vector(tf: Any) -> Any:
    number = counter(tf, limit=4)
    batch = tf.train.maybe_batch([sparse_rows(tf, number)], [False, True], 2, enqueue_many=True)
    return drive(tf, batch)


@program
def sparse_batch_join(tf: Any) -> Any:
    lists = [[sparse_row(tf, counter(tf, limit=4))] for _ in range(2)]
    taken = drive(tf, tf.train.batch_join(lists, 8))
    return [sorted(taken[0][1]), taken[0][2], taken[1:]]


@program
def sparse_shuffle_batch(tf: Any) -> Any:
    number = counter(tf, limit=6)
    batch = tf.train.shuffle_batch([sparse_row(tf, number), number], 3, 10, 3)
    taken = drive(tf, batch)
    return sorted([x, y] for part in taken[:-1] for x, y in zip(part[0][1], part[1]))
