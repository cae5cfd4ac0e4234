"""The softmax regression as a Headrace graph, through a session and a callable made of it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import headrace as hr
from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.workloads.softmax import data


def build(request: Request) -> Participant:
    """Build the graph as the seeds' program has it, and a session on it."""
    x = hr.placeholder(hr.float32, [None, data.FEATURES])
    weights = hr.Variable(hr.zeros([data.FEATURES, data.CLASSES]))
    biases = hr.Variable(hr.zeros([data.CLASSES]))
    y = hr.nn.softmax(hr.matmul(x, weights) + biases)
    labels = hr.placeholder(hr.float32, [None, data.CLASSES])
    cross_entropy = hr.reduce_mean(-hr.reduce_sum(labels * hr.log(y), axis=[1]))
    train = hr.train.GradientDescentOptimizer(data.LEARNING_RATE).minimize(cross_entropy)
    session = hr.Session()
    session.run(hr.global_variables_initializer())

    def loss() -> float:
        return data.loss(*session.run([weights, biases]))

    if request.variant == "make_callable":
        return StepLoop(session.make_callable(train, [x, labels]), data.feeds(), final_loss=loss)

    def step(images: npt.NDArray[np.float32], targets: npt.NDArray[np.float32]) -> None:
        session.run(train, feed_dict={x: images, labels: targets})

    return StepLoop(step, data.feeds(), final_loss=loss)
