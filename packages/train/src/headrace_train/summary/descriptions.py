"""What operations that tell of tensors say of themselves."""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError


def get_summary_description(node_def: Any) -> Any:
    """Return the description that a node of type ``TensorSummary`` holds.

    TensorFlow's older programs have such nodes.

    Args:
        node_def: A ``NodeDef``.

    Returns:
        A ``SummaryDescription``.

    Raises:
        AttributeValueError: if it is of another type.
        DataLossError: if what it holds is no description.
    """
    # lazy: few programs ask
    from headrace_io.protos.convert import message_from_json

    if node_def.op != "TensorSummary":
        raise AttributeValueError(f"Can't get_summary_description on {node_def.op}")
    return message_from_json("SummaryDescription", node_def.attr["description"].s)
