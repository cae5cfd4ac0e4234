"""``hr.config.threading``: how many threads sessions use."""

from headrace.arguments import whole as _whole
from headrace.config.state import STATE as _STATE

__all__ = [
    "get_inter_op_parallelism_threads",
    "get_intra_op_parallelism_threads",
    "set_inter_op_parallelism_threads",
    "set_intra_op_parallelism_threads",
]


def get_intra_op_parallelism_threads() -> int:
    """Return how many threads kernels use; 0 for all cores."""
    return _STATE.intra_op


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Say how many threads kernels use.

    Args:
        num_threads: The number; 0 for all cores.

    Raises:
        AttributeValueError: if it is less than 0, or no whole number.
    """
    _STATE.change(intra_op=_whole(num_threads, "num_threads", least=0))


def get_inter_op_parallelism_threads() -> int:
    """Return how many operations run at one time; 0 for as many as ``hr.Config`` would."""
    return _STATE.inter_op


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Say how many operations run at one time.

    Args:
        num_threads: The number; 0 for as many as ``hr.Config`` would.

    Raises:
        AttributeValueError: if it is less than 0, or no whole number.
    """
    _STATE.change(inter_op=_whole(num_threads, "num_threads", least=0))
