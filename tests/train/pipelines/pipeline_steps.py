"""What programs of input pipelines are made of: they run with TensorFlow 1.15 and Headrace alike.

Each takes the module, ``tf``, builds in its default graph, and returns what it computed. None of
them depends on which thread comes first: they have one thread, or sort what several threads make.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PROGRAMS: dict[str, Callable[[Any], Any]] = {}


def program(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Add a program."""
    PROGRAMS[build.__name__] = build
    return build


def plain(value: Any) -> Any:
    """Return a fetched value as lists of Python's own, which JSON has."""
    if isinstance(value, dict):
        return {key: plain(value[key]) for key in sorted(value)}
    if hasattr(value, "dense_shape"):
        return [plain(value.indices), plain(value.values), plain(value.dense_shape)]
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return value.decode() if isinstance(value, bytes) else value


def drive(tf: Any, fetches: Any, most: int = 50) -> Any:
    """Return what the fetches are in step after step, until the pipeline ends."""
    taken = []
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(sess=session, coord=coordinator)
        try:
            while len(taken) < most:
                taken.append(plain(session.run(fetches)))
        except tf.errors.OutOfRangeError:
            taken.append("end")
        coordinator.request_stop()
        coordinator.join(threads)
    return taken


def shape(tensor: Any) -> Any:
    """Return a static shape as a list."""
    return None if tensor.shape.ndims is None else tensor.shape.as_list()


def counter(tf: Any, epochs: int = 1, limit: int = 10) -> Any:
    """Return the next of some whole numbers, in order."""
    return tf.train.range_input_producer(limit, num_epochs=epochs, shuffle=False).dequeue()


def sparse_row(tf: Any, number: Any) -> Any:
    """Return a sparse vector that holds 10 n at place n of n + 1."""
    place = tf.cast(number, tf.int64)
    return tf.SparseTensor(
        tf.reshape(place, [1, 1]), tf.reshape(number * 10, [1]), tf.reshape(place + 1, [1])
    )


def sparse_rows(tf: Any, number: Any) -> Any:
    """Return a sparse matrix of two rows: n and n + 1, and n + 2."""
    return tf.SparseTensor(
        tf.constant([[0, 0], [0, 2], [1, 1]], tf.int64),
        tf.stack([number, number + 1, number + 2]),
        tf.constant([2, 3], tf.int64),
    )


def bucket_of(tf: Any) -> Any:
    """Return the function, which TensorFlow has in ``contrib``."""
    return tf.contrib.training.bucket if hasattr(tf, "contrib") else tf.train.bucket


def by_length_of(tf: Any) -> Any:
    """Return the function, which TensorFlow has in ``contrib``."""
    owner = tf.contrib.training if hasattr(tf, "contrib") else tf.train
    return owner.bucket_by_sequence_length
