"""Programs of input pipelines that must raise, with TensorFlow 1.15 and with Headrace alike.

The table has the family of the error of each: ``ValueError`` or ``TypeError`` where the graph is
built, a class of ``tf.errors`` where it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pipeline_steps import bucket_of, by_length_of, counter, drive, sparse_row

REFUSALS: dict[str, Callable[[Any], Any]] = {}


def refusal(build: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Add a program that must raise."""
    REFUSALS[build.__name__] = build
    return build


# -- when the graph is built


@refusal
def limit_epochs_zero(tf: Any) -> Any:
    return tf.train.limit_epochs(tf.constant(1), 0)


@refusal
def limit_epochs_negative(tf: Any) -> Any:
    return tf.train.limit_epochs(tf.constant(1), num_epochs=-1)


@refusal
def input_producer_unknown_rows(tf: Any) -> Any:
    return tf.train.input_producer(tf.placeholder(tf.int32, [None, None]))


@refusal
def input_producer_other_element_shape(tf: Any) -> Any:
    return tf.train.input_producer(tf.constant([[1, 2]]), element_shape=[3])


@refusal
def string_input_producer_of_nothing(tf: Any) -> Any:
    return tf.train.string_input_producer([])


@refusal
def string_input_producer_of_numbers(tf: Any) -> Any:
    return tf.train.string_input_producer([1, 2])


@refusal
def slice_input_producer_of_nothing(tf: Any) -> Any:
    return tf.train.slice_input_producer([])


@refusal
def slice_input_producer_of_a_tensor(tf: Any) -> Any:
    return tf.train.slice_input_producer(tf.constant([1, 2]))


@refusal
def batch_of_nothing(tf: Any) -> Any:
    return tf.train.batch([], 2)


@refusal
def batch_of_a_tensor(tf: Any) -> Any:
    return tf.train.batch(tf.constant([1, 2]), 2)


@refusal
def batch_unknown_rank(tf: Any) -> Any:
    return tf.train.batch([tf.placeholder(tf.int32)], 2)


@refusal
def batch_unknown_size(tf: Any) -> Any:
    return tf.train.batch([tf.placeholder(tf.int32, [None])], 2)


@refusal
def batch_pad_unknown_rank(tf: Any) -> Any:
    return tf.train.batch([tf.placeholder(tf.int32)], 2, dynamic_pad=True)


@refusal
def batch_many_scalar(tf: Any) -> Any:
    return tf.train.batch([tf.constant(1)], 2, enqueue_many=True)


@refusal
def batch_too_few_shapes(tf: Any) -> Any:
    return tf.train.batch([tf.constant(1), tf.constant(2)], 2, shapes=[[]])


@refusal
def batch_other_shapes(tf: Any) -> Any:
    return tf.train.batch([tf.constant([1, 2, 3])], 2, shapes=[[2]])


@refusal
def batch_ragged_many(tf: Any) -> Any:
    return tf.train.batch([tf.constant([1, 2]), tf.constant([1, 2, 3])], 2, enqueue_many=True)


@refusal
def maybe_batch_vector_without_many(tf: Any) -> Any:
    return tf.train.maybe_batch([tf.constant([1, 2])], [True, False], 2)


@refusal
def maybe_batch_matrix(tf: Any) -> Any:
    return tf.train.maybe_batch([tf.constant([1])], [[True]], 2, enqueue_many=True)


@refusal
def maybe_batch_unknown_rank(tf: Any) -> Any:
    return tf.train.maybe_batch([tf.constant(1)], tf.placeholder(tf.bool), 2)


@refusal
def batch_join_of_nothing(tf: Any) -> Any:
    return tf.train.batch_join([], 2)


@refusal
def batch_join_other_keys(tf: Any) -> Any:
    return tf.train.batch_join([{"a": tf.constant(1)}, {"b": tf.constant(1)}], 2)


@refusal
def batch_join_other_dtypes(tf: Any) -> Any:
    return tf.train.batch_join([[tf.constant(1)], [tf.constant(1.0)]], 2)


@refusal
def batch_join_other_shapes(tf: Any) -> Any:
    return tf.train.batch_join([[tf.constant([1, 2])], [tf.constant([1])]], 2)


@refusal
def batch_join_sparse_and_dense(tf: Any) -> Any:
    return tf.train.batch_join([[sparse_row(tf, tf.constant(1))], [tf.constant([1])]], 2)


@refusal
def shuffle_batch_small_capacity(tf: Any) -> Any:
    return tf.train.shuffle_batch([tf.constant(1)], 2, 5, 5)


@refusal
def bucket_sizes_of_other_number(tf: Any) -> Any:
    return bucket_of(tf)([tf.constant(1)], 0, [1, 2, 3], 2)


@refusal
def bucket_capacities_of_other_number(tf: Any) -> Any:
    return bucket_of(tf)([tf.constant(1)], 0, 1, 2, bucket_capacities=[4])


@refusal
def bucket_of_nothing(tf: Any) -> Any:
    return bucket_of(tf)([], 0, 1, 2)


@refusal
def bucket_keep_vector(tf: Any) -> Any:
    return bucket_of(tf)([tf.constant(1)], 0, 1, 2, keep_input=[True, False])


@refusal
def by_length_without_boundaries(tf: Any) -> Any:
    return by_length_of(tf)(3, [tf.constant(1)], 2, [])


@refusal
def by_length_number_boundaries(tf: Any) -> Any:
    return by_length_of(tf)(3, [tf.constant(1)], 2, 4)


@refusal
def by_length_fractions(tf: Any) -> Any:
    return by_length_of(tf)(3, [tf.constant(1)], 2, [1.5, 2.5])


@refusal
def by_length_falling(tf: Any) -> Any:
    return by_length_of(tf)(3, [tf.constant(1)], 2, [4, 2])


# -- when it runs, at whoever takes from the pipeline or joins its threads


@refusal
def run_empty_string_tensor(tf: Any) -> Any:
    names = tf.placeholder_with_default(tf.constant([], tf.string), [None])
    return drive(tf, tf.train.string_input_producer(names).dequeue())


@refusal
def run_batch_of_other_shapes(tf: Any) -> Any:
    row = tf.placeholder_with_default(tf.range(counter(tf)), None)
    return drive(tf, tf.train.batch([row], 2, shapes=[[2]]))


@refusal
def run_batch_ragged_many(tf: Any) -> Any:
    number = counter(tf)
    rows = [tf.range(number), tf.range(number + 1)]
    return drive(tf, tf.train.batch(rows, 2, enqueue_many=True))


@refusal
def run_slices_of_other_sizes(tf: Any) -> Any:
    slices = tf.train.slice_input_producer([[1, 2, 3], [1, 2]], shuffle=False)
    return drive(tf, slices)


@refusal
def run_limit_without_initializer(tf: Any) -> Any:
    with tf.Session() as session:
        return session.run(tf.train.limit_epochs(tf.constant(1), 2))
