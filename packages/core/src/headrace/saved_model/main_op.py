"""Operations to run when a model was loaded, as ``hr.saved_model.main_op``."""

from __future__ import annotations

from headrace.errors import GraphError
from headrace.graph.operation import Operation
from headrace.graph.scopes import control_dependencies, get_default_graph
from headrace.ops.control import group
from headrace.ops.tables import tables_initializer
from headrace.ops.variable import global_variables_initializer, local_variables_initializer


def main_op() -> Operation:
    """Return an operation that initializes all variables and tables of the default graph.

    Run after loading, it sets the variables to their initial values again.
    """
    return group(
        global_variables_initializer(), local_variables_initializer(), tables_initializer()
    )


def main_op_with_restore(restore_op_name: str) -> Operation:
    """Return an operation that does what ``main_op`` does, and runs another one.

    Args:
        restore_op_name: The other operation or its name, such as one that restores a checkpoint.

    Raises:
        GraphError: if the default graph has no such operation.
    """
    restore = get_default_graph().as_graph_element(restore_op_name)
    if not isinstance(restore, Operation):
        raise GraphError(f"{restore_op_name!r} is a tensor, expected the name of an operation")
    with control_dependencies([main_op()]):
        return group(restore)
