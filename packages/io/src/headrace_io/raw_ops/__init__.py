"""Single ops by TensorFlow's names for them: ``hr.raw_ops.Squeeze(input=x, axis=[0])``.

Each op that graphs of TensorFlow are read with is here, built of Headrace's operations by the same
translation. Inputs and attributes are given by name, as TensorFlow 1.15's ``tf.raw_ops`` has them.
"""

from __future__ import annotations

from typing import Any

from headrace_io.raw_ops.building import names, raw_op


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return raw_op(name)


def __dir__() -> list[str]:
    return list(names())
