"""How replicas of a program would share variables: words of TensorFlow's that programs name."""

from __future__ import annotations

import enum
from typing import Any

from headrace.errors import AttributeValueError, shown


class VariableSynchronization(enum.Enum):
    """When copies of a variable would be brought together. Here each variable is one buffer."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How changes that several replicas make would be joined. Here each is made by itself."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3
    # Its older name.
    ONLY_FIRST_TOWER = 3  # noqa: PIE796

    def __hash__(self) -> int:
        """Equal values hash alike."""
        return hash(self.value)


def checked_sharing(
    synchronization: Any, aggregation: Any, trainable: bool | None, name: Any
) -> tuple[VariableSynchronization, VariableAggregation, bool]:
    """Return what a variable is made with; what is to be read of all copies is not trained.

    Raises:
        AttributeValueError: if a word is none of these.
    """
    if aggregation is not None and not isinstance(aggregation, VariableAggregation):
        raise AttributeValueError(
            f"Invalid variable aggregation mode: {shown(aggregation)} for variable: {shown(name)}"
        )
    known = isinstance(synchronization, VariableSynchronization | int | None)
    try:
        when = VariableSynchronization(synchronization or 0 if known else None)
    except (ValueError, TypeError):
        raise AttributeValueError(
            f"Invalid variable synchronization mode: {shown(synchronization)} for variable: "
            f"{shown(name)}"
        ) from None
    trained = when is not VariableSynchronization.ON_READ if trainable is None else bool(trainable)
    return when, aggregation or VariableAggregation.NONE, trained
