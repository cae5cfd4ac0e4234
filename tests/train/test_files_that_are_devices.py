"""What is neither file nor folder is written to, not replaced: root would replace /dev/null."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu", "io")


def write_graph(path: Path) -> Any:
    return hr.train.write_graph(hr.get_default_graph(), str(path.parent), path.name)


def export_meta_graph(path: Path) -> Any:
    return hr.train.export_meta_graph(str(path), as_text=True)


def update_state(path: Path) -> Any:
    return hr.train.update_checkpoint_state(str(path.parent), "a", latest_filename=path.name)


def write_trace(path: Path) -> None:
    with hr.Session(config=hr.Config(trace=str(path))) as session:
        session.run(hr.placeholder_with_default(1.0, []) + 1.0)


@pytest.mark.parametrize(
    ("write", "part"),
    [
        (write_graph, b"node"),
        (export_meta_graph, b"graph_def"),
        (update_state, b"model_checkpoint_path"),
        (write_trace, b"traceEvents"),
    ],
)
def test_a_pipe_gets_the_content(tmp_path: Path, write: Callable[[Path], Any], part: bytes) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # Open for both, so that nobody waits for anybody.
    descriptor = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        with hr.Graph().as_default():
            hr.constant(1.0)
            write(pipe)
        assert part in os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
