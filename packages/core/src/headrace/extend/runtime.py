"""Runtimes: what runs the steps of a session, and the parts of which the local one is made."""

from headrace.passes.variable_usage import (
    usage_of,
)
from headrace.placement.place import (
    Machine,
)
from headrace.runtime.chief import (
    is_chief,
    join_cluster,
    tell_chief,
    watch_chief,
)
from headrace.runtime.concurrency.cancellation import (
    Cancellation,
)
from headrace.runtime.concurrency.deadlines import (
    deadline,
)
from headrace.runtime.concurrency.step_order import (
    RELAXED,
    Bound,
    Gate,
    Order,
    disagreement,
    still_running,
)
from headrace.runtime.concurrency.wakeup import (
    Bell,
    Wakeup,
)
from headrace.runtime.engine import (
    Engine,
    LocalRuntime,
    LocalStep,
)
from headrace.runtime.execution.executor import (
    StartedRun,
    execute,
)
from headrace.runtime.execution.plan import (
    Plan,
)
from headrace.runtime.execution.step import (
    Step,
)
from headrace.runtime.lost_tasks import (
    outlive_tasks,
    outlives_tasks,
    tell_loss,
    watch_losses,
)
from headrace.runtime.options import (
    DEFAULT_OPTIONS,
    Options,
)
from headrace.runtime.planning.nested_functions import (
    function_partitions,
)
from headrace.runtime.planning.planning import (
    build_plan,
    devices_in,
)
from headrace.runtime.profiling.trace import (
    Recorder,
)
from headrace.runtime.profiling.trace_parts import (
    pack_events,
    unpack_events,
)
from headrace.runtime.profiling.trace_traffic import (
    Flow,
    Span,
)
from headrace.runtime.profiling.traceable import (
    Traceable,
)
from headrace.runtime.runtime import (
    RegisteredStep,
    Runtime,
)
from headrace.runtime.state.containers import (
    ContainerSet,
)
from headrace.runtime.state.session_state import (
    SessionState,
)
from headrace.runtime.transfers.rendezvous import (
    DEAD,
    Edge,
    Place,
    Receive,
    Together,
)
from headrace.session.config import (
    Config,
)
from headrace.session.config_forms import (
    as_config,
)
from headrace.session.default_configs import (
    set_default_config,
)
from headrace.tracebacks import (
    fold,
)

__all__ = [
    "DEAD",
    "DEFAULT_OPTIONS",
    "RELAXED",
    "Bell",
    "Bound",
    "Cancellation",
    "Config",
    "ContainerSet",
    "Edge",
    "Engine",
    "Flow",
    "Gate",
    "LocalRuntime",
    "LocalStep",
    "Machine",
    "Options",
    "Order",
    "Place",
    "Plan",
    "Receive",
    "Recorder",
    "RegisteredStep",
    "Runtime",
    "SessionState",
    "Span",
    "StartedRun",
    "Step",
    "Together",
    "Traceable",
    "Wakeup",
    "as_config",
    "build_plan",
    "deadline",
    "devices_in",
    "disagreement",
    "execute",
    "fold",
    "function_partitions",
    "is_chief",
    "join_cluster",
    "outlive_tasks",
    "outlives_tasks",
    "pack_events",
    "set_default_config",
    "still_running",
    "tell_chief",
    "tell_loss",
    "unpack_events",
    "usage_of",
    "watch_chief",
    "watch_losses",
]
