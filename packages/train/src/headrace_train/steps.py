"""The global step: the variable that counts steps of training."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

import headrace as hr
from headrace import Graph, Tensor, Variable
from headrace.errors import DTypeError, FailedPreconditionError, GraphError, shown

_NAME = "global_step"
GLOBAL_STEP_READ = "global_step_read_op_cache"

_log = logging.getLogger("headrace.train")


def get_global_step(graph: Graph | None = None) -> Variable | None:
    """Return the global step of a graph, None where there is none.

    That is what the collection ``GLOBAL_STEP`` lists, or else the variable ``global_step``.

    Args:
        graph: The graph; the default graph if None.

    Raises:
        DTypeError: if it is no integer scalar.
    """
    owner = graph if graph is not None else hr.get_default_graph()
    listed = owner.get_collection(hr.GraphKeys.GLOBAL_STEP)
    if len(listed) > 1:
        _log.error("the graph lists %d global steps", len(listed))
        return None
    found = listed[0] if listed else None
    if found is None:
        found = next((v for v in owner.variables if v.op_name == _NAME), None)
    if found is not None:
        assert_global_step(found)
    return found


def named_global_step() -> Variable | Tensor | None:
    """Return what the default graph has under the name ``global_step``, None where it counts none.

    Supervisors take it, of one element of any rank.
    """
    graph = hr.get_default_graph()
    found: Any = next((v for v in graph.variables if v.op_name == _NAME), None)
    if found is None:
        op = graph.find_operation(_NAME)
        found = op.outputs[0] if op is not None and op.outputs else None
    if found is not None and found.dtype not in (hr.int32, hr.int64):
        _log.warning("%s counts no steps: it is %s, not int32 or int64", found.name, found.dtype)
        return None
    return found  # type: ignore[no-any-return]


def create_global_step(graph: Graph | None = None) -> Variable:
    """Make the variable ``global_step``, int64, which optimizers increment when it is passed.

    It is a variable of the variable scope in force, whose name goes before its own.

    Args:
        graph: The graph; the default graph if None.

    Raises:
        GraphError: if the graph has one already.
    """
    owner = graph if graph is not None else hr.get_default_graph()
    if get_global_step(owner) is not None:
        raise GraphError("the graph has a global step already: use get_or_create_global_step()")
    with owner.as_default(), hr.name_scope(""):
        keys = [hr.GraphKeys.GLOBAL_VARIABLES, hr.GraphKeys.GLOBAL_STEP]
        made: Variable = hr.get_variable(
            _NAME, [], hr.int64, hr.zeros_initializer(), trainable=False, collections=keys
        )
        return made


def get_or_create_global_step(graph: Graph | None = None) -> Variable:
    """Return the variable ``global_step`` of a graph, made when there is none.

    Args:
        graph: The graph; the default graph if None.
    """
    owner = graph if graph is not None else hr.get_default_graph()
    found = get_global_step(owner)
    return create_global_step(owner) if found is None else found


def assert_global_step(global_step_tensor: Any) -> None:
    """Refuse what cannot count steps.

    Args:
        global_step_tensor: What must be an integer scalar, a variable or a tensor.

    Raises:
        DTypeError: if it is not.
    """
    if not isinstance(global_step_tensor, Variable | Tensor):
        raise DTypeError(
            f"the global step must be a variable or a tensor, got {shown(global_step_tensor)}"
        )
    shape = global_step_tensor.shape.plain
    if not (global_step_tensor.dtype.is_integer and shape.is_compatible_with(())):
        raise DTypeError(
            f"the global step must be an integer scalar, got {shown(global_step_tensor)}; give "
            "one of "
            "them another name"
        )


def global_step(sess: Any, global_step_tensor: Any) -> int:
    """Return the number of steps so far in a session.

    Args:
        sess: A session of the graph.
        global_step_tensor: The global step, or the name of the tensor.
    """
    # One element of any rank, as programs have it that fill a vector of one.
    return int(np.asarray(sess.run(global_step_tensor)).item())


# The collection of the tensor by which hooks read the global step.


def global_step_read(who: str) -> Tensor:
    """Return the tensor by which hooks read the global step of the default graph.

    All hooks share it, so that steps fetch it once. Of a variable it follows the read that was made
    with it, before all that changes it: a variable that is fetched itself is read at the end.

    Args:
        who: The hook, for the message.

    Raises:
        FailedPreconditionError: if there is no global step.
    """
    graph = hr.get_default_graph()
    listed = graph.get_collection(GLOBAL_STEP_READ)
    if len(listed) > 1:
        raise FailedPreconditionError(
            f"There are multiple items in collection {GLOBAL_STEP_READ}. There should be only one."
        )
    if listed:
        return listed[0]  # type: ignore[no-any-return]
    found = get_global_step(graph)
    if found is None:
        raise FailedPreconditionError(
            f"Global step should be created to use {who}: call "
            "hr.train.get_or_create_global_step() before the session is made"
        )
    made: Any = found
    # A collection may hold a tensor, too.
    read: Tensor
    if isinstance(made, Tensor):
        read = made
    else:
        with hr.name_scope(made.op_name + "/"), hr.colocate_with(made.snapshot):
            read = hr.identity(made.snapshot, name="before")
    graph.add_to_collection(GLOBAL_STEP_READ, read)
    return read
