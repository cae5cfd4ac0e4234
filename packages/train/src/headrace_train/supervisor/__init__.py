"""The supervisor: checkpoints and summaries from threads beside the loop."""

from __future__ import annotations

from headrace_train.supervisor.loops import basic_train_loop as basic_train_loop
from headrace_train.supervisor.supervisor import Supervisor as Supervisor
