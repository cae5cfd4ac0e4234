"""Queues, by which steps hand tensors to other steps: ``hr.queue``."""

from headrace_train.queues.barrier import Barrier as Barrier
from headrace_train.queues.fifo_queue import FIFOQueue as FIFOQueue
from headrace_train.queues.padding_fifo_queue import PaddingFIFOQueue as PaddingFIFOQueue
from headrace_train.queues.priority_queue import PriorityQueue as PriorityQueue
from headrace_train.queues.queue_base import QueueBase as QueueBase
from headrace_train.queues.random_shuffle_queue import RandomShuffleQueue as RandomShuffleQueue
from headrace_train.queues.staging_area import StagingArea as StagingArea

__all__ = [
    "Barrier",
    "FIFOQueue",
    "PaddingFIFOQueue",
    "PriorityQueue",
    "QueueBase",
    "RandomShuffleQueue",
    "StagingArea",
]
