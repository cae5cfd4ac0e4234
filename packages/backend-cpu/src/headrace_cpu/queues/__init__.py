"""Queues whose users wait without holding a thread: what is in them, and in which order it leaves.

``queue.py`` lets elements in and out and its users wait, whatever the order; the modules beside it
have the kinds. ``elements.py`` checks what goes in, and stacks what comes out.
"""

from headrace_cpu.queues.elements import Element as Element
from headrace_cpu.queues.elements import Elements as Elements
from headrace_cpu.queues.fifo import FIFOQueue as FIFOQueue
from headrace_cpu.queues.padding import PaddingFIFOQueue as PaddingFIFOQueue
from headrace_cpu.queues.priority import PriorityQueue as PriorityQueue
from headrace_cpu.queues.queue import Queue as Queue
from headrace_cpu.queues.shuffle import RandomShuffleQueue as RandomShuffleQueue
