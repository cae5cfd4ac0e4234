"""Switches between modes of TensorFlow (eager or graphs, v1 or v2), and which are in force here."""

from __future__ import annotations

from typing import Any, NoReturn

from headrace.errors import UnimplementedError


def executing_eagerly() -> bool:
    """Return False: operations run in steps of a session."""
    return False


def enable_eager_execution(
    config: Any = None, device_policy: Any = None, execution_mode: Any = None
) -> NoReturn:
    """Refuse: there is no eager mode.

    Args:
        config: Not used.
        device_policy: Not used.
        execution_mode: Not used.

    Raises:
        UnimplementedError: always.
    """
    del config, device_policy, execution_mode
    raise UnimplementedError(
        "there is no eager mode: build a graph, and run it with hr.Session; "
        "hr.InteractiveSession and tensor.eval() are there for trying things out"
    )


def enable_v2_behavior() -> NoReturn:
    """Refuse, as ``enable_eager_execution`` does.

    Raises:
        UnimplementedError: always.
    """
    enable_eager_execution()


def disable_eager_execution() -> None:
    """Do nothing: there is no eager mode."""


def disable_v2_behavior() -> None:
    """Do nothing: the behaviour is that of TensorFlow 1.x."""


def disable_v2_tensorshape() -> None:
    """Do nothing: shapes are made of dimensions."""


def disable_tensor_equality() -> None:
    """Do nothing: ``==`` compares whether tensors are the same one."""


def enable_resource_variables() -> None:
    """Do nothing: all variables are resources."""


def resource_variables_enabled() -> bool:
    """Return True: all variables are resources."""
    return True


def enable_control_flow_v2() -> None:
    """Do nothing: conditions and loops are functions that operations hold."""


def control_flow_v2_enabled() -> bool:
    """Return True: conditions and loops are functions that operations hold."""
    return True


def disable_control_flow_v2() -> None:
    """Do nothing: conditions and loops are functions that operations hold, whatever is asked."""


def disable_resource_variables() -> None:
    """Do nothing: all variables are resources, whatever is asked."""


def enable_tensor_equality() -> NoReturn:
    """Refuse: ``==`` compares whether tensors are the same one.

    Raises:
        UnimplementedError: always.
    """
    raise UnimplementedError("`==` compares whether tensors are the same one; use hr.equal")


def enable_v2_tensorshape() -> NoReturn:
    """Refuse: shapes are made of dimensions.

    Raises:
        UnimplementedError: always.
    """
    raise UnimplementedError("shapes are made of dimensions; hr.Shape(x.shape) is made of integers")
