"""Functions that keep nothing for their gradient, and compute it all again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from headrace import (
    Operation,
    Tensor,
    Variable,
    convert_to_tensor,
    get_default_graph,
    identity_n,
    name_scope,
)
from headrace.errors import GraphError, shown
from headrace.extend.graphs import gradient_override_map
from headrace_autodiff.accumulate import Grad, accumulated
from headrace_autodiff.checkpointing.again import Again
from headrace_autodiff.checkpointing.chain import may_run_again, repeatable
from headrace_autodiff.liveness import Liveness
from headrace_autodiff.reverse_mode import gradients
from headrace_autodiff.walk import ancestors


def recompute_grad(f: Callable[..., Any]) -> Callable[..., Any]:
    """Let the gradient of a part of a model compute its inside again, instead of keeping it.

    A net whose parts are wrapped so holds the tensors between the parts through a step, and the
    inside of one part at a time, for the price of one more forward pass at most.

    ``f`` is called once, and its operations are copied for the gradient. What has an effect or
    draws random numbers is not copied: state changes once, and dropout drops the same elements.
    Variables are read once. Gradients flow to all tensors and variables that ``f`` uses, whether
    they are arguments or not.

    Example::

        @hr.train.recompute
        def block(h):
            return hr.nn.relu(hr.matmul(h, hr.get_variable("w", [512, 512])))

    Args:
        f: A function that builds a part of a model: from any arguments to a tensor, or to a list or
            tuple of tensors.

    Returns:
        A function that builds the same.

    Raises:
        GraphError: when called, if ``f`` returns no tensors.

    References:
        T. Chen, B. Xu, C. Zhang, C. Guestrin, Training deep nets with sublinear memory cost,
        arXiv:1604.06174, 2016.
    """

    @functools.wraps(f)
    def recomputing(*args: Any, **kwargs: Any) -> Any:
        graph = get_default_graph()
        with name_scope(None, "Recompute") as scope:
            start = graph.version
            answer = f(*args, **kwargs)
            ys = _results(f, answer)
            inside = _Inside(ys, start, scope)
            if not inside.operations:
                return answer
            graph.gradient_rules[scope] = inside.gradient
            with gradient_override_map({"IdentityN": scope}):
                outputs = identity_n([*ys, *inside.takes])
        if isinstance(answer, list | tuple):
            return type(answer)(outputs[: len(ys)])
        return outputs[0]

    return recomputing


def _results(f: Callable[..., Any], answer: Any) -> list[Tensor]:
    given = list(answer) if type(answer) in (list, tuple) else [answer]
    if not given or not all(isinstance(item, Tensor | Variable) for item in given):
        raise GraphError(
            f"recompute: {getattr(f, '__name__', 'f')} must return a tensor, or a list or tuple of "
            f"tensors; got {shown(answer)}"
        )
    return [convert_to_tensor(item) for item in given]


class _Inside:
    """What a call has built, and its gradient.

    Attributes:
        operations: What the gradient computes again.
        takes: The tensors from which it does so, in order: of before the call, of what it reads
            and draws, and of what stands in a function for tensors of graphs around.
    """

    def __init__(self, ys: Sequence[Tensor], start: int, scope: str) -> None:
        """Look at what was built.

        Args:
            ys: What the call returns.
            start: The number of the first operation that it built.
            scope: The name scope for what is computed again.
        """
        self._ys = list(ys)
        self._scope = scope
        inside = [op for op in ancestors(ys) if op.index >= start]
        liveness = Liveness(inside)
        computed = {op for op in inside if op.inputs and may_run_again(op, liveness)}
        used = dict.fromkeys((*(t for op in inside if op in computed for t in op.inputs), *ys))
        self.takes = [t for t in used if t.op not in computed and _is_taken(t, start)]
        self.operations = repeatable(inside, self.takes, (), liveness)

    def gradient(self, op: Operation, *grads: Tensor | None) -> list[Grad]:
        """Return the gradients of what stands for the call: its results, and what it takes."""
        count = len(self._ys)
        arrived = [(y, g) for y, g in zip(self._ys, grads, strict=False) if g is not None]
        # Only when the gradients are there: at once, it would all be kept once more.
        again = Again(self.operations, f"{self._scope}again/")
        again.wait_for(g.op for _, g in arrived)
        starts = again.start_from(dict(zip(self.takes, op.inputs[count:], strict=True)))
        ys = [starts[y] if y in starts else again.value(y) for y, _ in arrived]
        wanted = [t for t in self.takes if t.dtype.is_differentiable]
        found: list[Grad] = gradients(
            ys, [starts[t] for t in wanted], [g for _, g in arrived], name="grad"
        )
        of = dict(zip(wanted, found, strict=True))
        return [*[None] * count, *_summed(map(of.get, self.takes), grads[count:])]


def _is_taken(tensor: Tensor, start: int) -> bool:
    if tensor.dtype.kind in ("resource", "list"):
        return False
    constant = tensor.op.type == "Const"
    return not constant or (tensor.op.index < start and tensor.dtype.is_differentiable)


def _summed(found: Iterable[Grad], passed: Sequence[Tensor | None]) -> list[Grad]:
    """Return gradients, with those that arrive at the outputs that only pass on what is taken."""
    return [
        accumulated([g for g in pair if g is not None])
        if any(g is not None for g in pair)
        else None
        for pair in zip(found, passed, strict=True)
    ]
