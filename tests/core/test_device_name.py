"""Device names: parsing, merging and matching."""

from __future__ import annotations

import pytest

from headrace.device_name import DeviceName
from headrace.errors import PlacementError


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        ("/job:ps/task:0/device:cpu:0", "/job:ps/task:0/device:cpu:0"),
        ("/cpu:0", "/device:cpu:0"),
        ("cuda", "/device:cuda"),
        ("/gpu:1", "/device:cuda:1"),
        ("/device:GPU:0", "/device:cuda:0"),
        ("/job:worker", "/job:worker"),
        ("/job:worker/task:*", "/job:worker"),
        ("/device:cpu:*", "/device:cpu"),
        ("/job:a/replica:0/task:1/device:GPU:0", "/job:a/task:1/device:cuda:0"),
        ("/replica:0/task:1", "/task:1"),
        ("/job:a/replica:*", "/job:a"),
        ("replica:3", ""),
        (None, ""),
    ],
)
def test_parse_and_print(text, canonical):
    name = DeviceName.parse(text)
    assert str(name) == canonical
    assert DeviceName.parse(canonical) == name


@pytest.mark.parametrize("text", ["/job:", "/task:x", "cpu:0:1", "/job:ps//task:0", "??", 7])
def test_parse_refuses(text):
    with pytest.raises(PlacementError, match="device"):
        DeviceName.parse(text)


@pytest.mark.parametrize(
    ("outer", "inner", "merged"),
    [
        ("/job:ps/task:1", "/cpu:0", "/job:ps/task:1/device:cpu:0"),
        ("/job:ps/task:1", "/job:worker", "/job:worker"),
        ("/job:ps/task:1", "/job:ps", "/job:ps/task:1"),
        ("/job:ps/task:1/cpu:0", "/job:ps/cpu", "/job:ps/task:1/device:cpu:0"),
        ("/job:ps/task:1", "/job:ps/task:2", "/job:ps/task:2"),
        ("/cuda:1", "/cpu", "/device:cpu"),
        ("/cpu:3", "/cpu", "/device:cpu:3"),
        ("/cpu:3", "/cpu:1", "/device:cpu:1"),
        ("/job:ps", "/task:2", "/job:ps/task:2"),
        ("/cuda:1", "", "/device:cuda:1"),
    ],
)
def test_inner_request_overrides(outer, inner, merged):
    assert str(DeviceName.parse(outer).merged(DeviceName.parse(inner))) == merged


def test_intersection_and_match():
    partial = DeviceName.parse("/job:ps/cpu")
    full = DeviceName.parse("/job:ps/task:0/device:cpu:0")
    assert partial.matches(full)
    assert partial.intersected(DeviceName.parse("/task:3")) == DeviceName("ps", 3, "cpu")
    assert partial.intersected(DeviceName.parse("/job:worker")) is None
    assert not DeviceName.parse("/cuda").matches(full)
    assert full.is_full
    assert not partial.is_full
