"""Makes the pictures of one real step: builds a model, runs it, and draws it with our own command.

``python docs/_ext/headrace_step.py FOLDER`` leaves ``graph.svg``, ``memory.svg`` and
``timeline.svg`` there, and the latter two for narrow pages. The documentation's build calls it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import headrace as hr
from headrace.cli.main import main as headrace_command

BATCH = 50
WIDTHS = {"": "740", "-narrow": "350"}


def build() -> tuple[list[hr.Tensor], hr.Operation, hr.Tensor]:
    """Build a small convolutional network; return what is fed, its training step and its loss."""
    images = hr.placeholder(hr.float32, [None, 28, 28, 1], name="images")
    labels = hr.placeholder(hr.float32, [None, 10], name="labels")
    x = images
    for number, (inputs, outputs) in enumerate(((1, 16), (16, 32)), start=1):
        with hr.name_scope(f"conv{number}"):
            start = hr.truncated_normal([5, 5, inputs, outputs], stddev=0.1, seed=number)
            filters = hr.Variable(start, name="filter")
            x = hr.nn.relu(hr.nn.conv2d(x, filters, strides=[1, 1, 1, 1], padding="SAME"))
            x = hr.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    with hr.name_scope("dense"):
        start = hr.truncated_normal([7 * 7 * 32, 10], stddev=0.1, seed=3)
        logits = hr.matmul(hr.reshape(x, [-1, 7 * 7 * 32]), hr.Variable(start, name="weights"))
    with hr.name_scope("loss"):
        entropy = hr.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        loss = hr.reduce_mean(entropy, name="mean")
    with hr.name_scope("train"):
        step = hr.train.GradientDescentOptimizer(0.1).minimize(loss, name="step")
    return [images, labels], step, loss


def draw(folder: Path) -> None:
    """Leave the pictures in a folder, made by ``python -m headrace draw``."""
    document, trace = folder / "graph.json", folder / "trace.json"
    graph = hr.Graph()
    with graph.as_default():
        fed, step, loss = build()
        start = hr.global_variables_initializer()
        document.write_text(json.dumps(graph.to_document()), encoding="utf-8")
        feeds = {t: np.zeros([BATCH, *t.shape[1:]], np.float32) for t in fed}
        # Kernels are compiled in the first step; the last one is drawn.
        with hr.Session(config=hr.Config(trace=trace, compile_after=0)) as session:
            session.run(start)
            for _ in range(5):
                session.run([step, loss], feeds)
    shapes = [f"{t.name}={','.join(map(str, feeds[t].shape))}" for t in fed]
    memory = ["memory", str(document), "--fetch", step.name, loss.name, "--feed", *shapes]
    _draw(folder / "graph.svg", "graph", str(document), "--boxes", "9")
    for suffix, width in WIDTHS.items():
        _draw(folder / f"memory{suffix}.svg", *memory, "--width", width)
        _draw(folder / f"timeline{suffix}.svg", "timeline", str(trace), "--width", width)


def _draw(output: Path, *words: str) -> None:
    if headrace_command(["draw", *words, "-o", str(output)]) != 0:
        raise RuntimeError(f"python -m headrace draw {' '.join(words)} failed")


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
