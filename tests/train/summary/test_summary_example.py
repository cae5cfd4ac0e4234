"""The example with summaries: what it writes is read back, by Headrace and by TensorBoard."""

from __future__ import annotations

from pathlib import Path

import pytest

import headrace as hr
from tests.children import run_python

pytestmark = [
    pytest.mark.needs("backend-cpu"),
    pytest.mark.timeout(100),
    pytest.mark.usefixtures("no_races"),
]

EXAMPLE = Path(__file__).parents[3] / "examples" / "mnist_summaries.py"
TAGS = [
    *("input/images/image/0", "input/images/image/1", "input/images/image/2"),
    *("hidden/summaries/mean", "hidden/summaries/stddev", "hidden/summaries/histogram"),
    *("output/summaries/mean", "output/summaries/stddev", "output/summaries/histogram"),
    *("cross_entropy", "accuracy"),
]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the example writes to."""
    folder = tmp_path_factory.mktemp("logs")
    # The digits that come with Headrace, also where MNIST is there.
    done = run_python(
        *("-W", "error", EXAMPLE, f"--logdir={folder}", "--steps=60"),
        env={"HEADRACE_DATA": None},
        timeout_s=80.0,
    )
    assert float(done.stdout.split("test accuracy ")[1].split()[0]) > 0.8
    return folder


def test_each_step_tells_of_everything(logs):
    (path,) = (logs / "train").iterdir()
    events = list(hr.train.summary_iterator(path))
    kinds = [event.WhichOneof("what") for event in events[:3]]
    assert kinds == ["file_version", "graph_def", "meta_graph_def"]
    assert [event.step for event in events[3:]] == list(range(61))
    assert all([v.tag for v in event.summary.value] == TAGS for event in events[3:])
    losses = [v.simple_value for e in events for v in e.summary.value if v.tag == "cross_entropy"]
    assert losses[-1] < 0.5 * losses[0]


def test_tensorboard_reads_the_files(logs):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    read = accumulator.EventAccumulator(str(logs / "train"), size_guidance={"scalars": 0})
    read.Reload()
    tags = read.Tags()
    assert tags["scalars"] == [t for t in TAGS if "image" not in t and "histogram" not in t]
    assert tags["histograms"] == [t for t in TAGS if t.endswith("histogram")]
    assert tags["images"] == [t for t in TAGS if "image" in t]
    assert [scalar.step for scalar in read.Scalars("accuracy")] == list(range(61))
    assert read.Scalars("accuracy")[-1].value > 0.8
    weights = read.Histograms("hidden/summaries/histogram")[-1].histogram_value
    assert weights.num == 64 * 64
    image = read.Images("input/images/image/0")[-1]
    assert (image.width, image.height) == (8, 8)
    nodes = {node.name: node for node in read.Graph().node}
    assert nodes["hidden/MatMul"].input[0] == "input/x"
    assert {"input", "hidden", "output", "loss"} <= {name.split("/")[0] for name in nodes}
