"""Threads that fill queues, and what lets threads end together."""

from headrace_train.runners.coordinator import Coordinator as Coordinator
from headrace_train.runners.looper_thread import LooperThread as LooperThread
from headrace_train.runners.queue_runner import QueueRunner as QueueRunner
from headrace_train.runners.queue_runner import add_queue_runner as add_queue_runner
from headrace_train.runners.queue_runner import start_queue_runners as start_queue_runners
