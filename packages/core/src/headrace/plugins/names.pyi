"""Names that the official plugins add under ``headrace``, as type checkers see them."""

import headrace_mpi as dist
import headrace_train as train
from headrace_autodiff import gradients as gradients

__all__ = ["dist", "gradients", "train"]
