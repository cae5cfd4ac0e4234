"""Python functions as operations."""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any, final

from headrace.arguments import items
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, shown
from headrace.graph.scopes import get_default_graph
from headrace.graph.spec import TensorSpec
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything
from headrace.shapes import UNKNOWN

_FOREIGN = "what a Python function does is not known; hr.custom_gradient can give it one"


@final
class PythonFunction:
    """A Python function that operations of a graph call.

    Attributes:
        function: The function.
        name: Its name, for messages.
    """

    __slots__ = ("__weakref__", "function", "name")

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name: str = getattr(function, "__name__", type(function).__name__)


# Documents cannot hold Python functions: operations name them by tokens that mean something in one
# process alone, for as long as a graph that has such an operation lives.
_FUNCTIONS: weakref.WeakValueDictionary[str, PythonFunction] = weakref.WeakValueDictionary()
_OWNERS: weakref.WeakKeyDictionary[Any, list[PythonFunction]] = weakref.WeakKeyDictionary()
_NUMBERS = itertools.count()
_PROCESS = os.urandom(8).hex()


def python_function(token: str) -> PythonFunction:
    """Return the function that a token names.

    Raises:
        AttributeValueError: if there is none in this process.
    """
    found = _FUNCTIONS.get(token)
    if found is None:
        raise AttributeValueError(
            "the Python function of a py_func lives in the process that built it, and neither in "
            "graph documents nor in other tasks of a cluster: build the graph anew, and place "
            "the operation on a device of the client's own task"
        )
    return found


@op("PyFunc", effects="changes", calls_out=True, reaches="python", public="", no_gradient=_FOREIGN)
def _call(
    token: str, output_types: tuple[DType, ...], inputs: Sequence[Anything] = ()
) -> list[Spec]:
    """Call a Python function in the step.

    Args:
        token: Names the function in this process.
        output_types: The dtype of each output.
        inputs: What it is called with.

    Returns:
        What it returns, of any shapes.
    """
    return _specs(token, output_types)


@op("PyFuncStateless", reaches="python", public="", no_gradient=_FOREIGN)
def _call_stateless(
    token: str, output_types: tuple[DType, ...], inputs: Sequence[Anything] = ()
) -> list[Spec]:
    """Call a Python function whose results depend on its inputs alone; perhaps less often.

    Args:
        token: Names the function in this process.
        output_types: The dtype of each output.
        inputs: What it is called with.

    Returns:
        What it returns, of any shapes.
    """
    return _specs(token, output_types)


@op(
    "PyFuncEffect",
    effects="changes",
    calls_out=True,
    reaches="python",
    public="",
    no_gradient="it has no outputs",
)
def _call_effect(token: str, inputs: Sequence[Anything] = ()) -> None:
    """Call a Python function for what it does, not for what it returns.

    Args:
        token: Names the function in this process.
        inputs: What it is called with.
    """
    python_function(token)


def _specs(token: str, output_types: tuple[DType, ...]) -> list[Spec]:
    python_function(token)
    for dtype in output_types:
        if dtype.kind not in ("string", "bool") and not dtype.is_numeric:
            raise DTypeError(f"a Python function returns no {dtype}")
    return [TensorSpec(dtype, UNKNOWN) for dtype in output_types]


def py_func(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,  # noqa: N803
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Call a Python function when a step runs.

    The function runs on the host: in the thread that runs the step where nothing else of the step
    could run, otherwise in a thread of its own, so that it may wait for what other operations do.
    Calls of several iterations of a loop may run at one time (see ``parallel_iterations`` of
    ``hr.while_loop``).
    Graphs with such operations can be written to documents, but documents do not hold the
    function: they are read only in the process that built it, while the graph lives.

    Args:
        func: Is called with an array for each input (a NumPy scalar, or ``bytes``, for each without
            dimensions), and returns arrays: one, or a list or tuple of as many as ``Tout`` has.
            It must not change its arguments.
        inp: The inputs, tensors or what converts to them.
        Tout: The dtype of the output, or a list of dtypes; an empty one if ``func`` returns None.
            Arrays that it returns must have them; numbers of Python take them.
        stateful: Whether calls with the same inputs may differ. Others may be left out.
        name: The name of the operation.

    Returns:
        A tensor, a list of tensors where ``Tout`` is a list, or the operation where it is empty
        and ``stateful`` is set.
        Shapes are unknown; there is no gradient, but ``hr.custom_gradient`` can give one.

    Raises:
        AttributeValueError: if ``func`` is not callable.
        DTypeError: if ``Tout`` holds no dtypes.
    """
    if not callable(func):
        raise AttributeValueError(f"py_func needs a function, got {shown(func)}")
    listed = isinstance(Tout, list | tuple)
    types = tuple(as_dtype(t) for t in (Tout if listed else [Tout]))
    token = f"{_PROCESS}-{next(_NUMBERS)}"
    holder = PythonFunction(func)
    _FUNCTIONS[token] = holder
    _OWNERS.setdefault(get_default_graph().outermost, []).append(holder)
    if not types:
        called = _call_effect(token, items(inp, "inp"), name=name or "PyFunc")
        return called if stateful else []
    call = _call if stateful else _call_stateless
    outputs = call(token, types, items(inp, "inp"), name=name or "PyFunc")
    return outputs if listed else outputs[0]


def numpy_function(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,  # noqa: N803
    name: str | None = None,
) -> Any:
    """Call a Python function of arrays when a step runs: ``py_func`` under another name.

    Args:
        func: The function.
        inp: The inputs.
        Tout: The dtype of the output, or a list of dtypes.
        name: The name of the operation.

    Returns:
        As ``py_func``.
    """
    return py_func(func, inp, Tout, stateful=True, name=name)


def py_function(
    func: Callable[..., Any],
    inp: Sequence[Any],
    Tout: Any,  # noqa: N803
    name: str | None = None,
) -> Any:
    """Call a Python function when a step runs: ``py_func`` under another name.

    There are no eager tensors here: the function is called with arrays, and gradients do not pass
    through it unless ``hr.custom_gradient`` gives them.

    Args:
        func: The function.
        inp: The inputs.
        Tout: The dtype of the output, or a list of dtypes.
        name: The name of the operation.

    Returns:
        As ``py_func``.
    """
    return py_func(func, inp, Tout, stateful=True, name=name)
