"""The supervisor: checkpoints and summaries from threads beside the loop."""

from __future__ import annotations

from headrace_train.supervisor.supervisor import Supervisor as Supervisor
