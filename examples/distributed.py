"""Softmax regression on several processes: variables on a parameter server, batches over workers.

    python examples/distributed.py                  # one process plays all tasks
    mpirun -n 3 python examples/distributed.py      # a parameter server and two workers

Training is synchronous. The first worker builds one replica of the model for each worker; a
replica computes the gradients of its share of the batch, and the parameter server adds them up
and applies them once. So the losses do not depend on the number of processes, and equal those of
one process up to rounding.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import Any, NamedTuple

import numpy as np

import headrace as hr

PS = "/job:ps/task:0"


class Model(NamedTuple):
    """What the training loop needs of the graph."""

    images: hr.Tensor
    labels: hr.Tensor
    loss: hr.Tensor
    accuracy: hr.Tensor
    train_step: hr.Operation


def build(pixels: int, classes: int, workers: int, batch: int, learning_rate: float) -> Model:
    """Build the model with one replica per worker.

    Args:
        pixels: Size of an image.
        classes: Number of labels.
        workers: Number of workers.
        batch: Number of images in a batch, over all workers.
        learning_rate: Step size of gradient descent.

    Returns:
        Its placeholders and what to run.
    """
    images = hr.placeholder(hr.float32, [None, pixels], name="images")
    labels = hr.placeholder(hr.float32, [None, classes], name="labels")
    with hr.device(PS):
        weights = hr.Variable(hr.zeros([pixels, classes]), name="weights")
        bias = hr.Variable(hr.zeros([classes]), name="bias")
        optimizer = hr.train.GradientDescentOptimizer(learning_rate)

    losses, gradients = [], []
    for i in range(workers):
        rows = slice(i * batch // workers, (i + 1) * batch // workers)
        with hr.device(f"/job:worker/task:{i}"), hr.name_scope(f"replica_{i}"):
            logits = hr.matmul(images[rows], weights) + bias
            each = hr.nn.softmax_cross_entropy_with_logits(labels=labels[rows], logits=logits)
            # The sum over a share, divided by the whole batch: the shares add up to the mean.
            loss = hr.reduce_sum(each) / float(batch)
            losses.append(loss)
            gradients.append(hr.gradients(loss, [weights, bias]))

    with hr.device(PS):
        total = [sum(parts[1:], start=parts[0]) for parts in zip(*gradients, strict=True)]
        variables = [weights, bias]
        train_step = optimizer.apply_gradients(zip(total, variables, strict=True))
        loss = sum(losses[1:], start=losses[0])

    with hr.name_scope("test"):
        right = hr.equal(hr.argmax(hr.matmul(images, weights) + bias, 1), hr.argmax(labels, 1))
        accuracy = hr.reduce_mean(hr.cast(right, hr.float32))
    return Model(images, labels, loss, accuracy, train_step)


def train(cluster: Any, steps: int, batch: int, learning_rate: float) -> dict[str, Any]:
    """Train on the first worker, with the help of all others.

    Args:
        cluster: The tasks.
        steps: Number of steps.
        batch: Number of images in a batch, over all workers.
        learning_rate: Step size of gradient descent.

    Returns:
        The losses, and the accuracy on test images.
    """
    if os.environ.get("HEADRACE_DATA"):
        data = hr.train.datasets.load_mnist()
    else:
        data = hr.train.datasets.load_digits()
    pixels, classes = data.train.images.shape[1], data.train.labels.shape[1]
    model = build(pixels, classes, cluster.num_workers, batch, learning_rate)
    losses = []
    with hr.Session(cluster.target) as session:
        session.run(hr.global_variables_initializer())
        step = session.make_callable([model.loss, model.train_step], [model.images, model.labels])
        with hr.train.Progress(steps, "training", enabled=True) as progress:
            for _ in range(steps):
                loss, _ = step(*data.train.next_batch(batch))
                losses.append(float(loss))
                progress.update(loss=loss)
        feeds = {model.images: data.test.images, model.labels: data.test.labels}
        accuracy = float(session.run(model.accuracy, feeds))
    return {"losses": losses, "accuracy": accuracy}


def main() -> None:
    """Form the cluster; the first worker trains, all other ranks serve it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--learning-rate", type=float, default=0.5)
    parser.add_argument("--json", action="store_true", help="print the losses as JSON")
    args = parser.parse_args()
    with hr.dist.Cluster(ps=1) as cluster:
        if not cluster.is_chief:
            cluster.serve()
            return
        result = train(cluster, args.steps, args.batch, args.learning_rate)
        if args.json:
            print(json.dumps(result))
        else:
            print(f"loss {np.mean(result['losses'][-20:]):.4f}, accuracy {result['accuracy']:.4f}")


if __name__ == "__main__":
    main()
