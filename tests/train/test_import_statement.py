"""``import headrace.train``: what plugins add is imported as a module of Headrace."""

from __future__ import annotations

import pytest

from tests.children import run_program

pytestmark = pytest.mark.needs("io")

PROGRAM = """
import sys, time
import numpy
import headrace
begin = time.process_time()
import headrace.train
print(time.process_time() - begin)

import headrace.train.queue_runner as runners
from headrace.layers import dense
from headrace.train import Saver, datasets
import headrace_train
assert headrace.train is headrace_train is sys.modules["headrace.train"]
assert headrace_train.__name__ == headrace_train.__spec__.name == "headrace_train"
assert runners is headrace.train.queue_runner
assert headrace.train.datasets is datasets
for name in ("headrace.nowhere", "headrace.train.nowhere"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        assert error.name and "No module named" in str(error)
    else:
        raise AssertionError(name)
import headrace.train.checkpoint
assert headrace.train.checkpoint.__name__ == "headrace_train.checkpoint"
import headrace.nn, headrace.extend.graphs
assert headrace.nn.__name__ == "headrace.nn"

# The second name of the interface has the same modules, those of plugins among them.
import headrace.compat.v1.losses as losses, headrace.compat.v1.train
from headrace.compat.v1.nn import relu
assert losses is headrace.losses and relu is headrace.nn.relu
assert headrace.compat.v1.train is headrace.train
from headrace.nn.rnn_cell import LSTMCell
import headrace.lookup.experimental as tables
assert LSTMCell is headrace.nn.rnn_cell.LSTMCell and tables is headrace.lookup.experimental
try:
    import headrace.compat.v1.nowhere
except ModuleNotFoundError as error:
    assert error.name and "No module named" in str(error)
else:
    raise AssertionError("headrace.compat.v1.nowhere")
"""


def test_namespaces_of_plugins_are_imported_by_statement() -> None:
    done = run_program(PROGRAM, flags=("-W", "error"))
    # 30 ms on an idle machine; others are slower.
    assert float(done.stdout) < 1
