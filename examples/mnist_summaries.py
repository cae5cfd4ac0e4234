"""Digits with summaries: curves, histograms, images and the graph, for TensorBoard.

::

    python mnist_summaries.py --logdir=logs
    tensorboard --logdir=logs

With MNIST where ``HEADRACE_DATA`` names a folder that has it, else with the digits that come with
Headrace.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

import headrace as hr


def variable_summaries(variable: hr.Tensor) -> None:
    """Tell of the mean, the spread and the distribution of a tensor."""
    with hr.name_scope("summaries"):
        average = hr.reduce_mean(variable, name="average")
        hr.summary.scalar("mean", average)
        hr.summary.scalar("stddev", hr.sqrt(hr.reduce_mean(hr.square(variable - average))))
        hr.summary.histogram("histogram", variable)


def layer(x: hr.Tensor, units: int, name: str, activation: Any = None) -> hr.Tensor:
    """Return ``activation(x @ weights + biases)``, and tell of all of it."""
    with hr.variable_scope(name):
        inputs = int(x.shape[-1])
        normal = hr.truncated_normal_initializer(stddev=0.1, seed=units)
        weights = hr.get_variable("weights", [inputs, units], initializer=normal)
        biases = hr.get_variable("biases", [units], initializer=hr.constant_initializer(0.1))
        variable_summaries(weights)
        found = hr.matmul(x, weights) + biases
        return found if activation is None else activation(found)


def main() -> None:
    """Train, and write what happens."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logdir", default="logs")
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()

    if os.environ.get("HEADRACE_DATA"):
        data = hr.train.datasets.load_mnist(one_hot=True)
    else:
        data = hr.train.datasets.load_digits(one_hot=True)
    pixels = data.train.images.shape[1]
    side = int(pixels**0.5)

    with hr.name_scope("input"):
        x = hr.placeholder(hr.float32, [None, pixels], name="x")
        labels = hr.placeholder(hr.float32, [None, 10], name="labels")
        hr.summary.image("images", hr.reshape(x, [-1, side, side, 1]), max_outputs=3)
    hidden = layer(x, 64, "hidden", hr.nn.relu)
    logits = layer(hidden, 10, "output")
    with hr.name_scope("loss"):
        losses = hr.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
        loss = hr.reduce_mean(losses)
    with hr.name_scope("evaluation"):
        right = hr.equal(hr.argmax(logits, 1), hr.argmax(labels, 1))
        accuracy = hr.reduce_mean(hr.cast(right, hr.float32))
    hr.summary.scalar("cross_entropy", loss)
    hr.summary.scalar("accuracy", accuracy)
    merged = hr.summary.merge_all()
    # What is told of weights is told before they change.
    with hr.control_dependencies([merged]):
        train = hr.train.AdamOptimizer(0.003).minimize(loss)

    with (
        hr.Session() as session,
        hr.summary.FileWriter(f"{options.logdir}/train", session.graph) as training,
        hr.summary.FileWriter(f"{options.logdir}/test") as testing,
    ):
        session.run(hr.global_variables_initializer())
        test_set = {x: data.test.images, labels: data.test.labels}
        for step in range(options.steps + 1):
            if step % 10 == 0:
                testing.add_summary(session.run(merged, test_set), step)
            images, numbers = data.train.next_batch(100)
            told, _ = session.run([merged, train], {x: images, labels: numbers})
            training.add_summary(told, step)
        print(f"test accuracy {session.run(accuracy, test_set):.3f}")
    print(f"look at it: tensorboard --logdir={options.logdir}")


if __name__ == "__main__":
    main()
