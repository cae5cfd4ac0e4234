"""Write ``tf_checkpoint/ck-1``, a checkpoint of objects of TensorFlow 1.15.

python3.7 generate_tf_checkpoint.py
"""

from pathlib import Path

import numpy as np
import tensorflow as tf


def main():
    """Write it."""
    folder = Path(__file__).parent / "tf_checkpoint"
    folder.mkdir(exist_ok=True)
    kernel = np.arange(6, dtype=np.float32).reshape(3, 2)
    layer = tf.layers.Dense(2, kernel_initializer=tf.constant_initializer(kernel))
    layer(tf.ones([2, 3]))
    v = tf.get_variable("v", initializer=2.5, use_resource=True)
    checkpoint = tf.train.Checkpoint(v=v, layer=layer)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        checkpoint.save(str(folder / "ck"))


if __name__ == "__main__":
    main()
