"""The softmax regression as a TensorFlow graph, through a session and a callable made of it."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import tensorflow.compat.v1 as tf

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.tensorflow_session import open_session
from benchmarks.workloads.softmax import data


def build(request: Request) -> Participant:
    """Build the graph as the seeds' program has it, and a session on it."""
    tf.disable_v2_behavior()
    x = tf.placeholder(tf.float32, [None, data.FEATURES])
    weights = tf.Variable(tf.zeros([data.FEATURES, data.CLASSES]))
    biases = tf.Variable(tf.zeros([data.CLASSES]))
    y = tf.nn.softmax(tf.matmul(x, weights) + biases)
    labels = tf.placeholder(tf.float32, [None, data.CLASSES])
    cross_entropy = tf.reduce_mean(-tf.reduce_sum(labels * tf.log(y), axis=[1]))
    train = tf.train.GradientDescentOptimizer(data.LEARNING_RATE).minimize(cross_entropy)
    session = open_session(request.threads)
    session.run(tf.global_variables_initializer())

    def loss() -> float:
        return data.loss(*session.run([weights, biases]))

    if request.variant == "make_callable":
        return StepLoop(session.make_callable(train, [x, labels]), data.feeds(), final_loss=loss)

    def step(images: npt.NDArray[np.float32], targets: npt.NDArray[np.float32]) -> None:
        session.run(train, feed_dict={x: images, labels: targets})

    return StepLoop(step, data.feeds(), final_loss=loss)
