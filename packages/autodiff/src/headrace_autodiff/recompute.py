"""Functions that keep nothing for their gradient, and compute it all again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from headrace.graph.scopes import control_dependencies, name_scope
from headrace.ops.identity import identity, stop_gradient
from headrace_autodiff.custom import custom_gradient
from headrace_autodiff.gradients import gradients


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Let the gradient of a function compute its inside again, instead of keeping it in memory.

    A net whose parts are wrapped so holds the tensors between the parts through a step, and the
    inside of one part at a time, for the price of one more forward pass.

    Args:
        f: A function from tensors to a tensor or a list of tensors. It must give the same result
            when called twice: no random numbers without a seed of their own, no assignments.

    Returns:
        A function that computes the same, with the same gradients with respect to its arguments
        and to variables. No gradient flows to other tensors that ``f`` uses: pass them in.

    References:
        T. Chen, B. Xu, C. Zhang, C. Guestrin, Training deep nets with sublinear memory cost,
        arXiv:1604.06174, 2016.
    """

    @custom_gradient
    def recomputing(*args: Any, **kwargs: Any) -> Any:
        found = f(*args, **kwargs)

        def gradient(*grads: Any, variables: Any = ()) -> Any:
            # Only when the gradients are there: at once, it would all be kept once more.
            arrived = [g for g in grads if g is not None]
            with name_scope("recompute"), control_dependencies(arrived):
                again = [identity(stop_gradient(a)) for a in args]
                ys = f(*again, **kwargs)
                found = gradients(ys, [*again, *variables], list(grads), name="grad")
            of_arguments = found[: len(again)]
            return (of_arguments, found[len(again) :]) if variables else of_arguments

        return found, gradient

    return functools.wraps(f)(recomputing)
