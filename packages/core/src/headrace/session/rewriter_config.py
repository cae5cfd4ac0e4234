"""What ``ConfigProto`` says of TensorFlow's own rewriting and running: taken, and of no effect."""

from __future__ import annotations

from typing import Any, ClassVar

from headrace.session.protocol_messages import Message


class RewriterConfig(Message):
    """Which of TensorFlow's rewriting passes run; changes nothing: the passes are others.

    ``hr.Config(optimize=False)`` leaves all of Headrace's out.
    """

    DEFAULT: ClassVar[int] = 0
    ON: ClassVar[int] = 1
    OFF: ClassVar[int] = 2
    AGGRESSIVE: ClassVar[int] = 3
    DEFAULT_NUM_ITERS: ClassVar[int] = 0
    ONE: ClassVar[int] = 1
    TWO: ClassVar[int] = 2
    DEFAULT_MEM_OPT: ClassVar[int] = 0
    NO_MEM_OPT: ClassVar[int] = 1
    MANUAL: ClassVar[int] = 2
    HEURISTICS: ClassVar[int] = 3
    SWAPPING_HEURISTICS: ClassVar[int] = 4
    RECOMPUTATION_HEURISTICS: ClassVar[int] = 5
    SCHEDULING_HEURISTICS: ClassVar[int] = 6

    FIELDS: ClassVar[dict[str, Any]] = {
        "layout_optimizer": 0,
        "constant_folding": 0,
        "shape_optimization": 0,
        "remapping": 0,
        "arithmetic_optimization": 0,
        "dependency_optimization": 0,
        "loop_optimization": 0,
        "function_optimization": 0,
        "debug_stripper": 0,
        "disable_model_pruning": False,
        "scoped_allocator_optimization": 0,
        "pin_to_host_optimization": 0,
        "implementation_selector": 0,
        "auto_mixed_precision": 0,
        "disable_meta_optimizer": False,
        "meta_optimizer_iterations": 0,
        "min_graph_nodes": 0,
        "memory_optimization": 0,
        "memory_optimizer_target_node_name_scope": "",
        "meta_optimizer_timeout_ms": 0,
        "fail_on_optimizer_errors": False,
        "optimizers": list,
    }


class ExperimentalOptions(Message):
    """How TensorFlow's runtime goes about steps; changes nothing."""

    FIELDS: ClassVar[dict[str, Any]] = {
        "collective_group_leader": "",
        "executor_type": "",
        "recv_buf_max_chunk": 0,
        "use_numa_affinity": False,
        "collective_deterministic_sequential_execution": False,
        "collective_nccl": False,
        "share_session_state_in_clusterspec_propagation": False,
        "disable_thread_spinning": False,
        "share_cluster_devices_in_session": False,
        "optimize_for_static_graph": False,
    }
