"""Gradients of calls that compute the inside of what they call once more.

A function that calls another one in both branches of a condition, which calls another one so, and
so on, has 2^n ways through it, n deep. To keep what each of them computes for the gradient takes a
tensor for each operation of each way; to run the function again, from its arguments, takes none.

References:
    T. Chen et al., Training deep nets with sublinear memory cost, arXiv:1604.06174, 2016.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace import Tensor
from headrace.extend.graphs import Function, functions_in, functions_of, inside
from headrace.extend.primitives import call_function
from headrace_autodiff.backward import Backward, gradient_spec


def repeated(function: Function) -> int:
    """Return how many operations a call may run besides one run of each that there is.

    All branches count as run, and loops as run once.
    """
    held = functions_in(function)
    sizes: dict[Function, int] = {}
    for each in (*held, function):
        # All views of one run are one operation in the end.
        own = [op for op in each.operations if not op.attrs.get("run")]
        sizes[each] = len(own) + sum(sizes[f] for op in own for f in functions_of(op))
    return sizes[function] - sum(len(each) for each in sizes)


def run_again(function: Function, ys: Sequence[Tensor], backward: Backward) -> Function:
    """Return a function that runs another one, and returns what its gradient does.

    Args:
        function: The function; running it twice is the same as running it once.
        ys: The tensors of its inside at which gradients arrive.
        backward: Its gradient.

    Returns:
        A function of the arguments of ``function``, and of the gradients that arrive.
    """
    key = "again", backward.function
    made: Function | None = function.derived.get(key)
    if made is not None:
        return made
    made = Function(f"{function.name}_again", backward.function.outer)
    with inside(made):
        given = [made.add_parameter(p.spec) for p in function.parameters]
        arriving = [made.add_parameter(gradient_spec(y), "grad") for y in ys]
        own = [t for t in backward.wanted if t.op.graph is function and t.op.type != "Parameter"]
        names = tuple(dict.fromkeys(t.name for t in own))
        outputs = call_function(given, function=function, saves=names)
        kept = dict(zip(names, outputs[len(function.results) :], strict=True))
        arguments = [argument(t, function, given, kept) for t in backward.wanted]
        results = call_function([*arriving, *arguments], function=backward.function)
        made.finish(results)
    function.derived[key] = made
    return made


def argument(
    tensor: Tensor, function: Function, given: Sequence[Tensor], kept: Mapping[str, Tensor]
) -> Tensor:
    """Return what a gradient's function takes for a tensor that it wants.

    Args:
        tensor: A tensor of the inside of ``function``, or of a graph around it.
        function: The function that is differentiated.
        given: Its arguments.
        kept: What was kept of its inside, by name.
    """
    if tensor.op.graph is not function:
        return tensor
    if tensor.op.type == "Parameter":
        index: int = tensor.op.attrs["index"]
        return given[index]
    return kept[tensor.name]
