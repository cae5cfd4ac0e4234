"""Handwritten digits from files of records: written, read, shuffled, and trained on.

Set ``HEADRACE_DATA`` to a folder that has the four files of MNIST in its folder ``mnist``; the
bundled digits are used otherwise.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from models import MODELS, judged

import headrace as hr


def write_records(dataset: Any, folder: str, files: int) -> list[str]:
    """Write the examples of a data set into files of records, and return their names.

    Each record is an ``Example`` with the pixels as bytes, and the label.
    """
    names = [str(Path(folder, f"digits-{i}.tfrecords")) for i in range(files)]
    pixels = np.round(dataset.images * 255).astype(np.uint8)
    for i, name in enumerate(names):
        with hr.python_io.TFRecordWriter(name) as writer:
            for image, label in zip(pixels[i::files], dataset.labels[i::files], strict=True):
                feature = {
                    "image": hr.train.Feature(
                        bytes_list=hr.train.BytesList(value=[image.tobytes()])
                    ),
                    "label": hr.train.Feature(int64_list=hr.train.Int64List(value=[int(label)])),
                }
                example = hr.train.Example(features=hr.train.Features(feature=feature))
                writer.write(example.SerializeToString())
    return names


def parsed(records: hr.Tensor, pixels: int) -> tuple[hr.Tensor, hr.Tensor]:
    """Return the images [n, pixels] uint8, and the labels [n] int64, of records [n]."""
    features = {
        "image": hr.FixedLenFeature([], hr.string),
        "label": hr.FixedLenFeature([], hr.int64),
    }
    values = hr.parse_example(records, features)
    return hr.reshape(hr.decode_raw(values["image"], hr.uint8), [-1, pixels]), values["label"]


def dataset_batches(
    names: list[str], pixels: int, size: int, epochs: int | None, seed: int = 0
) -> tuple[hr.Tensor, hr.Tensor]:
    """Return the same as ``read_batches``, from a data set in place of queues."""
    records = hr.data.TFRecordDataset(names)
    batches = (
        records.shuffle(20 * size, seed=seed)
        .repeat(epochs)
        .batch(size, drop_remainder=True)
        .map(lambda some: parsed(some, pixels))
        .prefetch(4)
    )
    images, labels = batches.make_one_shot_iterator().get_next()
    return hr.cast(images, hr.float32) / 255.0, labels


def read_batches(
    names: list[str], pixels: int, size: int, epochs: int | None, seed: int = 0
) -> tuple[hr.Tensor, hr.Tensor]:
    """Return a batch of images [size, pixels], and of labels [size], another one in each step."""
    files = hr.train.string_input_producer(names, num_epochs=epochs, seed=seed)
    # Many records at once: a step of the reading thread costs about the same for one and for ten.
    _, records = hr.TFRecordReader().read_up_to(files, 200)
    images, labels = parsed(records, pixels)
    # All of the above runs in a thread; the training step takes what is ready, as bytes.
    images, labels = hr.train.shuffle_batch(
        [images, labels],
        size,
        capacity=40 * size,
        min_after_dequeue=20 * size,
        seed=seed,
        enqueue_many=True,
    )
    return hr.cast(images, hr.float32) / 255.0, labels


INPUTS = {"queues": read_batches, "data": dataset_batches}


def main() -> None:
    """Train a model on the records, and print its accuracy on the test set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5, help="times that each example is used")
    parser.add_argument("--batch", type=int, default=100, help="examples to a step")
    parser.add_argument("--model", default="softmax regression", choices=MODELS)
    parser.add_argument("--input", default="queues", choices=INPUTS)
    parser.add_argument("--records", help="folder for the files; a temporary one by default")
    options = parser.parse_args()

    datasets = hr.train.datasets
    load = datasets.load_mnist if os.environ.get("HEADRACE_DATA") else datasets.load_digits
    digits = load(one_hot=False)
    pixels = digits.train.images.shape[1]
    hr.set_random_seed(1)
    with tempfile.TemporaryDirectory() as folder, hr.Session() as session:
        names = write_records(digits.train, options.records or folder, files=4)
        read = INPUTS[options.input]
        images, labels = read(names, pixels, options.batch, options.epochs)
        # What the files hold, unless something is fed: the test set, at the end.
        images = hr.placeholder_with_default(images, [None, pixels])
        labels = hr.placeholder_with_default(labels, [None])
        net = judged(options.model, images, hr.one_hot(labels, 10))
        train_step = hr.train.GradientDescentOptimizer(0.5).minimize(net.loss)
        session.run([hr.global_variables_initializer(), hr.local_variables_initializer()])

        coordinator = hr.train.Coordinator()
        threads = hr.train.start_queue_runners(session, coordinator)
        steps = 0
        with coordinator.stop_on_exception():
            while not coordinator.should_stop():
                session.run(train_step)
                steps += 1
        coordinator.join(threads)

        test = {images: digits.test.images, labels: digits.test.labels}
        accuracy = session.run(net.accuracy, test)
        print(f"{steps} steps, test accuracy {accuracy:.3f}")


if __name__ == "__main__":
    main()
