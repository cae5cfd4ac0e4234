"""Fine-tuning: a model starts with the layers of one that was trained on other data.

The first model learns the digits of many images. The second one gets few, from a scanner that is
darker and noisy. It has other names for its variables, and takes their values from the checkpoint
of the first. With ``--from CHECKPOINT`` it takes them from there: a checkpoint of ``Saver``, or one
of TensorFlow's in its second format, with the same names.
"""

from __future__ import annotations

import argparse
import tempfile

import numpy as np

import headrace as hr

digits = hr.train.datasets.load_digits(one_hot=False)
FEW = 30


def scanned(images: np.ndarray, seed: int) -> np.ndarray:
    """Return images as the other scanner makes them."""
    noise = np.random.default_rng(seed).normal(0, 0.1, images.shape)
    return (0.5 * images + noise).astype(np.float32)


class Model:
    """A network with one hidden layer, and what trains it."""

    def __init__(self, scope: str, hidden: str) -> None:
        """Build the model in the default graph, its variables under ``scope``."""
        self.images = hr.placeholder(hr.float32, [None, 64])
        self.labels = hr.placeholder(hr.int64, [None])
        with hr.variable_scope(scope):
            found = hr.layers.dense(self.images, 64, hr.nn.relu, name=hidden)
            logits = hr.layers.dense(found, 10, name="logits")
        loss = hr.losses.sparse_softmax_cross_entropy(self.labels, logits)
        self.step = hr.train.AdamOptimizer(0.01).minimize(loss)
        right = hr.equal(hr.argmax(logits, 1), self.labels)
        self.accuracy = hr.reduce_mean(hr.cast(right, hr.float32))


def train_first(folder: str) -> str:
    """Train the first model; return its checkpoint."""
    with hr.Graph().as_default(), hr.Session() as session:
        hr.set_random_seed(1)
        model = Model("base", "hidden")
        session.run(hr.global_variables_initializer())
        data = {model.images: digits.train.images, model.labels: digits.train.labels}
        for _ in range(100):
            session.run(model.step, data)
        test = {model.images: digits.test.images, model.labels: digits.test.labels}
        print(f"many clean images: accuracy {session.run(model.accuracy, test):.3f}")
        return hr.train.Saver().save(session, f"{folder}/base")


def train_second(checkpoint: str | None) -> float:
    """Train the second model, from a checkpoint or from nothing; return its accuracy."""
    with hr.Graph().as_default(), hr.Session() as session:
        hr.set_random_seed(2)
        model = Model("scanner", "features")
        if checkpoint is not None:
            names = {"base/hidden/": "scanner/features/", "base/logits/": "scanner/logits/"}
            hr.train.init_from_checkpoint(checkpoint, names)
        session.run(hr.global_variables_initializer())
        few, labels = scanned(digits.train.images[:FEW], 3), digits.train.labels[:FEW]
        for _ in range(20):
            session.run(model.step, {model.images: few, model.labels: labels})
        test = {model.images: scanned(digits.test.images, 4), model.labels: digits.test.labels}
        return float(session.run(model.accuracy, test))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--from", dest="checkpoint", help="the checkpoint to take the layers from")
given = parser.parse_args().checkpoint
with tempfile.TemporaryDirectory() as folder:
    checkpoint = given or train_first(folder)
    for name, shape in hr.train.list_variables(checkpoint):
        if name.endswith(("/kernel", "/bias")):
            print(f"taken: {name} {shape}")
    print(f"{FEW} images of the scanner: accuracy {train_second(None):.3f}")
    print(f"from the checkpoint: accuracy {train_second(checkpoint):.3f}")
