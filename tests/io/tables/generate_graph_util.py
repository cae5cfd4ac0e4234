"""What TensorFlow 1.15 makes of small graphs with ``tf.graph_util``; run where it is installed.

python generate_graph_util.py > graph_util.json
"""

import json

import tensorflow.compat.v1 as tf


def nodes(graph_def):
    """Return names, types and inputs of nodes."""
    return [[node.name, node.op, list(node.input)] for node in graph_def.node]


def program():
    """Build a small program of ops that both have in one form."""
    a = tf.constant([1.0, 2.0], name="a")
    b = tf.identity(a, name="b")
    with tf.control_dependencies([b.op]):
        c = tf.identity(a, name="c")
    d = tf.identity(tf.identity(c, name="d0"), name="d")
    with tf.control_dependencies([tf.check_numerics(d, "m", name="check")]):
        e = tf.exp(d, name="e")
    with tf.colocate_with(b.op):
        f = tf.tanh(e, name="f")
    with tf.device("/cpu:0"):
        tf.no_op(name="g")
    tf.identity(f, name="out")


with tf.Graph().as_default() as graph:
    program()
    whole = graph.as_graph_def()
util = tf.graph_util
table = {"nodes": nodes(whole), "extracted": {}, "removed": {}}
for wanted in (["c"], ["f"], ["out", "g"], ["check"]):
    table["extracted"][",".join(wanted)] = nodes(util.extract_sub_graph(whole, wanted))
for kept in ("", "out", "d0,out", "check"):
    table["removed"][kept] = nodes(util.remove_training_nodes(whole, kept.split(",")))
imported = {}
for name in (None, "", "x", "x/y"):
    with tf.Graph().as_default() as graph:
        tf.constant(1.0, name="a")
        for _ in range(2):
            tf.import_graph_def(whole, {"a:0": tf.constant([3.0, 4.0], name="given")}, name=name)
        imported[str(name)] = [op.name for op in graph.get_operations()]
table["imported"] = imported
print(json.dumps(table, sort_keys=True))
