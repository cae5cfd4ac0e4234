"""Single ops by TensorFlow's names for them: ``hr.raw_ops.Squeeze(input=x, axis=[0])``.

Each op that graphs of TensorFlow are read with is here, built of Headrace's operations by the same
translation. Inputs and attributes are given by name, as TensorFlow 1.15's ``tf.raw_ops`` has them.
"""

from __future__ import annotations

import typing as _typing

from headrace_io.raw_ops import building as _building


def __getattr__(name: str) -> _typing.Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return _building.raw_op(name)


def __dir__() -> list[str]:
    return list(_building.names())
