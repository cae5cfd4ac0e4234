"""What a program asks of one run of a step, and what it learns of it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

from headrace.errors import ConfigError, shown
from headrace.session.protocol_messages import Message

if TYPE_CHECKING:
    from headrace.runtime.profiling.trace import Event

# The longest time, of a year, that a clock is asked to wait for.
_LONGEST_MS = 366 * 24 * 3600 * 1000


class RunOptions(Message):
    """How one step runs, in ``session.run(..., options=...)``.

    Attributes:
        trace_level: ``NO_TRACE``, or one of the others, which all record what every kernel and
            operation does.
        timeout_in_ms: How long the step may take; it ends with ``errors.DeadlineExceededError``
            where it still waits then. 0 for as long as it wants.
        inter_op_thread_pool: Changes nothing.
        output_partition_graphs: Not supported; ``session.explain`` shows what runs.
        report_tensor_allocations_upon_oom: Changes nothing; errors tell the sizes.
    """

    NO_TRACE: ClassVar[int] = 0
    SOFTWARE_TRACE: ClassVar[int] = 1
    HARDWARE_TRACE: ClassVar[int] = 2
    FULL_TRACE: ClassVar[int] = 3

    FIELDS: ClassVar[dict[str, Any]] = {
        "trace_level": 0,
        "timeout_in_ms": 0,
        "inter_op_thread_pool": 0,
        "output_partition_graphs": False,
        "report_tensor_allocations_upon_oom": False,
    }

    @property
    def timeout(self) -> float | None:
        """How long the step may take in seconds, None for as long as it wants."""
        # Whoever waits for longer than this waits for ever.
        return min(self.timeout_in_ms, _LONGEST_MS) / 1000 if self.timeout_in_ms else None


class NodeExecStats(Message):
    """When a kernel or an operation ran.

    Attributes:
        node_name: The operation; of a kernel that computes several, the last.
        all_start_micros: When it began, in microseconds since 1970.
        op_start_rel_micros: When the kernel began, from then on.
        op_end_rel_micros: When the kernel ended.
        all_end_rel_micros: When everything was done.
        timeline_label: What ran: ``name = Type(inputs)``, and all operations of a fused kernel.
        thread_id: On which thread.
        all_start_nanos: When it began, in nanoseconds since 1970.
        op_start_rel_nanos: When the kernel began, from then on.
        op_end_rel_nanos: When the kernel ended.
        all_end_rel_nanos: When everything was done.
        computes: The names of all operations that it computed; no field of the message.
    """

    FIELDS: ClassVar[dict[str, Any]] = {
        "node_name": "",
        "all_start_micros": 0,
        "op_start_rel_micros": 0,
        "op_end_rel_micros": 0,
        "all_end_rel_micros": 0,
        "timeline_label": "",
        "thread_id": 0,
        "all_start_nanos": 0,
        "op_start_rel_nanos": 0,
        "op_end_rel_nanos": 0,
        "all_end_rel_nanos": 0,
    }

    computes: tuple[str, ...]

    def __init__(self, *, computes: Iterable[str] = (), **values: Any) -> None:
        """Set fields.

        Args:
            computes: As the attribute.
            **values: Fields of the message by name.
        """
        super().__init__(**values)
        object.__setattr__(self, "computes", tuple(computes))


class DeviceStepStats(Message):
    """What ran on a device in a step.

    Attributes:
        device: Its name.
        node_stats: What ran, in the order of its beginning.
    """

    FIELDS: ClassVar[dict[str, Any]] = {"device": "", "node_stats": list}


class StepStats(Message):
    """What ran in a step.

    Attributes:
        dev_stats: By device.
    """

    FIELDS: ClassVar[dict[str, Any]] = {"dev_stats": list}


class RunMetadata(Message):
    """What a program learns of a run, in ``session.run(..., run_metadata=...)``.

    Attributes:
        step_stats: When what ran, where the run's ``trace_level`` asks for it.
        partition_graphs: Always empty.
        function_graphs: Always empty.
    """

    FIELDS: ClassVar[dict[str, Any]] = {
        "step_stats": StepStats,
        "partition_graphs": list,
        "function_graphs": list,
    }


def checked_options(options: Any, run_metadata: Any) -> RunOptions:
    """Return the options of a run.

    Raises:
        ConfigError: if one is of another type, or asks for what there is not.
    """
    if options is None:
        options = RunOptions()
    if not isinstance(options, RunOptions):
        raise ConfigError(f"options must be hr.RunOptions, got {shown(options)}")
    if run_metadata is not None and not isinstance(run_metadata, RunMetadata):
        raise ConfigError(f"run_metadata must be an hr.RunMetadata, got {shown(run_metadata)}")
    options.refuse("output_partition_graphs")
    if options.timeout_in_ms < 0:
        raise ConfigError(f"timeout_in_ms must be 0 or more, got {options.timeout_in_ms}")
    return options


def step_stats(events: Iterable[Event]) -> StepStats:
    """Return what was recorded of a step in the form of its metadata."""
    # Events are measured by a clock that only counts.
    offset = time.time_ns() - time.perf_counter_ns()
    devices: dict[str, DeviceStepStats] = {}
    for work, thread, began, ended, _, _ in sorted(events, key=lambda event: event[2]):
        if not work.ops:
            continue
        last = work.ops[-1]
        took = (ended - began) // 1000
        inputs = ", ".join(tensor.name for tensor in last.inputs)
        label = f"{last.name} = {last.type}({inputs})"
        if len(work.ops) > 1:
            label += f" [{work.name}: {', '.join(op.name for op in work.ops)}]"
        stats = devices.setdefault(work.device, DeviceStepStats(device=work.device))
        stats.node_stats.append(
            NodeExecStats(
                node_name=last.name,
                all_start_micros=(began + offset) // 1000,
                op_end_rel_micros=took,
                all_end_rel_micros=took,
                timeline_label=label,
                thread_id=thread,
                all_start_nanos=began + offset,
                op_end_rel_nanos=ended - began,
                all_end_rel_nanos=ended - began,
                computes=(op.name for op in work.ops),
            )
        )
    return StepStats(dev_stats=list(devices.values()))
