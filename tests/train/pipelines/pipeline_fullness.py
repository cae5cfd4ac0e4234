"""Programs that ask how full the queues of pipelines are."""

from __future__ import annotations

from typing import Any

from pipeline_steps import bucket_of, program


def summarized(tf: Any) -> Any:
    """Return the tags and values of the summaries that pipelines have added to the graph."""
    found = tf.Summary()
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        found.ParseFromString(session.run(tf.summary.merge_all()))
    return [[value.tag, value.simple_value] for value in found.value]


@program
def fullness_of_producers(tf: Any) -> Any:
    tf.train.string_input_producer(["a"], capacity=5, num_epochs=1)
    tf.train.range_input_producer(5)
    tf.train.slice_input_producer([tf.constant([1])], name="rows")
    tf.train.input_producer(tf.constant([1]))
    tf.train.input_producer(tf.constant([1]), summary_name="fill", name="own")
    return summarized(tf)


@program
def fullness_of_batches(tf: Any) -> Any:
    tf.train.batch([tf.constant(1)], 4, capacity=8)
    tf.train.maybe_batch([tf.constant(1)], True, 4, name="named")
    tf.train.batch_join([[tf.constant(1)]], 4, capacity=20, dynamic_pad=True)
    return summarized(tf)


@program
def fullness_of_shuffled_batches(tf: Any) -> Any:
    tf.train.shuffle_batch([tf.constant(1)], 4, 30, 10)
    tf.train.shuffle_batch_join([[tf.constant(1)]], 4, 30, 0, name="named")
    return summarized(tf)


@program
def fullness_of_a_filled_queue(tf: Any) -> Any:
    tf.train.batch([tf.constant([1, 2, 3])], 2, capacity=12, enqueue_many=True)
    (runner,) = tf.get_collection(tf.GraphKeys.QUEUE_RUNNERS)
    merged = tf.summary.merge_all()
    found = tf.Summary()
    with tf.Session() as session:
        session.run(runner.enqueue_ops)
        found.ParseFromString(session.run(merged))
    return [[value.tag, value.simple_value] for value in found.value]


@program
def fullness_of_buckets(tf: Any) -> Any:
    bucket_of(tf)([tf.constant(1)], tf.constant(0), 4, 2, name="lengths")
    return summarized(tf)
