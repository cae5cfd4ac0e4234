"""What outlives steps: containers, the resources in them, who waits for them, random streams."""

from headrace.finalizers import apart, when_collected
from headrace.graph.context_blocks import read as block_value
from headrace.graph.context_blocks import within as within_block
from headrace.graph.saveable import Saveable
from headrace.graph.spec import handle_spec
from headrace.ops.random import op_seeds
from headrace.runtime.concurrency.cancellation import Cancellation
from headrace.runtime.concurrency.deadlines import call_after
from headrace.runtime.concurrency.wait_queue import Waiter, WaitingLine
from headrace.runtime.execution.called_function import CalledFunction
from headrace.runtime.state.containers import Container, ContainerSet, VariableCell
from headrace.runtime.state.element_source import ElementSource
from headrace.runtime.state.session_state import KernelContext, SessionState, drawing_from, entropy

__all__ = [
    "CalledFunction",
    "Cancellation",
    "Container",
    "ContainerSet",
    "ElementSource",
    "KernelContext",
    "Saveable",
    "SessionState",
    "VariableCell",
    "Waiter",
    "WaitingLine",
    "apart",
    "block_value",
    "call_after",
    "drawing_from",
    "entropy",
    "handle_spec",
    "op_seeds",
    "when_collected",
    "within_block",
]
