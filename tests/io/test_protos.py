"""Messages: examples in the wire format of TensorFlow."""

from __future__ import annotations

import pickle

import pytest

import headrace as hr

NAMES = [
    *("BytesList", "Example", "Feature", "FeatureList", "FeatureLists", "Features", "FloatList"),
    *("Int64List", "SequenceExample"),
]
# The example of one feature, "a", with the integer 3, serialized by TensorFlow 1.15.
WIRE = bytes.fromhex("0a0c0a0a0a016112051a030a0103")


def example(**features):
    return hr.io.Example(features=hr.io.Features(feature=features))


def integers(*values):
    return hr.io.Feature(int64_list=hr.io.Int64List(value=values))


def test_examples_have_tensorflows_wire_format():
    assert example(a=integers(3)).SerializeToString() == WIRE
    read = hr.io.Example.FromString(WIRE)
    assert read.features.feature["a"].int64_list.value == [3]
    assert read == example(a=integers(3))
    assert read.features.feature["a"].WhichOneof("kind") == "int64_list"


@pytest.mark.needs("train")
@pytest.mark.parametrize("name", NAMES)
def test_messages_are_found_under_train_and_io(name):
    assert getattr(hr.train, name) is getattr(hr.io, name)
    assert name in dir(hr.train)
    assert getattr(hr.train, name).DESCRIPTOR.name == name


def test_sequences_hold_lists_of_features():
    lists = hr.io.FeatureLists(
        feature_list={"s": hr.io.FeatureList(feature=[integers(1), integers(2, 3)])}
    )
    sequence = hr.io.SequenceExample(
        context=hr.io.Features(feature={"c": integers(4)}), feature_lists=lists
    )
    read = hr.io.SequenceExample.FromString(sequence.SerializeToString())
    steps = read.feature_lists.feature_list["s"].feature
    assert [list(step.int64_list.value) for step in steps] == [[1], [2, 3]]


def test_messages_are_pickled():
    made = example(a=integers(1, -2))
    assert pickle.loads(pickle.dumps(made)) == made


def test_values_of_other_kinds_are_refused():
    with pytest.raises(TypeError, match="int"):
        integers("three")


@pytest.mark.parametrize(
    ("sizes", "match"),
    [
        ([1] * 65, "a tensor has at most 64 axes, got 65"),
        ([2**31, 2**31], "one value stands for 67108864 elements at most"),
        ([2**62, 2**62], "one value stands for 67108864 elements at most"),
        ([2**27], r"has 134217728 elements, the message holds 1; one value stands"),
    ],
)
def test_a_message_of_a_few_bytes_claims_no_memory(sizes, match):
    tensor = hr.make_tensor_proto(1.0)
    for size in sizes:
        tensor.tensor_shape.dim.add(size=size)
    with pytest.raises(hr.errors.AttributeValueError, match=match):
        hr.make_ndarray(tensor)
    del tensor.float_val[:]
    with pytest.raises(hr.errors.AttributeValueError, match=r"at most"):
        hr.make_ndarray(tensor)
