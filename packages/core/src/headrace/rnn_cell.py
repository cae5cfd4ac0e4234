"""Cells of recurrent networks, as ``hr.nn.rnn_cell``."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace.ops.rnn_base import RNNCell as RNNCell
from headrace.ops.rnn_cells import BasicLSTMCell as BasicLSTMCell
from headrace.ops.rnn_cells import BasicRNNCell as BasicRNNCell
from headrace.ops.rnn_cells import GRUCell as GRUCell
from headrace.ops.rnn_cells import LSTMCell as LSTMCell
from headrace.ops.rnn_cells import LSTMStateTuple as LSTMStateTuple
from headrace.ops.rnn_cells import MultiRNNCell as MultiRNNCell
from headrace.ops.rnn_wrappers import DeviceWrapper as DeviceWrapper
from headrace.ops.rnn_wrappers import DropoutWrapper as DropoutWrapper
from headrace.ops.rnn_wrappers import ResidualWrapper as ResidualWrapper
from headrace.plugins.namespaces import added_names as _added_names

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("rnn_cell", __name__)
