"""Write small graphs with TensorFlow 1.15, what they compute, and their checkpoints.

``python generate_graphs.py graphs.zip`` where TensorFlow 1.15 is installed. For each model the
archive holds ``NAME/model.meta``, a checkpoint where it has variables, and ``NAME/values.npz``:
what was fed, and what came out before and after steps of training. This program made all of it.
"""

import io
import json
import os
import shutil
import sys
import tempfile
import zipfile

import numpy as np
import tensorflow as tf

RANDOM = np.random.RandomState(0)
FOLDER = tempfile.mkdtemp()
ARCHIVE = zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED)
DATE = (1980, 1, 1, 0, 0, 0)


def put(name, content):
    """Add a file, with one date for all, so that equal models make equal archives."""
    entry = zipfile.ZipInfo(name, DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    ARCHIVE.writestr(entry, content)


def stored(value):
    """Return an array that needs no pickle."""
    array = np.asarray(value)
    return np.asarray(array.tolist(), "S") if array.dtype == object else array


def model(name, build, resource=False, functions=False):
    """Build a model, run it, and put it into the archive."""
    tf.reset_default_graph()
    tf.set_random_seed(1)
    tf.get_variable_scope().set_use_resource(resource)
    (tf.enable_control_flow_v2 if functions else tf.disable_control_flow_v2)()
    feeds, fetches, train = build()
    names = [fetch if isinstance(fetch, str) else fetch.name for fetch in fetches]
    given = {tensor.name: value for tensor, value in feeds.items()}
    prefix = os.path.join(FOLDER, name, "model")
    os.makedirs(os.path.dirname(prefix))
    arrays = {"feed:" + key: stored(value) for key, value in given.items()}
    with tf.Session() as session:
        session.run(
            [
                tf.global_variables_initializer(),
                tf.local_variables_initializer(),
                tf.tables_initializer(),
            ]
        )
        if tf.global_variables():
            tf.train.Saver().save(session, prefix)
        else:
            tf.train.export_meta_graph(prefix + ".meta")
        for step in range(3 if train is not None else 1):
            if step:
                session.run(train.name, given)
            for i, value in enumerate(session.run(names, given)):
                arrays["%d:%d" % (step, i)] = stored(value)
    for file in sorted(os.listdir(os.path.dirname(prefix))):
        if file != "checkpoint":
            with open(os.path.join(FOLDER, name, file), "rb") as stream:
                put("%s/%s" % (name, file), stream.read())
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    put(name + "/values.npz", buffer.getvalue())
    about = {"fetches": names, "train": train.name if train is not None else None}
    put(name + "/about.json", json.dumps(about))


def normal(*shape):
    """Return random numbers."""
    return RANDOM.randn(*shape).astype("f")


def mlp(optimizer=None):
    """Return a builder of a perceptron, trained where an optimizer is given."""

    def build():
        x = tf.placeholder(tf.float32, [None, 4], "x")
        y = tf.placeholder(tf.int32, [None], "y")
        h = tf.layers.dense(x, 8, tf.nn.relu)
        h = tf.layers.dense(h, 8, tf.nn.elu)
        logits = tf.layers.dense(h, 3)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        )
        train = optimizer().minimize(loss) if optimizer else None
        return {x: normal(5, 4), y: RANDOM.randint(0, 3, 5)}, [tf.nn.softmax(logits), loss], train

    return build


def conv():
    """Build a conv net with batch normalization, trained."""
    x = tf.placeholder(tf.float32, [None, 8, 8, 2], "x")
    training = tf.placeholder_with_default(False, [], "training")
    y = tf.placeholder(tf.float32, [None, 3], "y")
    h = tf.layers.conv2d(x, 4, 3, padding="same", use_bias=False)
    h = tf.nn.relu(tf.layers.batch_normalization(h, training=training))
    h = tf.layers.max_pooling2d(h, 2, 2)
    h = tf.layers.separable_conv2d(h, 5, 3)
    h = tf.layers.flatten(tf.layers.average_pooling2d(h, 2, 1))
    logits = tf.layers.dense(tf.layers.dropout(h, 0.0, training=training), 3)
    loss = tf.losses.softmax_cross_entropy(y, logits)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
    feeds = {x: normal(3, 8, 8, 2), y: np.eye(3, dtype="f"), training: True}
    return feeds, [tf.nn.softmax(logits), loss], train


def conv_inference():
    """Build the same, to be run with the moving averages."""
    feeds, fetches, _ = conv()
    return {t: v for t, v in feeds.items() if t.name != "training:0"}, fetches, None


def rnn():
    """Build recurrent networks over sequences of different lengths."""
    x = tf.placeholder(tf.float32, [None, None, 3], "x")
    lengths = tf.placeholder(tf.int32, [None], "lengths")
    cells = tf.nn.rnn_cell
    out, state = tf.nn.dynamic_rnn(cells.LSTMCell(5), x, sequence_length=lengths, dtype=tf.float32)
    both, _ = tf.nn.bidirectional_dynamic_rnn(
        cells.GRUCell(3), cells.GRUCell(3), out, lengths, dtype=tf.float32
    )
    return {x: normal(2, 6, 3), lengths: [6, 3]}, [out, state.c, both[0], both[1]], None


def decoder():
    """Build a decoder that feeds what it chose into its next step."""
    e = tf.get_variable("e", [7, 4])
    cell = tf.nn.rnn_cell.GRUCell(4)
    start = tf.placeholder(tf.int32, [None], "start")
    batch = tf.shape(start)[0]

    def step(i, token, state, written):
        out, state = cell(tf.nn.embedding_lookup(e, token), state)
        logits = tf.matmul(out, e, transpose_b=True)
        token = tf.argmax(logits, 1, output_type=tf.int32)
        return i + 1, token, state, written.write(i, token)

    written = tf.TensorArray(tf.int32, 0, dynamic_size=True, element_shape=[None])
    state = cell.zero_state(batch, tf.float32)
    _, _, state, written = tf.while_loop(lambda i, *_: i < 5, step, [0, start, state, written])
    return {start: [1, 4]}, [tf.transpose(written.stack()), state], None


def embeddings():
    """Build lookups of embeddings, by sparse tensors too."""
    ids = tf.sparse_placeholder(tf.int64, name="ids")
    e = tf.get_variable("e", [10, 4])
    joined = tf.nn.embedding_lookup_sparse(e, ids, None, combiner="sqrtn")
    dense = tf.sparse.to_dense(ids, default_value=-1)
    ordered = tf.sparse.reorder(tf.sparse.reshape(ids, [3, -1]))
    floats = tf.SparseTensor(ids.indices, tf.cast(ids.values, tf.float32), ids.dense_shape)
    filled, empty = tf.sparse.fill_empty_rows(ids, 7)
    feeds = {
        ids.indices: [[0, 0], [0, 2], [2, 1]],
        ids.values: [3, 4, 9],
        ids.dense_shape: [4, 3],
    }
    fetches = [joined, tf.nn.embedding_lookup(e, [1, 5]), dense, ordered.indices, ordered.values]
    return feeds, [*fetches, tf.sparse.softmax(floats).values, filled.values, empty], None


def trained_embedding():
    """Build an embedding of which training changes some rows."""
    ids = tf.placeholder(tf.int32, [None], "ids")
    e = tf.get_variable("e", [10, 4])
    loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(e, ids)))
    train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    return {ids: [1, 2, 1]}, [loss, tf.identity(e)], train


def queue():
    """Build a queue that is filled and emptied in one step."""
    made = tf.FIFOQueue(10, [tf.float32, tf.int32], [[2], []])
    x = tf.placeholder(tf.float32, [None, 2], "x")
    filling = made.enqueue_many([x, tf.range(tf.shape(x)[0])])
    with tf.control_dependencies([filling]):
        a, b = made.dequeue_many(4)
    return {x: normal(4, 2)}, [a, b], None


def loops():
    """Build loops in loops, conditions in loops, and loop variables that grow."""
    n = tf.placeholder(tf.int32, [], "n")
    w = tf.get_variable("w", [2, 2])

    def body(i, a, written):
        a = tf.cond(tf.equal(i % 2, 0), lambda: tf.matmul(a, w), lambda: a + 1.0)
        _, b = tf.while_loop(lambda j, b: j < i, lambda j, b: (j + 1, b * 1.1), [0, a])
        return i + 1, b, written.write(i, tf.reduce_sum(b))

    start = [0, tf.ones([1, 2]), tf.TensorArray(tf.float32, n)]
    i, a, written = tf.while_loop(lambda i, *_: i < n, body, start)
    _, grown = tf.while_loop(
        lambda i, g: i < n,
        lambda i, g: (i + 1, tf.concat([g, g[-1:] * 2], 0)),
        [0, tf.ones([1])],
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )
    chosen = tf.case(
        [(n > 10, lambda: tf.constant(1)), (n > 2, lambda: tf.constant(2))],
        default=lambda: tf.constant(3),
    )
    mapped = tf.map_fn(lambda x: x * 2, grown)
    summed = tf.scan(lambda a, x: a + x, grown)
    return {n: 5}, [i, a, written.stack(), grown, chosen, mapped, summed], None


def state():
    """Build assignments in branches and in a loop."""
    v = tf.get_variable("v", initializer=1.0)
    p = tf.placeholder(tf.bool, [], "p")
    changed = tf.cond(p, lambda: tf.assign_add(v, 10.0), lambda: tf.assign_sub(v, 1.0))
    with tf.control_dependencies([changed]):
        after = tf.identity(v.read_value())
    count = tf.get_variable("count", initializer=0)

    def turn(i):
        written = tf.convert_to_tensor(tf.assign_add(count, 1))
        return tf.tuple([i + 1], control_inputs=[written])[0]

    ended = tf.while_loop(lambda i: i < 3, turn, [0])
    with tf.control_dependencies([ended]):
        counted = count.read_value()
    return {p: True}, [changed, after, counted], tf.group(tf.assign(v, v * 2))


def text():
    """Build the preparation of text: words, letters, hashes, numbers of a table."""
    s = tf.placeholder(tf.string, [None], "s")
    words = tf.sparse.to_dense(tf.string_split(s), default_value="")
    plain = tf.strings.regex_replace(tf.strings.lower(words), "[^a-z]", "")
    joined = tf.strings.reduce_join(plain, 1, separator="_")
    length = tf.strings.length(s)
    number = tf.string_to_number(tf.as_string(length))
    table = tf.contrib.lookup.index_table_from_tensor(["a", "the", "dog"], num_oov_buckets=2)
    hashed = tf.strings.to_hash_bucket_fast(plain, 100)
    fetches = [words, plain, hashed, joined, length, tf.strings.substr(s, 0, 2), number]
    return {s: [b"The dog, barks", b"A cat"]}, [*fetches, table.lookup(plain)], None


def arrays():
    """Build many ops of arrays, on one input."""
    x = tf.placeholder(tf.float32, [None, 4], "x")
    found = [
        tf.argmax(x, 1),
        tf.nn.top_k(x, 2)[0],
        tf.cumsum(x, 1, exclusive=True, reverse=True),
        tf.reverse(x, [1]),
        tf.transpose(x),
        tf.concat([x, x], 1),
        tf.split(x, 2, 1)[1],
        tf.split(x, [1, 3], 1)[1],
        tf.unstack(x, axis=1)[2],
        x[1:, ::-2],
        x[..., None, 1],
        tf.pad(x, [[1, 1], [0, 2]], "REFLECT"),
        tf.one_hot([1, 0], 3, on_value=5.0),
        tf.where(x > 0),
        tf.where(x > 0, x, -x),
        tf.gather(x, [1, 0], axis=1),
        tf.gather_nd(x, [[0, 1]]),
        tf.tile(x, [2, 1]),
        tf.einsum("ij,kj->ik", x, x),
        tf.linalg.inv(tf.matmul(x, x, transpose_b=True) + 10 * tf.eye(tf.shape(x)[0])),
        tf.reduce_logsumexp(x, 1),
        tf.norm(x),
        tf.clip_by_norm(x, 1.0),
        tf.unique([1, 2, 1])[1],
        tf.segment_sum(x, [0, 0, 1]),
        tf.nn.leaky_relu(x),
        tf.nn.selu(x),
        tf.nn.crelu(x),
        tf.cast(x, tf.int32),
        tf.floormod(tf.cast(x * 10, tf.int32), 3),
        tf.squeeze(tf.expand_dims(x, 0)),
        tf.dynamic_stitch([[0, 2], [1]], [x[:2], x[2:]]),
        tf.image.resize_bilinear(tf.reshape(x[:2], [1, 2, 4, 1]), [4, 6]),
        tf.nn.l2_normalize(x, 1),
        tf.sequence_mask([1, 3]),
        tf.linspace(0.0, 1.0, 5),
        tf.range(1, 10, 3),
        tf.bitwise.bitwise_and([5, 6], [3, 3]),
        tf.math.erf(x),
        tf.confusion_matrix([1, 2], [1, 1]),
        tf.nn.log_softmax(x),
        tf.broadcast_to(x[:1], [2, 4]),
        tf.linalg.band_part(tf.matmul(x, x, transpose_a=True), 1, 0),
        tf.abs(tf.signal.rfft(x)),
        tf.nn.moments(x, [0])[1],
        tf.round(x * 2),
        tf.batch_to_space_nd(tf.reshape(x[:1], [4, 1, 1, 1]), [2, 2], [[0, 0], [0, 0]]),
        tf.matrix_diag(x),
        tf.scatter_nd([[1], [3]], [5.0, 6.0], [5]),
        tf.nn.lrn(tf.reshape(x[:2], [1, 2, 1, 4])),
        tf.svd(x, compute_uv=False),
    ]
    return {x: normal(3, 4)}, found, None


def gradients():
    """Build gradients, of broadcast shapes that are known when they run."""
    a = tf.placeholder(tf.float32, [None, 3], "a")
    b = tf.placeholder(tf.float32, [3], "b")
    z = tf.sigmoid(a + b) * tf.tanh(a) * tf.sqrt(tf.abs(a) + 1) + tf.maximum(a, b)
    z += tf.concat([a, a], 1)[:, 1:4] * tf.nn.softplus(a) / b
    other = tf.reduce_mean(tf.pow(a, 2) + tf.rsqrt(tf.square(b) + 1), 1)
    found = tf.gradients([z, other], [a, b])
    rows = tf.gradients(tf.gather(a[:, ::2], [0, 1]), a)
    return {a: normal(4, 3), b: normal(3)}, [*found, tf.convert_to_tensor(rows[0])], None


train = tf.train
OPTIMIZERS = {
    "sgd": lambda: train.GradientDescentOptimizer(0.1),
    "nesterov": lambda: train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "adam": lambda: train.AdamOptimizer(0.01),
    "adagrad": lambda: train.AdagradOptimizer(0.1),
    "adadelta": lambda: train.AdadeltaOptimizer(0.5),
    "rmsprop": lambda: train.RMSPropOptimizer(0.01, momentum=0.5, centered=False),
    "centered": lambda: train.RMSPropOptimizer(0.01, centered=True),
}
for key, made in OPTIMIZERS.items():
    model("mlp_" + key, mlp(made), resource=key in ("adam", "centered"))
model("conv", conv)
model("conv_resource", conv, resource=True)
model("conv_inference", conv_inference)
for key, built in (("rnn", rnn), ("loops", loops), ("state", state)):
    model(key, built)
    model(key + "_functions", built, resource=True, functions=True)
model("state_resource", state, resource=True)
model("decoder", decoder)
model("embeddings", embeddings)
model("embeddings_resource", embeddings, resource=True)
model("trained_embedding", trained_embedding)
model("trained_embedding_resource", trained_embedding, resource=True)
model("queue", queue)
model("text", text)
model("arrays", arrays)
model("gradients", gradients)
ARCHIVE.close()
shutil.rmtree(FOLDER)
