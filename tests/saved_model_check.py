"""Export a trained model where all wheels are, and run it with core and backend-cpu alone.

A program for interpreters of clean environments, not for pytest::

    python saved_model_check.py export FOLDER    # all packages
    python saved_model_check.py run FOLDER       # headrace-core and headrace-backend-cpu
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np

import headrace as hr

# What the small environment must not have.
ABSENT = ("google.protobuf", "h5py", "headrace_io", "headrace_train", "headrace_autodiff")


def export(folder: Path) -> None:
    """Train a small model for some steps, save it, and write what it answers beside it."""
    generator = np.random.default_rng(0)
    images = generator.normal(size=(8, 6, 6, 2)).astype(np.float32)
    labels = generator.integers(0, 3, 8)
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.placeholder(hr.float32, [None, 6, 6, 2], name="x")
        hidden = hr.nn.relu(hr.layers.batch_normalization(hr.layers.conv2d(x, 4, 3)))
        logits = hr.layers.dense(hr.layers.flatten(hidden), 3)
        best = hr.cond(hr.reduce_sum(logits) > 0, lambda: hr.argmax(logits, 1), lambda: labels)
        loss = hr.losses.sparse_softmax_cross_entropy(labels, logits)
        train = hr.train.AdamOptimizer(0.01).minimize(loss)
        session.run(hr.global_variables_initializer())
        for _ in range(5):
            session.run(train, {x: images})
        outputs = {"scores": hr.nn.softmax(logits), "best": best}
        hr.saved_model.simple_save(session, folder / "model", {"x": x}, outputs)
        np.savez(folder / "expected.npz", x=images, **session.run(outputs, {x: images}))


def run(folder: Path) -> None:
    """Answer with the saved model, and compare."""
    found = [name for name in ABSENT if _is_there(name)]
    if found:
        raise SystemExit(f"this environment has {', '.join(found)}; it proves nothing")
    with (
        np.load(folder / "expected.npz") as expected,
        hr.saved_model.Model(folder / "model") as model,
    ):
        answer = model.signatures["serving_default"]({"x": expected["x"]})
        np.testing.assert_allclose(answer["scores"], expected["scores"], rtol=1e-5)
        np.testing.assert_array_equal(answer["best"], expected["best"])
    sys.stdout.write("a saved model runs with core and backend-cpu alone: good\n")


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


if __name__ == "__main__":
    {"export": export, "run": run}[sys.argv[1]](Path(sys.argv[2]))
