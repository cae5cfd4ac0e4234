"""Write small saved models with TensorFlow 1.15, and what they answer.

``python generate_saved_models.py saved_models.zip`` where TensorFlow 1.15 is installed. This
program made all that the archive holds.
"""

import json
import os
import shutil
import sys
import tempfile
import zipfile

import numpy as np
import tensorflow as tf

FOLDER = tempfile.mkdtemp()
ANSWERS = {}


def table_model(folder):
    """Write a model that looks words up in a file, and embeds them."""
    vocabulary = os.path.join(FOLDER, "words.txt")
    with open(vocabulary, "w") as file:
        file.write("a\nthe\ndog\n")
    words = tf.placeholder(tf.string, [None], "words")
    table = tf.contrib.lookup.index_table_from_file(vocabulary, default_value=0)
    ids = table.lookup(words)
    e = tf.get_variable("e", initializer=np.arange(6, dtype="f").reshape(3, 2))
    out = tf.nn.embedding_lookup(e, ids, name="out")
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        builder = tf.saved_model.Builder(folder)
        signature = tf.saved_model.predict_signature_def({"words": words}, {"ids": ids, "out": out})
        builder.add_meta_graph_and_variables(
            session,
            ["serve"],
            {"serving_default": signature},
            assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
            main_op=tf.tables_initializer(),
        )
        builder.save()
        given = ["dog", "cat", "the"]
        found = session.run({"ids": ids, "out": out}, {words: given})
    return {"words": given}, {key: value.tolist() for key, value in found.items()}


def simple(resource):
    """Return a writer of a model of one layer."""

    def write(folder):
        tf.get_variable_scope().set_use_resource(resource)
        tf.set_random_seed(1)
        x = tf.placeholder(tf.float32, [None, 2], "x")
        y = tf.layers.dense(x, 3, tf.nn.relu, bias_initializer=tf.ones_initializer())
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            tf.saved_model.simple_save(session, folder, {"x": x}, {"y": y})
            given = [[1.0, -2.0], [0.5, 3.0]]
            return {"x": given}, {"y": session.run(y, {x: given}).tolist()}

    return write


WRITERS = {"table": table_model, "simple": simple(False), "resource": simple(True)}
for name, write in WRITERS.items():
    tf.reset_default_graph()
    inputs, outputs = write(os.path.join(FOLDER, name))
    ANSWERS[name] = {"inputs": inputs, "outputs": outputs}
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as archive:
    entries = [("answers.json", json.dumps(ANSWERS).encode())]
    for name in WRITERS:
        for root, _, files in sorted(os.walk(os.path.join(FOLDER, name))):
            for file in sorted(files):
                with open(os.path.join(root, file), "rb") as stream:
                    path = os.path.relpath(os.path.join(root, file), FOLDER)
                    entries.append((path, stream.read()))
    for path, content in entries:
        entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        archive.writestr(entry, content)
shutil.rmtree(FOLDER)
