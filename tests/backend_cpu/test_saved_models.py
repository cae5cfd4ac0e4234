"""Saved models run with core and this package alone: neither protobuf nor h5py is touched."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import headrace as hr
from tests.children import run_program

# Whatever else is installed, importing it fails.
PROGRAM = """
import sys
absent = ["google", "google.protobuf", "h5py", "headrace_io", "headrace_train", "headrace_autodiff"]
sys.modules.update(dict.fromkeys(absent))
import numpy as np
import headrace as hr
with hr.saved_model.Model(sys.argv[1]) as model:
    answer = model.signatures["serving_default"]({"x": np.ones((2, 3), np.float32)})
np.save(sys.argv[2], answer["y"])
"""


def test_a_model_runs_where_little_is_installed(tmp_path: Path) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.placeholder(hr.float32, [None, 3], name="x")
        weights = hr.Variable(np.arange(6, dtype=np.float32).reshape(3, 2))
        _, y = hr.while_loop(
            lambda i, a: i < 3,
            lambda i, a: (i + 1, hr.cond(i > 1, lambda: a * 2.0, lambda: a + weights[0])),
            [0, hr.matmul(x, weights)],
        )
        session.run(hr.global_variables_initializer())
        expected = session.run(y, {x: np.ones((2, 3))})
        hr.saved_model.simple_save(session, tmp_path / "model", {"x": x}, {"y": y})
    answer = tmp_path / "y.npy"
    run_program(PROGRAM, tmp_path / "model", answer)
    np.testing.assert_array_equal(np.load(answer), expected)
