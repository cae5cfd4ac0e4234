"""Kernels: the table to fill, what the four styles get, and helpers that kernels share."""

from headrace.graph.spec import (
    TensorSpec,
)
from headrace.ops.python_call import (
    python_function,
)
from headrace.ops.segment import (
    check_sorted_ids,
)
from headrace.placement.place import (
    kernel_dtype,
)
from headrace.plugins.registries.kernels import KernelRegistry
from headrace.plugins.tables import (
    Kernel,
    KernelTable,
)
from headrace.runtime.concurrency.cancellation import (
    Cancellation,
)
from headrace.runtime.devices.device import (
    HostArray,
)
from headrace.runtime.failures import (
    family,
)
from headrace.runtime.planning.binding import (
    NodeView,
)
from headrace.runtime.state.session_state import (
    KernelContext,
)
from headrace.runtime.state.string_rows import (
    StringRows,
    rows_of,
)
from headrace.runtime.state.tensor_list import (
    ListValue,
    MissingItems,
    StackedItems,
    Swapped,
)
from headrace.summarize import (
    both_ends,
    first_elements,
)

__all__ = [
    "Cancellation",
    "HostArray",
    "Kernel",
    "KernelContext",
    "KernelRegistry",
    "KernelTable",
    "ListValue",
    "MissingItems",
    "NodeView",
    "StackedItems",
    "StringRows",
    "Swapped",
    "TensorSpec",
    "both_ends",
    "check_sorted_ids",
    "family",
    "first_elements",
    "kernel_dtype",
    "python_function",
    "rows_of",
]
