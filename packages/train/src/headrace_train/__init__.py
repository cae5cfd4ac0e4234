"""Training with Headrace: optimizers, monitored sessions, queues, checkpoints, datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.extend.plugins import added_names

if TYPE_CHECKING:
    from headrace_train import datasets as datasets
    from headrace_train import experimental as experimental
    from headrace_train.averages import ExponentialMovingAverage as ExponentialMovingAverage
    from headrace_train.averages import MovingAverageOptimizer as MovingAverageOptimizer
    from headrace_train.checkpoint import CheckpointReader as CheckpointReader
    from headrace_train.checkpoint import checkpoint_exists as checkpoint_exists
    from headrace_train.checkpoint import (
        generate_checkpoint_state_proto as generate_checkpoint_state_proto,
    )
    from headrace_train.checkpoint import get_checkpoint_mtimes as get_checkpoint_mtimes
    from headrace_train.checkpoint import get_checkpoint_state as get_checkpoint_state
    from headrace_train.checkpoint import latest_checkpoint as latest_checkpoint
    from headrace_train.checkpoint import remove_checkpoint as remove_checkpoint
    from headrace_train.checkpoint import update_checkpoint_state as update_checkpoint_state
    from headrace_train.clusters import ClusterSpec as ClusterSpec
    from headrace_train.clusters import GreedyLoadBalancingStrategy as GreedyLoadBalancingStrategy
    from headrace_train.clusters import RandomStrategy as RandomStrategy
    from headrace_train.clusters import RoundRobinStrategy as RoundRobinStrategy
    from headrace_train.clusters import byte_size_load_fn as byte_size_load_fn
    from headrace_train.clusters import replica_device_setter as replica_device_setter
    from headrace_train.from_checkpoint import NewCheckpointReader as NewCheckpointReader
    from headrace_train.from_checkpoint import VocabInfo as VocabInfo
    from headrace_train.from_checkpoint import checkpoints_iterator as checkpoints_iterator
    from headrace_train.from_checkpoint import init_from_checkpoint as init_from_checkpoint
    from headrace_train.from_checkpoint import list_variables as list_variables
    from headrace_train.from_checkpoint import load_checkpoint as load_checkpoint
    from headrace_train.from_checkpoint import load_variable as load_variable
    from headrace_train.from_checkpoint import warm_start as warm_start
    from headrace_train.hooks import CheckpointSaverHook as CheckpointSaverHook
    from headrace_train.hooks import CheckpointSaverListener as CheckpointSaverListener
    from headrace_train.hooks import EarlyStoppingHook as EarlyStoppingHook
    from headrace_train.hooks import FeedFnHook as FeedFnHook
    from headrace_train.hooks import FinalOpsHook as FinalOpsHook
    from headrace_train.hooks import GlobalStepWaiterHook as GlobalStepWaiterHook
    from headrace_train.hooks import LoggingTensorHook as LoggingTensorHook
    from headrace_train.hooks import NanLossDuringTrainingError as NanLossDuringTrainingError
    from headrace_train.hooks import NanTensorHook as NanTensorHook
    from headrace_train.hooks import ProfilerHook as ProfilerHook
    from headrace_train.hooks import ProgressHook as ProgressHook
    from headrace_train.hooks import SecondOrStepTimer as SecondOrStepTimer
    from headrace_train.hooks import SessionRunArgs as SessionRunArgs
    from headrace_train.hooks import SessionRunContext as SessionRunContext
    from headrace_train.hooks import SessionRunHook as SessionRunHook
    from headrace_train.hooks import SessionRunValues as SessionRunValues
    from headrace_train.hooks import StepCounterHook as StepCounterHook
    from headrace_train.hooks import StopAtStepHook as StopAtStepHook
    from headrace_train.hooks import SummarySaverHook as SummarySaverHook
    from headrace_train.meta_graph import export_meta_graph as export_meta_graph
    from headrace_train.meta_graph import import_meta_graph as import_meta_graph
    from headrace_train.meta_graph import write_graph as write_graph
    from headrace_train.monitored import ChiefSessionCreator as ChiefSessionCreator
    from headrace_train.monitored import MonitoredSession as MonitoredSession
    from headrace_train.monitored import MonitoredTrainingSession as MonitoredTrainingSession
    from headrace_train.monitored import Scaffold as Scaffold
    from headrace_train.monitored import SessionCreator as SessionCreator
    from headrace_train.monitored import SessionManager as SessionManager
    from headrace_train.monitored import SingularMonitoredSession as SingularMonitoredSession
    from headrace_train.monitored import WorkerSessionCreator as WorkerSessionCreator
    from headrace_train.object_checkpoints import Checkpoint as Checkpoint
    from headrace_train.object_checkpoints import CheckpointManager as CheckpointManager
    from headrace_train.optimizers import AdadeltaOptimizer as AdadeltaOptimizer
    from headrace_train.optimizers import AdagradDAOptimizer as AdagradDAOptimizer
    from headrace_train.optimizers import AdagradOptimizer as AdagradOptimizer
    from headrace_train.optimizers import AdamOptimizer as AdamOptimizer
    from headrace_train.optimizers import AdamWOptimizer as AdamWOptimizer
    from headrace_train.optimizers import (
        DecoupledWeightDecayExtension as DecoupledWeightDecayExtension,
    )
    from headrace_train.optimizers import Elements as Elements
    from headrace_train.optimizers import ElementwiseOptimizer as ElementwiseOptimizer
    from headrace_train.optimizers import FtrlOptimizer as FtrlOptimizer
    from headrace_train.optimizers import GradientDescentOptimizer as GradientDescentOptimizer
    from headrace_train.optimizers import LARSOptimizer as LARSOptimizer
    from headrace_train.optimizers import LazyAdamOptimizer as LazyAdamOptimizer
    from headrace_train.optimizers import LBFGSOptimizer as LBFGSOptimizer
    from headrace_train.optimizers import LBFGSStatus as LBFGSStatus
    from headrace_train.optimizers import LionOptimizer as LionOptimizer
    from headrace_train.optimizers import MomentumOptimizer as MomentumOptimizer
    from headrace_train.optimizers import MomentumWOptimizer as MomentumWOptimizer
    from headrace_train.optimizers import Optimizer as Optimizer
    from headrace_train.optimizers import ProximalAdagradOptimizer as ProximalAdagradOptimizer
    from headrace_train.optimizers import (
        ProximalGradientDescentOptimizer as ProximalGradientDescentOptimizer,
    )
    from headrace_train.optimizers import RMSPropOptimizer as RMSPropOptimizer
    from headrace_train.optimizers import Step as Step
    from headrace_train.optimizers import (
        extend_with_decoupled_weight_decay as extend_with_decoupled_weight_decay,
    )
    from headrace_train.parameters import ModelSummary as ModelSummary
    from headrace_train.parameters import ParameterRow as ParameterRow
    from headrace_train.parameters import model_summary as model_summary
    from headrace_train.pipelines import batch as batch
    from headrace_train.pipelines import batch_join as batch_join
    from headrace_train.pipelines import bucket as bucket
    from headrace_train.pipelines import bucket_by_sequence_length as bucket_by_sequence_length
    from headrace_train.pipelines import input_producer as input_producer
    from headrace_train.pipelines import limit_epochs as limit_epochs
    from headrace_train.pipelines import maybe_batch as maybe_batch
    from headrace_train.pipelines import maybe_batch_join as maybe_batch_join
    from headrace_train.pipelines import maybe_shuffle_batch as maybe_shuffle_batch
    from headrace_train.pipelines import maybe_shuffle_batch_join as maybe_shuffle_batch_join
    from headrace_train.pipelines import range_input_producer as range_input_producer
    from headrace_train.pipelines import shuffle_batch as shuffle_batch
    from headrace_train.pipelines import shuffle_batch_join as shuffle_batch_join
    from headrace_train.pipelines import slice_input_producer as slice_input_producer
    from headrace_train.pipelines import string_input_producer as string_input_producer
    from headrace_train.progress import Progress as Progress
    from headrace_train.queues import FIFOQueue as FIFOQueue
    from headrace_train.recomputation import recompute as recompute
    from headrace_train.runners import Coordinator as Coordinator
    from headrace_train.runners import LooperThread as LooperThread
    from headrace_train.runners import QueueRunner as QueueRunner
    from headrace_train.runners import add_queue_runner as add_queue_runner
    from headrace_train.runners import queue_runner as queue_runner
    from headrace_train.runners import start_queue_runners as start_queue_runners
    from headrace_train.saver import RestoreReport as RestoreReport
    from headrace_train.saver import Saver as Saver
    from headrace_train.schedules import cosine_decay as cosine_decay
    from headrace_train.schedules import cosine_decay_restarts as cosine_decay_restarts
    from headrace_train.schedules import exponential_decay as exponential_decay
    from headrace_train.schedules import inverse_time_decay as inverse_time_decay
    from headrace_train.schedules import linear_cosine_decay as linear_cosine_decay
    from headrace_train.schedules import linear_warmup as linear_warmup
    from headrace_train.schedules import natural_exp_decay as natural_exp_decay
    from headrace_train.schedules import noisy_linear_cosine_decay as noisy_linear_cosine_decay
    from headrace_train.schedules import piecewise_constant as piecewise_constant
    from headrace_train.schedules import piecewise_constant_decay as piecewise_constant_decay
    from headrace_train.schedules import polynomial_decay as polynomial_decay
    from headrace_train.staleness import StalenessRecorder as StalenessRecorder
    from headrace_train.staleness import StalenessSummary as StalenessSummary
    from headrace_train.steps import assert_global_step as assert_global_step
    from headrace_train.steps import create_global_step as create_global_step
    from headrace_train.steps import get_global_step as get_global_step
    from headrace_train.steps import get_or_create_global_step as get_or_create_global_step
    from headrace_train.steps import global_step as global_step
    from headrace_train.supervisor import Supervisor as Supervisor
    from headrace_train.sync_replicas import SyncReplicasCounters as SyncReplicasCounters
    from headrace_train.sync_replicas import SyncReplicasOptimizer as SyncReplicasOptimizer

# Module -> its public names. Modules are imported when a program first names one of these.
_FOUND_IN = {
    "": "datasets experimental",
    "averages": "ExponentialMovingAverage MovingAverageOptimizer",
    "checkpoint": """
        CheckpointReader checkpoint_exists generate_checkpoint_state_proto get_checkpoint_mtimes
        get_checkpoint_state latest_checkpoint remove_checkpoint update_checkpoint_state
    """,
    "clusters": """
        ClusterSpec GreedyLoadBalancingStrategy RandomStrategy RoundRobinStrategy
        byte_size_load_fn replica_device_setter
    """,
    "from_checkpoint": """
        NewCheckpointReader VocabInfo checkpoints_iterator init_from_checkpoint list_variables
        load_checkpoint load_variable warm_start
    """,
    "hooks": """
        CheckpointSaverHook CheckpointSaverListener EarlyStoppingHook FeedFnHook
        FinalOpsHook GlobalStepWaiterHook LoggingTensorHook NanLossDuringTrainingError
        NanTensorHook ProfilerHook ProgressHook SecondOrStepTimer SessionRunArgs
        SessionRunContext SessionRunHook SessionRunValues StepCounterHook StopAtStepHook
        SummarySaverHook
    """,
    "monitored": """
        ChiefSessionCreator MonitoredSession MonitoredTrainingSession Scaffold
        SessionCreator SessionManager SingularMonitoredSession WorkerSessionCreator
    """,
    "meta_graph": "export_meta_graph import_meta_graph write_graph",
    "object_checkpoints": "Checkpoint CheckpointManager",
    "optimizers": """
        AdadeltaOptimizer AdagradDAOptimizer AdagradOptimizer AdamOptimizer AdamWOptimizer
        DecoupledWeightDecayExtension Elements ElementwiseOptimizer FtrlOptimizer
        GradientDescentOptimizer LARSOptimizer LBFGSOptimizer LBFGSStatus
        LazyAdamOptimizer LionOptimizer MomentumOptimizer MomentumWOptimizer Optimizer
        ProximalAdagradOptimizer ProximalGradientDescentOptimizer RMSPropOptimizer Step
        extend_with_decoupled_weight_decay
    """,
    "parameters": "ModelSummary ParameterRow model_summary",
    "pipelines": """
        batch batch_join bucket bucket_by_sequence_length input_producer limit_epochs
        maybe_batch maybe_batch_join maybe_shuffle_batch maybe_shuffle_batch_join
        range_input_producer shuffle_batch shuffle_batch_join slice_input_producer
        string_input_producer
    """,
    "progress": "Progress",
    "queues": "FIFOQueue",
    "recomputation": "recompute",
    "runners": """
        Coordinator LooperThread QueueRunner add_queue_runner queue_runner
        start_queue_runners
    """,
    "saver": "RestoreReport Saver",
    "schedules": """
        cosine_decay cosine_decay_restarts exponential_decay inverse_time_decay
        linear_cosine_decay linear_warmup natural_exp_decay noisy_linear_cosine_decay
        piecewise_constant piecewise_constant_decay polynomial_decay
    """,
    "staleness": "StalenessRecorder StalenessSummary",
    "steps": """
        assert_global_step create_global_step get_global_step get_or_create_global_step
        global_step
    """,
    "supervisor": "Supervisor basic_train_loop",
    "sync_replicas": "SyncReplicasCounters SyncReplicasOptimizer",
}

__all__: list[str] = []
__all__ += [name for names in _FOUND_IN.values() for name in names.split()]

if not TYPE_CHECKING:
    __getattr__, __dir__ = added_names("train", __name__, _FOUND_IN)
