"""Programs of batches by bucket."""

from __future__ import annotations

from typing import Any

from pipeline_steps import bucket_of, by_length_of, counter, drive, program, shape, sparse_row


@program
def bucket(tf: Any) -> Any:
    number = counter(tf)
    which, batch = bucket_of(tf)([number, number * 10], number % 2, 2, 2)
    taken = drive(tf, [which, batch])
    return [shape(which), [shape(part) for part in batch], sorted(taken[:-1])]


@program
def bucket_of_one(tf: Any) -> Any:
    number = counter(tf)
    which, batch = bucket_of(tf)([number], number % 2, 5, 2)
    return [shape(batch), sorted(drive(tf, [which, batch])[:-1])]


@program
def bucket_dict_smaller_final(tf: Any) -> Any:
    number = counter(tf)
    which, batch = bucket_of(tf)({"n": number}, number % 3, 3, 3, allow_smaller_final_batch=True)
    taken = drive(tf, [which, batch["n"]])
    return [shape(batch["n"]), sorted(taken[:-1])]


@program
def bucket_batch_sizes(tf: Any) -> Any:
    number = counter(tf)
    which, batch = bucket_of(tf)([number], number % 2, [1, 5], 2, bucket_capacities=[3, 7])
    return [shape(batch), sorted(drive(tf, [which, batch])[:-1])]


@program
def bucket_keep_input(tf: Any) -> Any:
    number = counter(tf)
    which, batch = bucket_of(tf)([number], number % 2, 2, 2, keep_input=number > 3)
    return sorted(drive(tf, [which, batch])[:-1])


@program
def bucket_sparse(tf: Any) -> Any:
    number = counter(tf, limit=6)
    which, batch = bucket_of(tf)([sparse_row(tf, number), number], number % 2, 3, 2)
    return sorted(drive(tf, [which, batch])[:-1])


@program
def bucket_by_length(tf: Any) -> Any:
    number = counter(tf)
    length, batch = by_length_of(tf)(
        number, [tf.range(number), tf.as_string(number)], 2, [3, 7], dynamic_pad=True
    )
    taken = drive(tf, [length, batch])
    return [shape(length), [shape(part) for part in batch], sorted(taken[:-1])]


@program
def bucket_by_length_dict_smaller_final(tf: Any) -> Any:
    number = counter(tf, limit=8)
    length, batch = by_length_of(tf)(
        number,
        {"x": tf.range(number), "y": -number},
        3,
        [2, 5],
        dynamic_pad=True,
        allow_smaller_final_batch=True,
    )
    taken = drive(tf, [length, batch["x"], batch["y"]])
    return [shape(length), shape(batch["x"]), sorted(taken[:-1])]


@program
def bucket_by_length_of_one(tf: Any) -> Any:
    number = counter(tf)
    length, batch = by_length_of(tf)(number, [number * 2], 2, [4])
    return [isinstance(batch, list), sorted(map(str, drive(tf, [length, batch])[:-1]))]


@program
def bucket_by_length_shapes(tf: Any) -> Any:
    number = counter(tf, limit=8)
    row = tf.placeholder_with_default(tf.stack([number, number]), None)
    length, batch = by_length_of(tf)(number, [row], 2, [4], shapes=[[2]])
    return sorted(map(str, drive(tf, [length, batch])[:-1]))
