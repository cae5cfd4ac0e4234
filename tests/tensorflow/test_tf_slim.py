"""tf-slim, a library that knows TensorFlow only, builds, trains and evaluates on Headrace."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.tensorflow.standing_in import printed

pytestmark = [
    pytest.mark.needs("autodiff", "backend-cpu", "io", "train"),
    pytest.mark.skipif(importlib.util.find_spec("tf_slim") is None, reason="needs tf-slim"),
    pytest.mark.timeout(120),
]

TRAINING = """
    import sys

    import numpy as np
    import tensorflow as tf

    slim = tf.contrib.slim
    tf.set_random_seed(1)
    rng = np.random.RandomState(0)
    images = rng.rand(64, 8, 8, 1).astype(np.float32)
    labels = (images.mean(axis=(1, 2, 3)) > 0.5).astype(np.int64)

    def net(x, training):
        with slim.arg_scope(
            [slim.conv2d],
            normalizer_fn=slim.batch_norm,
            normalizer_params={"is_training": training, "decay": 0.5},
            weights_regularizer=slim.l2_regularizer(1e-4),
        ):
            x = slim.conv2d(x, 4, [3, 3], scope="conv")
            x = slim.max_pool2d(x, [2, 2])
        return slim.fully_connected(slim.flatten(x), 2, activation_fn=None, scope="logits")

    folder = sys.argv[1]
    with tf.Graph().as_default():
        logits = net(tf.constant(images), True)
        tf.losses.sparse_softmax_cross_entropy(labels, logits)
        total = tf.losses.get_total_loss()
        train = slim.learning.create_train_op(total, tf.train.AdamOptimizer(0.02))
        last = slim.learning.train(train, folder, number_of_steps=60, log_every_n_steps=1000)
    with tf.Graph().as_default():
        right = tf.equal(tf.argmax(net(tf.constant(images), False), 1), labels)
        value, update = slim.metrics.streaming_mean(tf.cast(right, tf.float32))
        names = sorted(v.op.name for v in slim.get_model_variables())
        found = slim.evaluation.evaluate_once(
            "", tf.train.latest_checkpoint(folder), folder + "/eval", eval_op=update,
            final_op=value, num_evals=2,
        )
    with tf.Graph().as_default(), tf.Session() as session:
        logits = net(tf.constant(images), False)
        assign, feeds = slim.assign_from_checkpoint(
            tf.train.latest_checkpoint(folder), slim.get_model_variables()
        )
        session.run(assign, feeds)
        assigned = np.mean(session.run(logits).argmax(1) == labels)
    print(last < 0.6, found > 0.8, abs(assigned - found) < 1e-6)
    print(names)
"""


def test_a_network_is_trained_and_evaluated(tmp_path: Path) -> None:
    lines = printed(tmp_path, TRAINING, str(tmp_path / "log"))
    assert lines[-2] == "True True True"
    assert lines[-1] == str(
        [
            "conv/BatchNorm/beta",
            "conv/BatchNorm/moving_mean",
            "conv/BatchNorm/moving_variance",
            "conv/weights",
            "logits/biases",
            "logits/weights",
        ]
    )


NETS = """
    import numpy as np
    import tensorflow as tf
    from tensorflow.contrib.slim.nets import resnet_v1, vgg

    for build in (vgg.vgg_a, resnet_v1.resnet_v1_50):
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(1)
            size = 224 if build is vgg.vgg_a else 64
            result, points = build(tf.zeros([1, size, size, 3]), 10, is_training=False)
            session.run(tf.global_variables_initializer())
            print(np.isfinite(session.run(result)).all(), result.shape.as_list(), len(points) > 5)
"""


def test_its_networks_run(tmp_path: Path) -> None:
    assert printed(tmp_path, NETS) == ["True [1, 10] True", "True [1, 1, 1, 10] True"]
