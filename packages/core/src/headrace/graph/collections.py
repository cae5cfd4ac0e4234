"""Collections: named lists of what a graph's parts have to find again, such as its variables."""

from __future__ import annotations

from typing import Any, final

from headrace.graph.scopes import get_default_graph


@final
class GraphKeys:
    """The names of the collections that libraries agree on.

    Headrace itself fills those of variables, of what regularizers and losses return, and of the
    initializers of tables; the others are there for programs.
    """

    GLOBAL_VARIABLES = "variables"
    LOCAL_VARIABLES = "local_variables"
    METRIC_VARIABLES = "metric_variables"
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = "trainable_variables"
    MOVING_AVERAGE_VARIABLES = "moving_average_variables"
    CONCATENATED_VARIABLES = "concatenated_variables"
    SUMMARIES = "summaries"
    QUEUE_RUNNERS = "queue_runners"
    TABLE_INITIALIZERS = "table_initializer"
    ASSET_FILEPATHS = "asset_filepaths"
    REGULARIZATION_LOSSES = "regularization_losses"
    SAVERS = "savers"
    WEIGHTS = "weights"
    BIASES = "biases"
    ACTIVATIONS = "activations"
    UPDATE_OPS = "update_ops"
    LOSSES = "losses"
    SAVEABLE_OBJECTS = "saveable_objects"
    RESOURCES = "resources"
    LOCAL_RESOURCES = "local_resources"
    INIT_OP = "init_op"
    LOCAL_INIT_OP = "local_init_op"
    READY_OP = "ready_op"
    READY_FOR_LOCAL_INIT_OP = "ready_for_local_init_op"
    SUMMARY_OP = "summary_op"
    GLOBAL_STEP = "global_step"
    EVAL_STEP = "eval_step"
    TRAIN_OP = "train_op"
    TRAINABLE_RESOURCE_VARIABLES = "trainable_resource_variables"
    COND_CONTEXT = "cond_context"
    WHILE_CONTEXT = "while_context"
    VARIABLES = GLOBAL_VARIABLES


def usual_collections(trainable: bool) -> list[str]:
    """Return the collections of a variable for which none were given."""
    usual = [GraphKeys.GLOBAL_VARIABLES]
    return [*usual, GraphKeys.TRAINABLE_VARIABLES] if trainable else usual


def add_to_collection(name: Any, value: Any) -> None:
    """Append ``value`` to the collection ``name`` of the default graph, again if it is in there.

    Args:
        name: The collection, one of ``GraphKeys`` or any other name.
        value: Anything.
    """
    get_default_graph().outermost.add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    """Append ``value`` to collections of the default graph, once to each.

    Args:
        names: The collections, or the name of one.
        value: Anything.
    """
    get_default_graph().outermost.add_to_collections(names, value)


def get_collection(key: Any, scope: str | None = None) -> list[Any]:
    """Return what is in a collection of the default graph, as a new list.

    Args:
        key: The collection; one that is not there is empty.
        scope: A regular expression at the beginning of names; what does not match, or has no
            name, is left out.
    """
    return get_default_graph().outermost.get_collection(key, scope)


def get_collection_ref(key: Any) -> list[Any]:
    """Return a collection of the default graph itself: changes of the list change it.

    Args:
        key: The collection, made where it is not there.
    """
    return get_default_graph().outermost.get_collection_ref(key)
