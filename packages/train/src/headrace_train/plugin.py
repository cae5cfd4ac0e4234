"""What headrace-train adds to Headrace: namespaces, imported on first use, and kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.extend import hookimpl
from headrace_train.settings import SETTINGS

if TYPE_CHECKING:
    from headrace.extend import CommandRegistry, KernelRegistry, NameRegistry, SettingRegistry
    from headrace.extend.translations import TranslationRegistry

# The version of the plugin interface that this is written for.
headrace_api = 1

# Under headrace itself, and the second also under headrace.io, as in TensorFlow.
QUEUES = ("Barrier", "FIFOQueue", "StagingArea")
ACCUMULATORS = (
    "ConditionalAccumulatorBase",
    "ConditionalAccumulator",
    "SparseConditionalAccumulator",
)
IO_QUEUES = ("PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue")


@hookimpl
def headrace_register_settings(registry: SettingRegistry) -> None:
    """Add what the package reads from the environment."""
    registry.add(*SETTINGS)


@hookimpl
def headrace_declare_ops() -> None:
    """Declare the ops of summaries, savers, saved random streams and synchronous replicas."""
    # lazy: a program without them declares none
    from importlib import import_module

    import_module("headrace_train.summary.summaries")
    import_module("headrace_train.saver.checkpoints")
    import_module("headrace_train.resumption.random_streams")
    import_module("headrace_train.resumption.readiness")
    import_module("headrace_train.sync_replicas.replicas")


@hookimpl
def headrace_register_names(registry: NameRegistry) -> None:
    """Add ``headrace.train``, ``layers``, ``metrics``, ``summary`` and the queues."""
    registry.add("train", "headrace_train")
    registry.add("train.summary_iterator", "headrace_train.summary.reading:summary_iterator")
    registry.add("train.summary", "headrace_train.summary")
    for message in ("ClusterDef", "JobDef", "SaverDef", "ServerDef"):
        registry.add(f"train.{message}", f"headrace_io.protos:{message}")
    registry.add("layers", "headrace_train.layers")
    registry.add("metrics", "headrace_train.metrics")
    registry.add("test", "headrace_train.test")
    registry.add("queue", "headrace_train.queues")
    for name in QUEUES + IO_QUEUES:
        registry.add(name, f"headrace_train.queues:{name}")
    for name in ACCUMULATORS:
        registry.add(name, f"headrace_train.accumulators:{name}")
    sparse = "SparseConditionalAccumulator"
    registry.add(f"sparse.{sparse}", f"headrace_train.accumulators:{sparse}")
    for name in IO_QUEUES:
        registry.add(f"io.{name}", f"headrace_train.queues:{name}")
    registry.add("summary", "headrace_train.summary")
    registry.add("io.write_graph", "headrace_train.meta_graph:write_graph")


@hookimpl
def headrace_register_kernels(registry: KernelRegistry) -> None:
    """Add the kernels of these ops, which run on the host."""
    registry.add_later("cpu", "headrace_train.summary.kernels:KERNELS")
    registry.add_later("cpu", "headrace_train.saver.kernels:KERNELS")
    registry.add_later("cpu", "headrace_train.resumption.kernels:KERNELS")
    registry.add_later("cpu", "headrace_train.sync_replicas.kernels:KERNELS")


@hookimpl
def headrace_register_commands(registry: CommandRegistry) -> None:
    """Add the command for checkpoints."""
    registry.add(
        "checkpoint",
        "headrace_train.checkpoint.cli:main",
        "list, compare and verify checkpoints",
    )


@hookimpl
def headrace_register_translations(registry: TranslationRegistry) -> None:
    """Add the rows of ops of checkpoints and summaries."""
    # lazy: only programs that read TensorFlow's graphs need them
    from headrace_train.translations import ROWS

    registry.add(ROWS)
