"""``ops.resource_variable_ops``: there is one kind of variables."""

from __future__ import annotations

from typing import Any

import headrace as hr

ResourceVariable = hr.Variable
# What ``tf.Variable`` makes, as TensorFlow 1 names its class.
RefVariable = hr.Variable


def is_resource_variable(var: Any) -> bool:
    """Tell whether something is a variable, each of which is read and written in order."""
    return isinstance(var, hr.Variable)


PartitionedVariable = hr.PartitionedVariable
