"""Programs with layers that TensorFlow 1.15 and Headrace both run, and what is recorded of them.

Each case is a function of the library, ``tensorflow`` or ``headrace``. It must run on Python 3.7,
for which TensorFlow 1.15 was made; ``generate_tables.py`` runs it there.
"""

from __future__ import annotations

import numpy as np


def wave(*shape):
    """Numbers that look random and are the same everywhere."""
    count = int(np.prod(shape))
    return (np.sin(np.arange(count) * 1.7 + count) + 0.3 * np.cos(np.arange(count) * 0.9)).reshape(
        shape
    )


def line(tf):
    return tf.constant(wave(2, 7, 3), tf.float32)


def image(tf):
    return tf.constant(wave(2, 6, 5, 3), tf.float32)


def volume(tf):
    return tf.constant(wave(2, 4, 5, 4, 2), tf.float32)


def rows(tf):
    return tf.constant(wave(4, 3), tf.float32)


def total(weights):
    """A regularizer that both libraries can compute without functions of their own."""
    return 0.25 * (weights * weights)


CASES = {
    # -- dense
    "dense": lambda tf: tf.layers.dense(rows(tf), 2),
    "dense_3d": lambda tf: tf.layers.dense(line(tf), 4, activation=tf.nn.relu),
    "dense_without_bias": lambda tf: tf.layers.dense(rows(tf), 2, use_bias=False, name="fc"),
    "dense_twice": lambda tf: tf.layers.dense(tf.layers.dense(rows(tf), 5, tf.nn.tanh), 2),
    "dense_regularized": lambda tf: tf.layers.dense(
        rows(tf),
        2,
        kernel_regularizer=lambda w: tf.reduce_sum(total(w)),
        bias_regularizer=lambda w: tf.reduce_sum(tf.abs(w)),
        activity_regularizer=lambda y: tf.reduce_sum(y * y),
        name="fc",
    ),
    "dense_not_trainable": lambda tf: tf.layers.dense(rows(tf), 2, trainable=False),
    "dense_float64": lambda tf: tf.layers.dense(tf.constant(wave(4, 3)), 2),
    # -- convolution
    "conv1d": lambda tf: tf.layers.conv1d(line(tf), 4, 3),
    "conv1d_same": lambda tf: tf.layers.conv1d(line(tf), 4, [3], 2, "SAME"),
    "conv1d_causal": lambda tf: tf.layers.Conv1D(4, 3, padding="causal", dilation_rate=2)(line(tf)),
    "conv2d": lambda tf: tf.layers.conv2d(image(tf), 4, 3),
    "conv2d_same": lambda tf: tf.layers.conv2d(
        image(tf), 4, (2, 3), (2, 1), "same", activation=tf.nn.relu, name="c"
    ),
    "conv2d_dilated": lambda tf: tf.layers.conv2d(image(tf), 2, 2, dilation_rate=(2, 1)),
    "conv2d_without_bias": lambda tf: tf.layers.conv2d(image(tf), 2, 1, use_bias=False),
    "conv3d": lambda tf: tf.layers.conv3d(volume(tf), 3, (2, 3, 2)),
    "conv3d_same": lambda tf: tf.layers.conv3d(volume(tf), 3, 2, (1, 2, 1), "same"),
    "conv2d_transpose": lambda tf: tf.layers.conv2d_transpose(image(tf), 4, 3, 2),
    "conv2d_transpose_same": lambda tf: tf.layers.conv2d_transpose(
        image(tf), 4, (3, 2), (2, 3), "same", use_bias=False
    ),
    "conv2d_transpose_far": lambda tf: tf.layers.conv2d_transpose(image(tf), 2, 1, 2),
    "conv3d_transpose": lambda tf: tf.layers.conv3d_transpose(volume(tf), 3, 2, (1, 2, 2)),
    "conv3d_transpose_same": lambda tf: tf.layers.conv3d_transpose(volume(tf), 3, 3, 2, "same"),
    "separable_conv1d": lambda tf: tf.layers.separable_conv1d(
        line(tf), 4, 3, 2, depth_multiplier=2
    ),
    "separable_conv1d_causal": lambda tf: tf.layers.SeparableConv1D(4, 3, padding="causal")(
        line(tf)
    ),
    "separable_conv2d": lambda tf: tf.layers.separable_conv2d(image(tf), 4, 3),
    "separable_conv2d_same": lambda tf: tf.layers.separable_conv2d(
        image(tf), 4, 3, 2, "same", depth_multiplier=2, activation=tf.nn.relu
    ),
    "separable_conv2d_dilated": lambda tf: tf.layers.separable_conv2d(
        image(tf), 4, 2, dilation_rate=2, pointwise_regularizer=lambda w: tf.reduce_sum(total(w))
    ),
    # -- pooling and shapes
    "average_pooling1d": lambda tf: tf.layers.average_pooling1d(line(tf), 2, 2),
    "average_pooling2d": lambda tf: tf.layers.average_pooling2d(image(tf), (2, 3), 1, "same"),
    "average_pooling3d": lambda tf: tf.layers.average_pooling3d(volume(tf), 2, 2, "same"),
    "max_pooling1d": lambda tf: tf.layers.max_pooling1d(line(tf), 3, 2, "same"),
    "max_pooling2d": lambda tf: tf.layers.max_pooling2d(image(tf), 2, 2, name="pool"),
    "max_pooling3d": lambda tf: tf.layers.max_pooling3d(volume(tf), (1, 2, 2), (1, 2, 1)),
    "flatten": lambda tf: tf.layers.flatten(image(tf)),
    "flatten_channels_first": lambda tf: tf.layers.flatten(image(tf), data_format="channels_first"),
    "flatten_vector": lambda tf: tf.layers.flatten(tf.constant(wave(5), tf.float32)),
    "dropout_not_training": lambda tf: tf.layers.dropout(rows(tf), 0.3),
    # -- batch normalization
    "batch_normalization": lambda tf: tf.layers.batch_normalization(rows(tf), training=True),
    "batch_normalization_inference": lambda tf: tf.layers.batch_normalization(rows(tf)),
    "batch_normalization_images": lambda tf: tf.layers.batch_normalization(
        image(tf), training=True, momentum=0.9, name="bn"
    ),
    "batch_normalization_images_inference": lambda tf: tf.layers.batch_normalization(image(tf)),
    "batch_normalization_not_fused": lambda tf: tf.layers.batch_normalization(
        image(tf), training=True, fused=False, epsilon=0.01
    ),
    "batch_normalization_axis": lambda tf: tf.layers.batch_normalization(
        image(tf), axis=1, training=True, fused=False, momentum=0.8
    ),
    "batch_normalization_axes": lambda tf: tf.layers.batch_normalization(
        image(tf), axis=[1, -1], training=True, momentum=0.8
    ),
    "batch_normalization_plain": lambda tf: tf.layers.batch_normalization(
        image(tf), center=False, scale=False, training=True
    ),
    "batch_normalization_no_center": lambda tf: tf.layers.batch_normalization(
        rows(tf), center=False, training=True
    ),
    "batch_normalization_renorm": lambda tf: tf.layers.batch_normalization(
        rows(tf),
        training=True,
        renorm=True,
        renorm_clipping={"rmin": 0.9, "rmax": 1.1, "dmax": 0.2},
        renorm_momentum=0.7,
        momentum=0.8,
    ),
    "batch_normalization_renorm_free": lambda tf: tf.layers.batch_normalization(
        image(tf), training=True, renorm=True, momentum=0.8
    ),
    "batch_normalization_renorm_inference": lambda tf: tf.layers.batch_normalization(
        rows(tf), renorm=True
    ),
    "batch_normalization_virtual": lambda tf: tf.layers.batch_normalization(
        rows(tf), training=True, virtual_batch_size=2, momentum=0.8
    ),
    "batch_normalization_adjusted": lambda tf: tf.layers.batch_normalization(
        rows(tf),
        training=True,
        adjustment=lambda shape: (tf.fill(shape[-1:], 1.25), tf.fill(shape[-1:], -0.5)),
    ),
    "batch_normalization_placeholder_true": lambda tf: tf.layers.batch_normalization(
        rows(tf), training=tf.placeholder_with_default(True, []), momentum=0.9
    ),
    "batch_normalization_placeholder_false": lambda tf: tf.layers.batch_normalization(
        rows(tf), training=tf.placeholder_with_default(False, []), momentum=0.9
    ),
    "batch_normalization_images_placeholder_true": lambda tf: tf.layers.batch_normalization(
        image(tf), training=tf.placeholder_with_default(True, []), momentum=0.9
    ),
    "batch_normalization_images_placeholder_false": lambda tf: tf.layers.batch_normalization(
        image(tf), training=tf.placeholder_with_default(False, []), momentum=0.9
    ),
    "batch_normalization_regularized": lambda tf: tf.layers.batch_normalization(
        rows(tf),
        gamma_regularizer=lambda w: tf.reduce_sum(total(w)),
        beta_regularizer=lambda w: tf.reduce_sum(tf.abs(w)),
        training=True,
    ),
}


def names(tf):
    """Layers of given, repeated and shared names; returns names of outputs."""
    found = []

    def note(value):
        found.append(value.name)

    x, images = rows(tf), image(tf)
    layer = tf.layers.Dense(3)
    found.append(layer.name)
    note(layer(x))
    found.append(layer.scope_name)
    note(layer(x))
    note(tf.layers.dense(x, 2))
    note(tf.layers.dense(x, 2, name="fc", activation=tf.nn.relu))
    note(tf.layers.dense(x, 2, name="fc", reuse=True))
    note(tf.layers.dense(x, 3, reuse=True))
    with tf.variable_scope("s"):
        note(tf.layers.dense(x, 2))
        note(tf.layers.dense(x, 2))
    with tf.variable_scope("s", reuse=True):
        note(tf.layers.dense(x, 2))
        note(tf.layers.dense(x, 2))
    with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        note(tf.layers.dense(x, 2, name="other"))
        note(tf.layers.dense(x, 2, name="other"))
    with tf.name_scope("ns"):
        note(tf.layers.dense(x, 2))
    shared = tf.layers.Conv2D(2, 3, name="shared")
    note(shared(images))
    note(shared(images))
    found.append(shared.scope_name)
    note(tf.layers.max_pooling2d(images, 2, 2))
    note(tf.layers.max_pooling2d(images, 2, 2, name="pool"))
    note(tf.layers.max_pooling2d(images, 2, 2, name="pool"))
    note(tf.layers.average_pooling2d(images, 2, 2))
    note(tf.layers.flatten(images))
    tf.layers.batch_normalization(images, training=True)
    tf.layers.batch_normalization(x, training=True)
    tf.layers.separable_conv2d(images, 2, 3)
    tf.layers.conv2d_transpose(images, 2, 3)
    tf.layers.conv1d(line(tf), 2, 3)
    with tf.variable_scope("outer"):
        tf.layers.batch_normalization(x, name="bn")
        tf.layers.dense(x, 2, kernel_initializer=tf.zeros_initializer(), name="zero")
    return found


def net(tf, library_of_optimizers):
    """A small net with batch normalization; returns its loss and an operation that trains it."""
    images = tf.constant(wave(6, 6, 6, 1), tf.float32)
    labels = tf.constant([0, 1, 2, 2, 1, 0], tf.int32)
    x = tf.layers.conv2d(images, 4, 3, padding="same", use_bias=False)
    x = tf.nn.relu(tf.layers.batch_normalization(x, training=True, momentum=0.8))
    x = tf.layers.max_pooling2d(x, 2, 2)
    x = tf.layers.flatten(x)
    x = tf.layers.dense(x, 5, kernel_regularizer=lambda w: 0.01 * tf.reduce_sum(w * w))
    x = tf.nn.relu(tf.layers.batch_normalization(x, training=True, momentum=0.8))
    logits = tf.layers.dense(x, 3)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits)
    loss = loss + tf.losses.get_regularization_loss()
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = library_of_optimizers.GradientDescentOptimizer(0.1).minimize(loss)
    return loss, train


def load_start_values(variables, session):
    """Give variables values that depend on their names and shapes alone."""
    for variable in variables:
        shape = [int(size) for size in variable.shape.as_list()]
        numbers = 0.4 * wave(*shape, 1).reshape(shape) if shape else np.asarray(0.3)
        if "variance" in variable.name or "stddev" in variable.name or "gamma" in variable.name:
            numbers = 0.8 + np.abs(numbers)
        variable.load(numbers.astype(np.dtype(variable.dtype.as_numpy_dtype)), session)


def listed(values):
    return np.asarray(values, np.float64).round(6).tolist()


def record(tf, case):
    """Run a case with values of its own for all variables, and return what is to be compared."""
    output = case(tf)
    variables = tf.global_variables()
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    losses = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        load_start_values(variables, session)
        outputs = session.run(output)
        penalties = session.run(losses) if losses else []
        for _ in range(2):
            if updates:
                session.run(updates)
        after = session.run(variables) if updates else []
    return {
        "shape": [int(size) for size in output.shape.as_list()],
        "output": listed(outputs),
        "variables": [[v.name, [int(s) for s in v.shape.as_list()]] for v in variables],
        "trainable": [v.name for v in tf.trainable_variables()],
        "updates": len(updates),
        "losses": listed(penalties),
        "after": [listed(value) for value in after],
    }


def record_net(tf, library_of_optimizers):
    """Train the net for 3 steps, and return its losses and variables."""
    loss, train = net(tf, library_of_optimizers)
    variables = tf.global_variables()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        load_start_values(variables, session)
        losses = [session.run([loss, train])[0] for _ in range(3)]
        after = session.run(variables)
    return {
        "losses": listed(losses),
        "variables": [v.name for v in variables],
        "after": [listed(value) for value in after],
    }
