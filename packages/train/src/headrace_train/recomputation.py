"""Gradient checkpointing: parts of a model whose activations are computed again for gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as hr


def recompute(f: Callable[..., Any]) -> Callable[..., Any]:
    """Let the gradient of a part of a model compute its inside again, instead of keeping it.

    The same as ``hr.recompute_grad``. ``hr.gradients(..., memory_budget=...)`` chooses the parts
    by itself.

    Example::

        @hr.train.recompute
        def block(h):
            return hr.nn.relu(hr.matmul(h, hr.get_variable("w", [512, 512])))

    Args:
        f: A function that builds a part of a model: from any arguments to a tensor, or to a list or
            tuple of tensors.

    Returns:
        A function that builds the same, with the same gradients. State changes once, and random
        numbers are drawn once.

    Raises:
        GraphError: when called, if ``f`` returns no tensors.
    """
    wrapped: Callable[..., Any] = hr.recompute_grad(f)
    return wrapped
