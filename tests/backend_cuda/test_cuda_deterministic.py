"""T0: what GPUs leave to chance is refused where equal bits are asked for."""

from __future__ import annotations

import json

import numpy as np
import pytest

import headrace as hr
from headrace.errors import DeterminismError

FIXED = hr.Config(deterministic=True)


@pytest.mark.usefixtures("pretended_gpus")
def test_a_sum_by_segments_of_floats_is_refused_on_a_gpu_and_not_on_the_cpu():
    with hr.Graph().as_default(), hr.Session(config=FIXED) as session:
        x = hr.placeholder(hr.float32, [None])
        ids = hr.constant([0, 0, 1])
        far = hr.unsorted_segment_sum(x, ids, 2, name="far")
        with hr.device("cpu:0"):
            near = hr.unsorted_segment_sum(x, ids, 2, name="near")
        feed = {x: [1.0, 2.0, 3.0]}
        np.testing.assert_array_equal(session.run(near, feed), [3.0, 3.0])
        wanted = r"UnsortedSegmentSum 'far': it adds up in an order that .*cuda:0 leaves to chance"
        with pytest.raises(DeterminismError, match=wanted):
            session.run(far, feed)


@pytest.mark.usefixtures("pretended_gpus")
def test_whole_numbers_add_up_the_same_in_every_order():
    with hr.Graph().as_default(), hr.Session(config=FIXED) as session:
        x = hr.placeholder(hr.int32, [None])
        total = hr.unsorted_segment_sum(x, hr.constant([0, 0, 1]), 2)
        np.testing.assert_array_equal(session.run(total, {x: [1, 2, 3]}), [3, 3])


@pytest.mark.usefixtures("pretended_gpus")
def test_a_trace_has_a_track_for_each_device(tmp_path):
    path = tmp_path / "trace.json"
    with hr.Graph().as_default(), hr.Session(config=hr.Config(trace=path)) as session:
        x = hr.placeholder(hr.float32, [2])
        with hr.device("cpu:0"):
            y = hr.exp(x) * 2.0
        session.run(hr.reduce_sum(y), {x: [0.0, 0.0]})
    found = json.loads(path.read_text())["traceEvents"]
    tracks = {e["args"]["name"]: e["pid"] for e in found if e["name"] == "process_name"}
    devices = {name.rpartition("device:")[2]: pid for name, pid in tracks.items()}
    assert {"cpu:0", "cuda:0", "session"} <= devices.keys()
    on = {e["pid"] for e in found if "ReduceSum" in e.get("args", {}).get("computes", "")}
    assert on == {devices["cuda:0"]}


@pytest.mark.usefixtures("pretended_gpus")
def test_numbers_are_checked_on_the_device_that_makes_them():
    config = hr.Config(check_numerics=True)
    with hr.Graph().as_default(), hr.Session(config=config) as session:
        x = hr.placeholder(hr.float32, [None], name="x")
        with pytest.raises(hr.errors.NumericsError, match="Log makes 1 infinity"):
            session.run(hr.log(x), {x: [0.0, 1.0]})
