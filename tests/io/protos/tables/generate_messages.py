"""Fields of TensorFlow 1.15's messages, and tensors as it writes them; run where it is installed.

python generate_messages.py > messages.json
"""

import json
import sys

import numpy as np
import tensorflow.compat.v1 as tf
from google.protobuf.descriptor import FieldDescriptor  # noqa: TID253 - TensorFlow has it
from tensorflow.core.example import example_pb2
from tensorflow.core.framework import reader_base_pb2, summary_pb2, variable_pb2
from tensorflow.core.protobuf import queue_runner_pb2, trackable_object_graph_pb2
from tensorflow.core.util import event_pb2

ROOTS = [
    *(event_pb2.Event, summary_pb2.SummaryDescription, tf.MetaGraphDef, tf.RunMetadata),
    *(example_pb2.Example, example_pb2.SequenceExample, reader_base_pb2.ReaderBaseState),
    *(variable_pb2.VariableDef, queue_runner_pb2.QueueRunnerDef),
    trackable_object_graph_pb2.TrackableObjectGraph,
]


def described(descriptor, found):
    """Add the fields of a message, and of those in it: name, number, type, repeated, oneof."""
    if descriptor.full_name in found:
        return
    fields = found[descriptor.full_name] = []
    for field in descriptor.fields:
        of = field.message_type or field.enum_type
        kind = of.full_name if of else field.type
        repeated = field.label == FieldDescriptor.LABEL_REPEATED
        oneof = field.containing_oneof.name if field.containing_oneof else ""
        fields.append([field.name, field.number, kind, repeated, oneof])
        if field.message_type:
            described(field.message_type, found)
        elif field.enum_type:
            values = {value.name: value.number for value in field.enum_type.values}
            found[field.enum_type.full_name] = values


VALUES = [
    ("float", 1.5, "float32"),
    ("floats", [1.5, -2.0, 3.25], "float32"),
    ("matrix", [[1, 2], [3, 4]], "int64"),
    ("none", [], "float64"),
    ("half", 0.1, "float16"),
    ("halves", [0.1, 0.2], "float16"),
    ("bfloat", 0.1, "bfloat16"),
    ("byte", 7, "uint8"),
    ("bools", [True, False], "bool"),
    ("bool", True, "bool"),
    ("complex", 1 + 2j, "complex64"),
    ("complexes", [1 + 2j, 3 - 1j], "complex128"),
    ("text", b"abc", "string"),
    ("texts", [[b"a"], [b""]], "string"),
]


def tensors():
    """Return tensors, each with the message that TensorFlow makes of it."""
    rows = []
    for name, value, dtype in VALUES:
        made = tf.make_tensor_proto(value, tf.as_dtype(dtype))
        rows.append(
            {
                "name": name,
                "value": repr(value),
                "dtype": dtype,
                "message": made.SerializeToString().hex(),
            }
        )
    filled = tf.make_tensor_proto([1.0, 2.0], tf.float32, [2, 2])
    rows.append(
        {
            "name": "filled",
            "value": "[1.0, 2.0]",
            "dtype": "float32",
            "shape": [2, 2],
            "message": filled.SerializeToString().hex(),
            "array": tf.make_ndarray(filled).tolist(),
        }
    )
    return rows


def graph():
    """Return the nodes of a graph."""
    with tf.Graph().as_default() as made:
        with tf.name_scope("layer"):
            a = tf.constant([[1.0, 2.0]], name="a")
            b = tf.placeholder(tf.float32, [2, None], name="b")
            with tf.control_dependencies([a.op]), tf.device("/device:CPU:0"):
                tf.matmul(a, b, transpose_b=True, name="c")
        return made.as_graph_def(add_shapes=True).SerializeToString(deterministic=True).hex()


def main():
    """Write the tables."""
    found = {}
    for root in ROOTS:
        described(root.DESCRIPTOR, found)
    table = {
        "tensorflow": tf.__version__,
        "messages": found,
        "tensors": tensors(),
        "graph": graph(),
    }
    json.dump(table, sys.stdout, separators=(",", ":"), sort_keys=True)
    print()


if __name__ == "__main__":
    np.seterr(all="raise")
    main()
