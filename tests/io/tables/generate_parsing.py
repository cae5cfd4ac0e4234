"""Make ``parsing.json``: what TensorFlow 1.15 makes of examples.

Run with a Python that has TensorFlow 1.15: ``python generate_parsing.py``, in this folder. Bytes
are written as text in Latin-1. A feature is written as the name of its description and the
arguments, dtypes as their names. What makes TensorFlow 1.15 crash (bytes that are no message) is
not in the table.
"""

import json

import tensorflow as tf

train = tf.train


def text(data):
    return data.decode("latin-1")


def feature(values):
    if not values:
        return train.Feature()
    if isinstance(values[0], float):
        return train.Feature(float_list=train.FloatList(value=values))
    if isinstance(values[0], int):
        return train.Feature(int64_list=train.Int64List(value=values))
    return train.Feature(bytes_list=train.BytesList(value=values))


def features(values):
    return train.Features(feature={name: feature(v) for name, v in values.items()})


def example(**values):
    return train.Example(features=features(values)).SerializeToString()


def sequence(context, **lists):
    made = {
        name: train.FeatureList(feature=[feature(step) for step in steps])
        for name, steps in lists.items()
    }
    return train.SequenceExample(
        context=features(context), feature_lists=train.FeatureLists(feature_list=made)
    ).SerializeToString()


def field(number, content):
    return bytes([number << 3 | 2, len(content)]) + content


def of_a(content):
    return field(1, field(1, field(1, b"a") + field(2, content)))


ONE = example(a=[1, 2], b=[1.5], c=[b"x", b"y"])
TWO = example(a=[3, 4], b=[2.5], c=[b"z"])
NONE = example()
POINTS = example(i=[3, 1], v=[1.5, 2.5], j=[0, 1])
LARGE = example(a=[-1, -(2**63), 2**63 - 1, 0, 127, 128, 300, 2**35])
UNPACKED = of_a(field(3, b"\x08\x04\x08\x05"))
EMPTY = of_a(field(3, b""))
NO_KIND = of_a(b"")
Q1 = sequence({"c": [5], "d": [b"p", b"q"]}, t=[[1, 2], [3, 4], [5, 6]], w=[[b"a"], [b"b", b"c"]])
Q2 = sequence({"c": [6]}, t=[[7, 8]], w=[])
Q0 = sequence({})

FIXED, VAR, SEQ, SPARSE = (
    *("FixedLenFeature", "VarLenFeature"),
    *("FixedLenSequenceFeature", "SparseFeature"),
)
A2 = {"a": [FIXED, [2], "int64"]}
EXAMPLES = [
    ([ONE, TWO], {**A2, "b": [FIXED, [], "float32"]}),
    ([ONE, NONE], A2),
    ([ONE, NONE], {"a": [FIXED, [2], "int64", [7, 8]], "b": [FIXED, [], "float32", -1.0]}),
    ([ONE, NONE], {"a": [FIXED, [2], "int64", 7]}),
    ([ONE, NONE], {"a": [FIXED, [2], "int64", [7, 7, 7]]}),
    ([ONE], {"c": [FIXED, [2, 1], "string", [["p"], ["q"]]], "a": [FIXED, [1, 2], "int64"]}),
    ([ONE], {"a": [FIXED, [2], "float32"]}),
    ([ONE], {"a": [FIXED, [3], "int64"]}),
    ([ONE], {"a": [FIXED, [3], "int32"]}),
    ([ONE], {"a": [FIXED, [2], None]}),
    ([ONE], {"a": [FIXED, None, "int64"]}),
    ([ONE], {"a": [FIXED, [None], "int64"]}),
    ([ONE, NONE, TWO], {"c": [VAR, "string"], "a": [VAR, "int64"], "n": [VAR, "float32"]}),
    ([ONE], {"c": [VAR, "int64"]}),
    ([ONE], {"c": [VAR, "int32"]}),
    ([ONE, NONE, TWO], {"c": [SEQ, [], "string", True], "a": [SEQ, [2], "int64", True, -1]}),
    ([ONE, NONE, TWO], {"c": [SEQ, [], "string", True, "pad"], "b": [SEQ, [1], "float32", True]}),
    ([ONE], {"c": [SEQ, [], "string"]}),
    ([ONE], {"c": [SEQ, [3], "string", True]}),
    ([POINTS, NONE, POINTS], {"s": [SPARSE, "i", "v", "float32", 5]}),
    ([POINTS], {"s": [SPARSE, "i", "v", "float32", 5, True]}),
    ([POINTS], {"s": [SPARSE, ["j", "i"], "v", "float32", [2, 5]]}),
    ([POINTS], {"s": [SPARSE, "i", "v", "float32", 5], "i": [VAR, "int64"]}),
    ([POINTS], {"s": [SPARSE, "i", "v", "float32", 5], "i": [VAR, "float32"]}),
    ([example(i=[1], v=[1.0, 2.0])], {"s": [SPARSE, "i", "v", "float32", 5]}),
    ([], {**A2, "c": [VAR, "string"], "q": [SEQ, [], "string", True]}),
    ([LARGE], {"a": [FIXED, [8], "int64"]}),
    ([LARGE, ONE], {"a": [VAR, "int64"]}),
    ([UNPACKED], A2),
    ([ONE + example(a=[9, 9])], {**A2, "b": [FIXED, [], "float32"]}),
    ([EMPTY], {"a": [FIXED, [1], "int64", [3]]}),
    ([EMPTY], {"a": [VAR, "int64"]}),
    ([NO_KIND], {"a": [FIXED, [1], "int64", [3]]}),
    ([NO_KIND], {"a": [VAR, "float32"]}),
    ([ONE + field(9, b"abc")], {"b": [FIXED, [], "float32"]}),
]
SINGLES = [
    (ONE, {**A2, "b": [FIXED, [], "float32"], "c": [VAR, "string"]}),
    (ONE, {"c": [SEQ, [], "string", True], "a": [SEQ, [1], "int64", True]}),
    (NONE, {"c": [SEQ, [], "string", True], "a": [SEQ, [1], "int64", True]}),
    (NONE, A2),
    (POINTS, {"s": [SPARSE, "i", "v", "float32", 5]}),
]
C = {"c": [FIXED, [], "int64"]}
C9 = {"c": [FIXED, [], "int64", 9]}
T = {"t": [SEQ, [2], "int64"]}
SEQUENCES = [
    ([Q1, Q2], {**C, "d": [VAR, "string"]}, {**T, "w": [VAR, "string"]}),
    ([Q1, Q0], C9, T),
    ([Q1, Q0], C, {}),
    ([Q1, Q0], C9, {"t": [SEQ, [2], "int64", True], "w": [VAR, "string"]}),
    ([Q1], {}, {"t": [SEQ, [3], "int64"]}),
    ([Q1], {}, {"t": [SEQ, [2], "float32"]}),
    ([Q1], {}, {"t": [VAR, "float32"]}),
    ([Q1], {}, {"t": [FIXED, [2], "int64"]}),
    ([Q1], {"c": [SEQ, [], "int64", True]}, {}),
    ([sequence({}, t=[[1], [2]])], {}, {"t": [SEQ, [], "int64"]}),
]
SINGLE_SEQUENCES = [
    (Q1, {**C, "d": [VAR, "string"]}, {**T, "w": [VAR, "string"]}),
    (Q0, {}, T),
    (Q0, C, {}),
    (Q0, {"c": [FIXED, [], "int64", 3]}, {"t": [SEQ, [2], "int64", True], "w": [VAR, "string"]}),
    (Q1, {}, {"t": [SEQ, [3], "int64"]}),
]


def described(wanted):
    made = {}
    for name, (kind, *arguments) in wanted.items():
        at = {FIXED: 1, VAR: 0, SEQ: 1, SPARSE: 2}[kind]
        if arguments[at] is not None:
            arguments[at] = getattr(tf, arguments[at])
        made[name] = getattr(tf.io, kind)(*arguments)
    return made


def plain(value):
    if isinstance(value, tf.compat.v1.SparseTensorValue):
        return {"sparse": [plain(part) for part in value]}
    value = tf.compat.v1.make_ndarray(tf.make_tensor_proto(value))
    listed = value.ravel().tolist()
    listed = [text(v) if isinstance(v, bytes) else v for v in listed]
    return {"shape": list(value.shape), "values": listed}


def outcome(session, function, serialized, *wanted):
    try:
        found = function(tf.constant(serialized, tf.string), *(described(part) for part in wanted))
        found = session.run(found)
    except tf.errors.OpError as error:
        return {"error": type(error).__name__}
    except (TypeError, ValueError) as error:
        return {"error": type(error).__name__}
    parts = found if isinstance(found, tuple) else [found]
    return {"parts": [{name: plain(v) for name, v in part.items()} for part in parts]}


def rows(session, function, table):
    name = function.__name__
    for serialized, *wanted in table:
        given = [text(s) for s in serialized] if isinstance(serialized, list) else text(serialized)
        found = outcome(session, function, serialized, *wanted)
        yield {"call": name, "serialized": given, "wanted": wanted, **found}


def main():
    assert tf.__version__.startswith("1.15"), tf.__version__
    with tf.compat.v1.Session() as session:
        made = [
            *rows(session, tf.compat.v1.parse_example, EXAMPLES),
            *rows(session, tf.compat.v1.parse_single_example, SINGLES),
            *rows(session, tf.io.parse_sequence_example, SEQUENCES),
            *rows(session, tf.io.parse_single_sequence_example, SINGLE_SEQUENCES),
        ]
    with open("parsing.json", "w") as file:
        file.write('{"made by": "TensorFlow %s", "rows": [\n' % tf.__version__)
        file.write(",\n".join(json.dumps(row) for row in made))
        file.write("\n]}\n")


if __name__ == "__main__":
    main()
