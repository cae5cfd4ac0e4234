"""Devices: the registry of kinds, the protocol, and what a device that compiles gets and gives."""

from headrace.device_name import (
    DeviceName,
)
from headrace.plugins.registries.devices import DeviceKind, DeviceRegistry
from headrace.runtime.concurrency.background import (
    Background,
)
from headrace.runtime.concurrency.cancellation import (
    current_cancellation,
)
from headrace.runtime.concurrency.concurrent_steps import (
    ABREAST,
    Abreast,
)
from headrace.runtime.control_flow.device_loops import (
    HeldLoop,
    LoopForm,
    LoopRun,
    Rounds,
)
from headrace.runtime.control_flow.trip_count import (
    moved,
)
from headrace.runtime.devices.capabilities import (
    CompilingDevice,
    DescribedProgram,
    EagerDevice,
    HostDevice,
    LimitedDevice,
    LoopingDevice,
    LoopingProgram,
    ThreadedDevice,
    UnorderedDevice,
)
from headrace.runtime.devices.device import (
    Device,
    HostArray,
)
from headrace.runtime.devices.limits import (
    MachineLimits,
)
from headrace.runtime.devices.options import (
    Around,
    DeviceOption,
    switch_option,
    whole_number_option,
)
from headrace.runtime.failures import (
    located,
)
from headrace.runtime.options import (
    DEFAULT_OPTIONS,
    Options,
)
from headrace.runtime.profiling.report import (
    Buffer,
    ProgramReport,
    Work,
    bytes_of,
    clock,
    plain_work,
)
from headrace.runtime.regions.region import (
    Program,
    Region,
    is_handle,
)

__all__ = [
    "ABREAST",
    "DEFAULT_OPTIONS",
    "Abreast",
    "Around",
    "Background",
    "Buffer",
    "CompilingDevice",
    "DescribedProgram",
    "Device",
    "DeviceKind",
    "DeviceName",
    "DeviceOption",
    "DeviceRegistry",
    "EagerDevice",
    "HeldLoop",
    "HostArray",
    "HostDevice",
    "LimitedDevice",
    "LoopForm",
    "LoopRun",
    "LoopingDevice",
    "LoopingProgram",
    "MachineLimits",
    "Options",
    "Program",
    "ProgramReport",
    "Region",
    "Rounds",
    "ThreadedDevice",
    "UnorderedDevice",
    "Work",
    "bytes_of",
    "clock",
    "current_cancellation",
    "is_handle",
    "located",
    "moved",
    "plain_work",
    "switch_option",
    "whole_number_option",
]
