"""Sessions that supervise: hooks, threads, checkpoints and recovery around the steps."""

from __future__ import annotations

from headrace_train.monitored.monitored_session import MonitoredSession as MonitoredSession
from headrace_train.monitored.monitored_session import (
    SingularMonitoredSession as SingularMonitoredSession,
)
from headrace_train.monitored.scaffold import Scaffold as Scaffold
from headrace_train.monitored.session_creators import ChiefSessionCreator as ChiefSessionCreator
from headrace_train.monitored.session_creators import SessionCreator as SessionCreator
from headrace_train.monitored.session_creators import WorkerSessionCreator as WorkerSessionCreator
from headrace_train.monitored.session_manager import SessionManager as SessionManager
from headrace_train.monitored.training_session import (
    MonitoredTrainingSession as MonitoredTrainingSession,
)
