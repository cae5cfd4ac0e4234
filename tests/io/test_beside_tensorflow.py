"""Files go both ways between Headrace and TensorFlow, where a Python with TensorFlow is given.

``TENSORFLOW_PYTHON=/path/to/python pytest tests/io/test_beside_tensorflow.py`` runs these with
TensorFlow 1.15 or 2.
"""

from __future__ import annotations

import json
import os
import subprocess

import pytest

import headrace as hr
from headrace_io.records import read_records

PYTHON = os.environ.get("TENSORFLOW_PYTHON", "")
pytestmark = pytest.mark.skipif(not PYTHON, reason="TENSORFLOW_PYTHON names no Python")

ROWS = [
    {"a": [1, -(2**63), 2**63 - 1], "b": [1.5, -0.25], "c": ["x", "\xff\x00" * 100]},
    {"a": [], "b": [0.0] * 1000},
    {"c": [""]},
]

# Contexts and lists of features.
SEQUENCES = [
    [
        {"length": [2], "name": ["caf\xe9"]},
        {"words": [["a", "b"], ["\xff\x00"]], "x": [[0.5], [-2.0]]},
    ],
    [{}, {"words": [], "ids": [[1, -(2**63)], [], [300]]}],
    [{"length": []}, {}],
]

# Writes rows as examples, or reads them back, with TensorFlow.
PROGRAM = """
import json, sys
import tensorflow as tf
mode, path, compression = sys.argv[1:4]
train, io = tf.train, tf.io
def feature(values):
    if values and isinstance(values[0], str):
        data = [v.encode("latin-1") for v in values]
        return train.Feature(bytes_list=train.BytesList(value=data))
    if values and isinstance(values[0], float):
        return train.Feature(float_list=train.FloatList(value=values))
    return train.Feature(int64_list=train.Int64List(value=values))
def values(feature):
    kind = feature.WhichOneof("kind")
    found = list(getattr(feature, kind).value) if kind else []
    return [v.decode("latin-1") if isinstance(v, bytes) else v for v in found]
def sequence(row):
    lists = {k: train.FeatureList(feature=[feature(v) for v in s]) for k, s in row[1].items()}
    return train.SequenceExample(
        context=train.Features(feature={k: feature(v) for k, v in row[0].items()}),
        feature_lists=train.FeatureLists(feature_list=lists),
    )
if mode == "write sequences":
    with io.TFRecordWriter(path, compression) as writer:
        for row in json.load(sys.stdin):
            writer.write(sequence(row).SerializeToString())
elif mode == "read sequences":
    rows = []
    for record in tf.compat.v1.python_io.tf_record_iterator(path, compression):
        read = train.SequenceExample.FromString(record)
        context, lists = read.context.feature, read.feature_lists.feature_list
        steps = {k: [values(one) for one in lists[k].feature] for k in lists}
        rows.append([{k: values(context[k]) for k in context}, steps])
    json.dump(rows, sys.stdout)
elif mode == "write":
    with io.TFRecordWriter(path, compression) as writer:
        for row in json.load(sys.stdin):
            made = {k: feature(v) for k, v in row.items()}
            writer.write(train.Example(features=train.Features(feature=made)).SerializeToString())
else:
    rows = []
    for record in tf.compat.v1.python_io.tf_record_iterator(path, compression):
        read = train.Example.FromString(record).features.feature
        rows.append({k: values(read[k]) for k in read})
    json.dump(rows, sys.stdout)
"""


def tensorflow(mode, path, compression, given=""):
    done = subprocess.run(
        [PYTHON, "-W", "ignore", "-c", PROGRAM, mode, str(path), compression],
        input=given,
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def feature(values):
    if values and isinstance(values[0], str):
        data = [value.encode("latin-1") for value in values]
        return hr.io.Feature(bytes_list=hr.io.BytesList(value=data))
    if values and isinstance(values[0], float):
        return hr.io.Feature(float_list=hr.io.FloatList(value=values))
    return hr.io.Feature(int64_list=hr.io.Int64List(value=values))


@pytest.mark.parametrize("compression", ["", "ZLIB", "GZIP"])
def test_tensorflow_reads_what_we_write(tmp_path, compression):
    path = tmp_path / "ours"
    with hr.io.TFRecordWriter(path, compression) as writer:
        for row in ROWS:
            made = {name: feature(values) for name, values in row.items()}
            features = hr.io.Features(feature=made)
            writer.write(hr.io.Example(features=features).SerializeToString())
    assert json.loads(tensorflow("read", path, compression)) == ROWS


@pytest.mark.parametrize("compression", ["", "ZLIB", "GZIP"])
def test_we_read_what_tensorflow_writes(tmp_path, compression):
    path = tmp_path / "theirs"
    tensorflow("write", path, compression, json.dumps(ROWS))
    records = [record for _, _, record in read_records(path, compression)]
    kinds = {"a": hr.int64, "b": hr.float32, "c": hr.string}
    parsed = hr.parse_example(records, {k: hr.VarLenFeature(kind) for k, kind in kinds.items()})
    with hr.Session() as session:
        found = session.run(parsed)
    for name, value in found.items():
        rows = [[] for _ in ROWS]
        for (row, _), item in zip(value.indices, value.values.tolist(), strict=True):
            rows[row].append(item.decode("latin-1") if isinstance(item, bytes) else item)
        assert rows == [row.get(name, []) for row in ROWS]


def sequence(context, lists):
    made = {k: hr.io.FeatureList(feature=[feature(v) for v in s]) for k, s in lists.items()}
    return hr.io.SequenceExample(
        context=hr.io.Features(feature={k: feature(v) for k, v in context.items()}),
        feature_lists=hr.io.FeatureLists(feature_list=made),
    )


def test_tensorflow_reads_the_sequences_that_we_write(tmp_path):
    path = tmp_path / "ours"
    with hr.io.TFRecordWriter(path) as writer:
        for context, lists in SEQUENCES:
            writer.write(sequence(context, lists).SerializeToString())
    assert json.loads(tensorflow("read sequences", path, "")) == SEQUENCES


def test_we_read_the_sequences_that_tensorflow_writes(tmp_path):
    path = tmp_path / "theirs"
    tensorflow("write sequences", path, "", json.dumps(SEQUENCES))
    records = [record for _, _, record in read_records(path)]
    context, lists = hr.parse_single_sequence_example(
        records[0],
        {"length": hr.FixedLenFeature([], hr.int64), "name": hr.VarLenFeature(hr.string)},
        {"words": hr.VarLenFeature(hr.string), "x": hr.FixedLenSequenceFeature([], hr.float32)},
    )
    ids = hr.parse_single_sequence_example(
        records[1], sequence_features={"ids": hr.VarLenFeature(hr.int64)}
    )[1]["ids"]
    with hr.Session() as session:
        assert session.run(context["length"]) == 2
        assert session.run(context["name"].values).tolist() == ["caf\xe9".encode("latin-1")]
        assert session.run(lists["x"]).tolist() == [0.5, -2.0]
        words = session.run(lists["words"])
        assert words.indices.tolist() == [[0, 0], [0, 1], [1, 0]]
        assert words.values.tolist() == [b"a", b"b", b"\xff\x00"]
        found = session.run(ids)
        assert found.indices.tolist() == [[0, 0], [0, 1], [2, 0]]
        assert found.values.tolist() == [1, -(2**63), 300]
