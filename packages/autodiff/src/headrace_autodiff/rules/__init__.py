"""One gradient rule per differentiable op, in files named by op family.

A rule takes the operation and the gradients of its outputs (None where none arrives, else dense)
and returns one gradient, or None, for each input. Rules are built of ordinary ops that have rules
themselves, so that gradients differentiate again.
"""

from __future__ import annotations

from headrace_autodiff.rules import (
    array,
    constant,
    control,
    conv,
    elementwise,
    indexing,
    linalg,
    nn,
    reduce,
    state,
)

TABLES = tuple(
    module.RULES
    for module in (
        array,
        constant,
        control,
        conv,
        elementwise,
        indexing,
        linalg,
        nn,
        reduce,
        state,
    )
)

__all__ = ["TABLES"]
