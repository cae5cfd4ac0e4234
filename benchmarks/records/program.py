"""The program that Headrace and TensorFlow run alike: a model, and where its batches come from.

With feeds, each step gets the next batch of arrays in memory, which are shuffled for each epoch.
With records, a thread reads and parses examples and puts them into a queue that shuffles, and the
step takes a batch out of it.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.participant import Participant, StepLoop
from benchmarks.workloads.softmax import data

BATCH = data.BATCH
EXAMPLES = 20_000
FILES = 4
FEEDS, RECORDS = "feeds", "records"
# Steps to a round, of the models by name.
STEPS = {"softmax": 1000, "convnet": 100}

Bytes = npt.NDArray[np.uint8]


def examples() -> tuple[Bytes, npt.NDArray[np.int64]]:
    """Return images [n, 784] as bytes and labels [n], like those of handwritten digits."""
    images, labels = data.examples(EXAMPLES, seed=1)
    return np.round(images * 255).astype(np.uint8), labels.argmax(axis=1)


def write_records(tf: Any, folder: str) -> list[str]:
    """Write the examples into files, and return their names."""
    images, labels = examples()
    names = [str(Path(folder, f"{i}.tfrecords")) for i in range(FILES)]
    for i, name in enumerate(names):
        with tf.python_io.TFRecordWriter(name) as writer:
            for image, label in zip(images[i::FILES], labels[i::FILES], strict=True):
                feature = {
                    "image": tf.train.Feature(
                        bytes_list=tf.train.BytesList(value=[image.tobytes()])
                    ),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(label)])),
                }
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())
    return names


def read_batch(tf: Any, names: list[str]) -> tuple[Any, Any]:
    """Return images [batch, 784] and labels [batch] that come from files."""
    files = tf.train.string_input_producer(names, seed=1)
    _, records = tf.TFRecordReader().read_up_to(files, 500)
    features = {
        "image": tf.FixedLenFeature([], tf.string),
        "label": tf.FixedLenFeature([], tf.int64),
    }
    parsed = tf.parse_example(records, features)
    images = tf.reshape(tf.decode_raw(parsed["image"], tf.uint8), [-1, data.FEATURES])
    images, labels = tf.train.shuffle_batch(
        [images, parsed["label"]], BATCH, 2000, 1000, seed=1, enqueue_many=True
    )
    return tf.cast(images, tf.float32) * (1 / 255), labels


def model(tf: Any, name: str, images: Any, labels: Any) -> Any:
    """Return what trains a model on a batch."""

    def variable(*shape: int) -> Any:
        return tf.Variable(tf.truncated_normal(shape, stddev=0.1, seed=1))

    x, width = images, data.FEATURES
    if name == "convnet":
        x = tf.reshape(images, [-1, 28, 28, 1])
        for before, after in ((1, 16), (16, 32)):
            x = tf.nn.conv2d(x, variable(5, 5, before, after), [1, 1, 1, 1], "SAME")
            x = tf.nn.max_pool(tf.nn.relu(x), [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
        x, width = tf.reshape(x, [-1, 7 * 7 * 32]), 7 * 7 * 32
        x, width = tf.nn.relu(tf.matmul(x, variable(width, 64))), 64
    logits = tf.matmul(x, variable(width, data.CLASSES)) + tf.Variable(tf.zeros([data.CLASSES]))
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    return tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(losses))


def build(tf: Any, workload: str, variant: str, open_session: Callable[[], Any]) -> Participant:
    """Build the program of a workload with one of the two sources, ready to be timed."""
    name = workload.removeprefix("records_")
    rounds: list[tuple[Any, ...]] = [()] * STEPS[name]
    if variant == FEEDS:
        return _fed(tf, name, open_session, rounds)
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    train = model(tf, name, *read_batch(tf, write_records(tf, folder)))
    session = open_session()
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)

    def stop() -> None:
        coordinator.request_stop()
        coordinator.join(threads)

    atexit.register(stop)
    return StepLoop(lambda: session.run(train), rounds)


def _fed(
    tf: Any, name: str, open_session: Callable[[], Any], rounds: list[tuple[Any, ...]]
) -> Participant:
    images, labels = examples()
    pixels = images.astype(np.float32) / 255
    x = tf.placeholder(tf.float32, [None, data.FEATURES])
    y = tf.placeholder(tf.int64, [None])
    train = model(tf, name, x, y)
    session = open_session()
    session.run(tf.global_variables_initializer())
    rng = np.random.default_rng(1)
    order = rng.permutation(EXAMPLES)
    at = 0

    def step() -> None:
        nonlocal order, at
        if at == EXAMPLES:
            order, at = rng.permutation(EXAMPLES), 0
        rows = order[at : at + BATCH]
        at += BATCH
        session.run(train, {x: pixels[rows], y: labels[rows]})

    return StepLoop(step, rounds)
