"""Programs of producers and of batches of dense tensors."""

# Python 3.7, which TensorFlow 1.15 needs, has no zip(strict=).
# ruff: noqa: B905

from __future__ import annotations

from typing import Any

from pipeline_steps import counter, drive, program, shape

# -- producers


@program
def limit_epochs(tf: Any) -> Any:
    limited = tf.train.limit_epochs(tf.constant([3, 4]), 2)
    return [len(tf.local_variables()), shape(limited), drive(tf, limited)]


@program
def limit_epochs_none(tf: Any) -> Any:
    tensor = tf.constant(7)
    return [tf.train.limit_epochs(tensor) is tensor, len(tf.local_variables())]


@program
def input_producer_rows(tf: Any) -> Any:
    rows = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    queue = tf.train.input_producer(rows, num_epochs=2, shuffle=False)
    element = queue.dequeue()
    return [shape(element), drive(tf, element)]


@program
def input_producer_element_shape(tf: Any) -> Any:
    rows = tf.placeholder_with_default(tf.constant([[1, 2], [3, 4]]), [None, None])
    queue = tf.train.input_producer(rows, element_shape=[2], num_epochs=1, shuffle=False)
    element = queue.dequeue()
    return [shape(element), drive(tf, element)]


@program
def input_producer_without_end(tf: Any) -> Any:
    queue = tf.train.input_producer([5, 6], shuffle=False, capacity=3)
    return [len(tf.local_variables()), drive(tf, queue.dequeue(), most=7)]


@program
def input_producer_small_capacity(tf: Any) -> Any:
    queue = tf.train.input_producer(tf.range(10), num_epochs=2, shuffle=False, capacity=1)
    return drive(tf, queue.dequeue())


@program
def string_input_producer(tf: Any) -> Any:
    queue = tf.train.string_input_producer(["a", "b", "c"], num_epochs=2, shuffle=False)
    return drive(tf, queue.dequeue())


@program
def string_input_producer_shuffled(tf: Any) -> Any:
    queue = tf.train.string_input_producer(["a", "b", "c"], num_epochs=1, shuffle=True, seed=3)
    return sorted(drive(tf, queue.dequeue()))


@program
def range_input_producer(tf: Any) -> Any:
    queue = tf.train.range_input_producer(4, num_epochs=2, shuffle=False)
    element = queue.dequeue()
    return [element.dtype.name, shape(element), drive(tf, element)]


@program
def range_input_producer_shuffled(tf: Any) -> Any:
    queue = tf.train.range_input_producer(10, num_epochs=1, shuffle=True, seed=5)
    return sorted(map(str, drive(tf, queue.dequeue())))


@program
def slice_input_producer(tf: Any) -> Any:
    first, second = tf.train.slice_input_producer(
        [[[1, 2], [3, 4], [5, 6]], ["x", "y", "z"]], num_epochs=2, shuffle=False
    )
    return [shape(first), shape(second), drive(tf, [first, second])]


@program
def slice_input_producer_of_one(tf: Any) -> Any:
    slices = tf.train.slice_input_producer([[7, 8]], num_epochs=1, shuffle=False)
    return [type(slices).__name__, drive(tf, slices)]


# -- batch


@program
def batch_list(tf: Any) -> Any:
    number = counter(tf)
    batch = tf.train.batch([number, tf.stack([number, -number])], 4)
    return [type(batch).__name__, [shape(part) for part in batch], drive(tf, batch)]


@program
def batch_of_one(tf: Any) -> Any:
    batch = tf.train.batch([counter(tf)], 5)
    return [shape(batch), drive(tf, batch)]


@program
def batch_tuple(tf: Any) -> Any:
    number = counter(tf)
    batch = tf.train.batch((number, number * 2), 5)
    return [type(batch).__name__, drive(tf, batch)]


@program
def batch_dict(tf: Any) -> Any:
    number = counter(tf)
    batch = tf.train.batch({"b": number, "a": tf.as_string(number), "c": number + 1}, 3)
    return [sorted(batch), {key: shape(batch[key]) for key in batch}, drive(tf, batch)]


@program
def batch_dict_of_one(tf: Any) -> Any:
    return drive(tf, tf.train.batch({"only": counter(tf)}, 5))


@program
def batch_smaller_final(tf: Any) -> Any:
    batch = tf.train.batch([counter(tf)], 4, allow_smaller_final_batch=True)
    return [shape(batch), drive(tf, batch)]


@program
def batch_drops_the_rest(tf: Any) -> Any:
    return drive(tf, tf.train.batch([counter(tf)], 7))


@program
def batch_size_tensor(tf: Any) -> Any:
    size = tf.placeholder_with_default(tf.constant(3), [])
    batch = tf.train.batch([counter(tf)], size)
    return [shape(batch), drive(tf, batch)]


@program
def batch_enqueue_many(tf: Any) -> Any:
    number = counter(tf, limit=4)
    rows = tf.stack([number * 3, number * 3 + 1, number * 3 + 2])
    batch = tf.train.batch([rows, tf.as_string(rows)], 4, enqueue_many=True, capacity=5)
    return [[shape(part) for part in batch], drive(tf, batch)]


@program
def batch_enqueue_many_of_other_sizes(tf: Any) -> Any:
    rows = tf.range(counter(tf, limit=5))
    batch = tf.train.batch([rows], 4, enqueue_many=True, allow_smaller_final_batch=True)
    return [shape(batch), drive(tf, batch)]


@program
def batch_larger_than_capacity(tf: Any) -> Any:
    return drive(tf, tf.train.batch([counter(tf)], 5, capacity=5))


@program
def batch_shapes(tf: Any) -> Any:
    number = tf.placeholder_with_default(counter(tf), None)
    batch = tf.train.batch([number], 5, shapes=[[]])
    return [shape(batch), drive(tf, batch)]


@program
def batch_dynamic_pad(tf: Any) -> Any:
    number = counter(tf, limit=6)
    batch = tf.train.batch(
        [tf.range(number), tf.fill([2, number], "s"), number], 3, dynamic_pad=True
    )
    return [[shape(part) for part in batch], drive(tf, batch)]


@program
def batch_dynamic_pad_smaller_final(tf: Any) -> Any:
    batch = tf.train.batch(
        {"x": tf.range(counter(tf, limit=5))},
        3,
        dynamic_pad=True,
        allow_smaller_final_batch=True,
    )
    return [shape(batch["x"]), drive(tf, batch)]


@program
def batch_threads(tf: Any) -> Any:
    batch = tf.train.batch([counter(tf, epochs=3)], 5, num_threads=4, capacity=8)
    taken = drive(tf, batch)
    return [[len(part) for part in taken], sorted(x for part in taken[:-1] for x in part)]


@program
def batch_after_batch(tf: Any) -> Any:
    inner = tf.train.batch([counter(tf)], 2)
    return drive(tf, tf.train.batch([inner], 2))


@program
def maybe_batch_scalar(tf: Any) -> Any:
    number = counter(tf)
    batch = tf.train.maybe_batch([number, number * number], tf.equal(number % 2, 0), 2)
    return [[shape(part) for part in batch], drive(tf, batch)]


@program
def maybe_batch_python_bool(tf: Any) -> Any:
    return drive(tf, tf.train.maybe_batch([counter(tf)], True, 5))


@program
def maybe_batch_many_scalar(tf: Any) -> Any:
    number = counter(tf, limit=6)
    rows = tf.stack([number * 10, number * 10 + 1])
    batch = tf.train.maybe_batch([rows], number < 4, 4, enqueue_many=True)
    return [shape(batch), drive(tf, batch)]


@program
def maybe_batch_vector(tf: Any) -> Any:
    number = counter(tf, limit=6)
    rows = tf.stack([number * 3, number * 3 + 1, number * 3 + 2])
    keep = tf.equal(rows % 2, 0)
    batch = tf.train.maybe_batch({"r": rows, "s": -rows}, keep, 4, enqueue_many=True)
    return [shape(batch["r"]), drive(tf, batch)]


@program
def batch_join(tf: Any) -> Any:
    batch = tf.train.batch_join([[counter(tf)], [counter(tf) + 100]], 4)
    taken = drive(tf, batch)
    return [shape(batch), sorted(x for part in taken[:-1] for x in part), taken[-1]]


@program
def batch_join_dicts(tf: Any) -> Any:
    lists = [{"v": counter(tf) + 100 * i, "k": tf.constant(str(i))} for i in range(3)]
    batch = tf.train.batch_join(lists, 7, allow_smaller_final_batch=True)
    taken = drive(tf, batch)
    return [
        {key: shape(batch[key]) for key in batch},
        sorted([v, k] for part in taken[:-1] for v, k in zip(part["v"], part["k"])),
    ]


@program
def batch_join_of_one(tf: Any) -> Any:
    return drive(tf, tf.train.batch_join([(counter(tf), counter(tf))], 5))


@program
def batch_join_enqueue_many(tf: Any) -> Any:
    lists = [[tf.range(counter(tf, limit=4)) + 10 * i] for i in range(2)]
    batch = tf.train.batch_join(lists, 3, enqueue_many=True)
    taken = drive(tf, batch)
    return [shape(batch), sorted(x for part in taken[:-1] for x in part)]


@program
def batch_join_dynamic_pad(tf: Any) -> Any:
    lists = [[tf.range(counter(tf, limit=4))], [tf.range(counter(tf, limit=4))]]
    batch = tf.train.batch_join(lists, 8, dynamic_pad=True)
    return [shape(batch), sorted(drive(tf, batch)[0])]


@program
def maybe_batch_join(tf: Any) -> Any:
    numbers = [counter(tf), counter(tf) + 10]
    keep = tf.placeholder_with_default(True, [])
    taken = drive(tf, tf.train.maybe_batch_join([[n] for n in numbers], keep, 10))
    return sorted(x for part in taken[:-1] for x in part)


@program
def maybe_batch_join_vector(tf: Any) -> Any:
    rows = [tf.stack([n, n + 1]) for n in (counter(tf), counter(tf) + 100)]
    batch = tf.train.maybe_batch_join([[r] for r in rows], [True, False], 5, enqueue_many=True)
    taken = drive(tf, batch)
    return sorted(x for part in taken[:-1] for x in part)


# -- shuffled batches


@program
def shuffle_batch(tf: Any) -> Any:
    number = counter(tf, epochs=2)
    batch = tf.train.shuffle_batch([number, tf.as_string(number)], 4, 20, 6, seed=1)
    taken = drive(tf, batch)
    pairs = sorted([x, y] for part in taken[:-1] for x, y in zip(*part))
    return [[shape(part) for part in batch], len(taken), pairs]


@program
def shuffle_batch_dict_smaller_final(tf: Any) -> Any:
    batch = tf.train.shuffle_batch(
        {"n": counter(tf)}, 4, 10, 3, num_threads=2, allow_smaller_final_batch=True
    )
    taken = drive(tf, batch)
    sizes = [len(part["n"]) for part in taken[:-1]]
    return [shape(batch["n"]), sizes, sorted(x for part in taken[:-1] for x in part["n"])]


@program
def shuffle_batch_enqueue_many(tf: Any) -> Any:
    number = counter(tf, limit=6)
    rows = tf.stack([[number, 1], [number, 2]])
    batch = tf.train.shuffle_batch([rows], 3, 8, 2, enqueue_many=True)
    taken = drive(tf, batch)
    return [shape(batch), sorted(x for part in taken[:-1] for x in part)]


@program
def shuffle_batch_join(tf: Any) -> Any:
    batch = tf.train.shuffle_batch_join([[counter(tf)], [counter(tf) + 50]], 5, 20, 4)
    taken = drive(tf, batch)
    return [shape(batch), sorted(x for part in taken[:-1] for x in part)]


@program
def maybe_shuffle_batch(tf: Any) -> Any:
    number = counter(tf, limit=12)
    taken = drive(tf, tf.train.maybe_shuffle_batch([number], 2, 10, 3, number < 6))
    return sorted(x for part in taken[:-1] for x in part)


@program
def maybe_shuffle_batch_join(tf: Any) -> Any:
    rows = [tf.stack([n, n + 1, n + 2]) for n in (counter(tf), counter(tf) + 100)]
    batch = tf.train.maybe_shuffle_batch_join(
        [{"r": r} for r in rows], 4, 30, 10, [True, False, False], enqueue_many=True
    )
    taken = drive(tf, batch)
    return sorted(x for part in taken[:-1] for x in part["r"])
