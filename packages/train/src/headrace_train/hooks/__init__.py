"""Hooks: code that runs at fixed moments of a monitored session."""

from __future__ import annotations

from headrace_train.hooks.checkpoint_listener import (
    CheckpointSaverListener as CheckpointSaverListener,
)
from headrace_train.hooks.checkpoint_saver import CheckpointSaverHook as CheckpointSaverHook
from headrace_train.hooks.early_stopping import EarlyStoppingHook as EarlyStoppingHook
from headrace_train.hooks.feed_fn import FeedFnHook as FeedFnHook
from headrace_train.hooks.final_ops import FinalOpsHook as FinalOpsHook
from headrace_train.hooks.global_step_waiter import GlobalStepWaiterHook as GlobalStepWaiterHook
from headrace_train.hooks.logging_tensor import LoggingTensorHook as LoggingTensorHook
from headrace_train.hooks.nan_tensor import NanLossDuringTrainingError as NanLossDuringTrainingError
from headrace_train.hooks.nan_tensor import NanTensorHook as NanTensorHook
from headrace_train.hooks.profiler import ProfilerHook as ProfilerHook
from headrace_train.hooks.progress import ProgressHook as ProgressHook
from headrace_train.hooks.session_run_hook import SessionRunArgs as SessionRunArgs
from headrace_train.hooks.session_run_hook import SessionRunContext as SessionRunContext
from headrace_train.hooks.session_run_hook import SessionRunHook as SessionRunHook
from headrace_train.hooks.session_run_hook import SessionRunValues as SessionRunValues
from headrace_train.hooks.step_counter import StepCounterHook as StepCounterHook
from headrace_train.hooks.stop_at_step import StopAtStepHook as StopAtStepHook
from headrace_train.hooks.summary_saver import SummarySaverHook as SummarySaverHook
from headrace_train.hooks.timer import SecondOrStepTimer as SecondOrStepTimer
