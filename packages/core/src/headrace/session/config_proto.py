"""``ConfigProto`` and its parts: the settings of a session as TensorFlow programs give them."""

from __future__ import annotations

from typing import Any, ClassVar

from headrace.device_name import kind_called
from headrace.placement.device_counts import countable
from headrace.session.config import Config
from headrace.session.protocol_messages import Message
from headrace.session.rewriter_config import ExperimentalOptions, RewriterConfig


class GPUOptions(Message):
    """How a session uses GPUs.

    Attributes:
        allow_growth: Whether memory is taken as it is needed, which it always is.
        per_process_gpu_memory_fraction: Changes nothing: memory is taken as it is needed.
        visible_device_list: Not supported; ``CUDA_VISIBLE_DEVICES`` chooses GPUs.
        allocator_type: Changes nothing.
        force_gpu_compatible: Whether memory of the host is made for transfers; changes nothing.
        deferred_deletion_bytes: Changes nothing.
        polling_active_delay_usecs: Changes nothing.
        polling_inactive_delay_msecs: Changes nothing.
    """

    FIELDS: ClassVar[dict[str, Any]] = {
        "per_process_gpu_memory_fraction": 0.0,
        "allow_growth": False,
        "allocator_type": "",
        "deferred_deletion_bytes": 0,
        "visible_device_list": "",
        "polling_active_delay_usecs": 0,
        "polling_inactive_delay_msecs": 0,
        "force_gpu_compatible": False,
    }


class OptimizerOptions(Message):
    """How far a session rewrites steps.

    Attributes:
        opt_level: ``L1``, or ``L0`` for steps as the program built them.
        global_jit_level: Changes nothing: steps are compiled as ``hr.Config`` says.
        do_common_subexpression_elimination: Is part of ``L1``.
        do_constant_folding: Is part of ``L1``.
        do_function_inlining: Functions are always inlined.
        max_folded_constant_in_bytes: Changes nothing.
    """

    L1: ClassVar[int] = 0
    L0: ClassVar[int] = -1
    DEFAULT: ClassVar[int] = 0
    OFF: ClassVar[int] = -1
    ON_1: ClassVar[int] = 1
    ON_2: ClassVar[int] = 2

    FIELDS: ClassVar[dict[str, Any]] = {
        "do_common_subexpression_elimination": False,
        "do_constant_folding": False,
        "max_folded_constant_in_bytes": 0,
        "do_function_inlining": False,
        "opt_level": 0,
        "global_jit_level": 0,
    }


class GraphOptions(Message):
    """How a session prepares steps.

    Attributes:
        optimizer_options: How far it rewrites them.
        infer_shapes: Changes nothing: shapes are inferred when the graph is built.
        enable_recv_scheduling: Changes nothing.
        build_cost_model: Changes nothing; ``Session.profile`` measures.
        build_cost_model_after: Changes nothing.
        place_pruned_graph: Changes nothing: what runs is placed.
        enable_bfloat16_sendrecv: Whether float32 goes between tasks as bfloat16.
        timeline_step: Changes nothing.
        rewrite_options: Changes nothing: the passes are others than TensorFlow's.
    """

    FIELDS: ClassVar[dict[str, Any]] = {
        "enable_recv_scheduling": False,
        "optimizer_options": OptimizerOptions,
        "build_cost_model": 0,
        "build_cost_model_after": 0,
        "infer_shapes": False,
        "place_pruned_graph": False,
        "enable_bfloat16_sendrecv": False,
        "timeline_step": 0,
        "rewrite_options": RewriterConfig,
    }


class ConfigProto(Message):
    """The settings of a session, as TensorFlow programs give them. See ``hr.Config`` for ours.

    Attributes:
        intra_op_parallelism_threads: How many threads kernels may use; 0 for all cores.
        inter_op_parallelism_threads: How many operations may run at one time; 0 for as many as
            ``hr.Config`` would.
        use_per_session_threads: Changes nothing.
        device_count: How many devices of a kind there are, as in ``{"CPU": 2, "GPU": 0}``; see
            ``hr.Config``. Kinds that are not there do not count.
        device_filters: Not supported.
        allow_soft_placement: Whether an operation whose device is not there, or has no kernel for
            it, runs elsewhere.
        log_device_placement: Whether each new step prints where its operations run.
        gpu_options: How GPUs are used.
        graph_options: How steps are prepared.
        operation_timeout_in_ms: How long a step may take; 0 for as long as it wants.
        placement_period: Changes nothing.
        isolate_session_state: Sessions of this process keep their own state anyway; those of a
            cluster share that of its tasks, and refuse it.
        experimental: Changes nothing.
    """

    FIELDS: ClassVar[dict[str, Any]] = {
        "device_count": dict,
        "intra_op_parallelism_threads": 0,
        "inter_op_parallelism_threads": 0,
        "use_per_session_threads": False,
        "placement_period": 0,
        "device_filters": list,
        "gpu_options": GPUOptions,
        "allow_soft_placement": False,
        "log_device_placement": False,
        "graph_options": GraphOptions,
        "operation_timeout_in_ms": 0,
        "isolate_session_state": False,
        "experimental": ExperimentalOptions,
    }


def config_of(config: ConfigProto) -> Config:
    """Return what a message asks for, as the settings of a session.

    Raises:
        ConfigError: if it asks for what there is not.
    """
    config.refuse("device_filters")
    config.gpu_options.refuse("visible_device_list")
    threads, timeout = config.intra_op_parallelism_threads, config.operation_timeout_in_ms
    return Config(
        optimize=config.graph_options.optimizer_options.opt_level != OptimizerOptions.L0,
        threads=threads or None,
        inter_op_threads=config.inter_op_parallelism_threads or None,
        allow_soft_placement=config.allow_soft_placement,
        log_device_placement=config.log_device_placement,
        compress_transfers=("bfloat16" if config.graph_options.enable_bfloat16_sendrecv else None),
        timeout=timeout / 1000 if timeout else None,
        device_count=_counts(config.device_count),
    )


def _counts(given: dict[Any, Any]) -> dict[str, int] | None:
    """Return the numbers of devices of kinds that there are: of others there are none anyway."""
    if not given:
        return None
    known = countable()
    return {
        name: count
        for name, count in given.items()
        if not isinstance(name, str) or kind_called(name) in known
    }
