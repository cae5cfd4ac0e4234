"""Make the tables beside this file: bundles that TensorFlow 1.15.5 wrote, and what it reads there.

Run with a Python that has TensorFlow 1.15: ``python tests/train/bundles/generate_bundles.py``.
The bundles hold numbers that this program makes; their files are in the tables as Base64 of what
zlib makes of them.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
import zlib

import numpy as np
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = (
    *("float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64"),
    *("uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128"),
)
QUANTIZED = {"qint8": "int8", "quint8": "uint8", "qint16": "int16", "quint16": "uint16"}


def packed(data):
    return base64.b64encode(zlib.compress(data, 9)).decode()


def bits(dtype, shape):
    """Return an array of random bits; of bools and floats, also those that are odd numbers."""
    count = int(np.prod(shape))
    random = np.random.RandomState(sum(map(ord, dtype.name)) + count)
    if dtype == tf.bool:
        return random.rand(*shape) < 0.5
    raw = random.bytes(count * dtype.size)
    return np.frombuffer(raw, dtype.as_numpy_dtype).reshape(shape)


def everything():
    """Return the tensors of the large bundle by name."""
    tensors = {}
    for name in DTYPES:
        dtype = getattr(tf, name)
        for label, shape in (("scalar", ()), ("empty", (2, 0, 3)), ("cube", (2, 1, 3))):
            tensors[f"{name}/{label}"] = tf.constant(bits(dtype, shape), dtype)
    for name, stored in QUANTIZED.items():
        whole = tf.constant(bits(getattr(tf, stored), (3,)), stored)
        tensors[name] = tf.bitcast(whole, getattr(tf, name))
    tensors["qint32"] = tf.bitcast(tf.constant([-1, 2**31 - 1]), tf.qint32)
    tensors["string/scalar"] = tf.constant(b"one \0 string\0")
    tensors["string/empty"] = tf.constant([], tf.string, shape=[0, 2])
    tensors["string/many"] = tf.constant([[b"", b"\0"], [b"ab" * 100, "\u00e9".encode()]])
    # Names that share their beginnings, more than one run of them, and odd ones.
    for number in range(40):
        tensors[f"a/deep/scope/weights_{number:03d}"] = tf.constant(number)
    tensors["\u00e9 name with blanks:0"] = tf.constant(1.5)
    return tensors


def write_everything(prefix):
    tensors = everything()
    parts = [tf.range(100), tf.range(200)]
    with tf.Session() as session:
        save = tf.raw_ops.SaveV2(
            prefix=prefix,
            tensor_names=[*tensors, "odd\0name", "odd\0name"],
            shape_and_slices=[""] * len(tensors) + ["300 0,100", "300 100,200"],
            tensors=[*tensors.values(), *parts],
        )
        session.run(save)


def write_parts(prefix):
    """Write partitioned variables, with parts that begin far on, by two devices in two files."""
    with tf.device("/cpu:0"):
        with tf.variable_scope("rows", partitioner=tf.fixed_size_partitioner(3)):
            rows = tf.get_variable(
                "table",
                [7, 3],
                initializer=lambda shape, dtype, partition_info=None: (
                    tf.cumsum(tf.ones(shape), axis=0) + float(partition_info.var_offset[0])
                ),
            )
        with tf.variable_scope("far", partitioner=tf.fixed_size_partitioner(2)):
            far = tf.get_variable("bytes", [9000], tf.uint8, tf.zeros_initializer())
        with tf.variable_scope("far", partitioner=tf.fixed_size_partitioner(4)):
            near = tf.get_variable("near", [400], tf.int8, tf.ones_initializer())
    with tf.device("/cpu:1"):
        with tf.variable_scope("columns", partitioner=tf.fixed_size_partitioner(2, axis=1)):
            tf.get_variable("table", [2, 5], tf.float64, tf.random_normal_initializer(seed=3))
        tf.Variable([b"x", b"yz"], name="words")
        tf.Variable(np.int64(7), name="global_step")
    with tf.Session(config=tf.ConfigProto(device_count={"CPU": 2})) as session:
        session.run(tf.global_variables_initializer())
        session.run([part.assign(part + 1) for part in near])
        saver = tf.train.Saver(sharded=True)
        saver.save(session, prefix, write_meta_graph=False, write_state=False)
    del rows, far


def described(prefix):
    """Return the files of a bundle and what TensorFlow reads in them."""
    folder, base = os.path.split(prefix)
    files = {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as stream:
            files[name[len(base) :]] = packed(stream.read())
    reader = tf.train.NewCheckpointReader(prefix)
    dtypes = reader.get_variable_to_dtype_map()
    tensors = {}
    for name, shape in sorted(reader.get_variable_to_shape_map().items()):
        value = reader.get_tensor(name)
        array = np.asarray(value, object if dtypes[name] == tf.string else None)
        assert list(array.shape) == shape
        if dtypes[name] == tf.string:
            content = [item.hex() for item in array.ravel()]
        else:
            content = packed(array.tobytes())
        tensors[name] = [dtypes[name].name, shape, content, type(value).__name__]
    return {
        "files": files,
        "tensors": tensors,
        "debug_string": packed(reader.debug_string()),
    }


def main():
    found = {"provenance": "written by generate_bundles.py with TensorFlow " + tf.__version__}
    for name, write in (("everything", write_everything), ("parts", write_parts)):
        with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default():
            prefix = os.path.join(folder, "model")
            write(prefix)
            found[name] = described(prefix)
    with open(os.path.join(HERE, "bundles.json"), "w") as stream:
        json.dump(found, stream, indent=1, sort_keys=True)
        stream.write("\n")


if __name__ == "__main__":
    main()
