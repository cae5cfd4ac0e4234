"""The staleness of updates in asynchronous training."""

from headrace_train.staleness.recorder import StalenessRecorder as StalenessRecorder
from headrace_train.staleness.summary import StalenessSummary as StalenessSummary
