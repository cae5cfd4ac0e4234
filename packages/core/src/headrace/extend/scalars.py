"""Scalar expressions: what elementwise ops compute of each element, for compilers."""

from headrace.scalars.expression import (
    Expression,
    expression_of,
    is_total,
)
from headrace.scalars.functions import (
    SCALAR_FUNCTIONS,
    ScalarFunction,
)
from headrace.scalars.interpret import (
    computable,
    interpreter,
)
from headrace.scalars.scalar import (
    CONSTANT,
    INPUT,
    Scalar,
    Scalars,
)

__all__ = [
    "CONSTANT",
    "INPUT",
    "SCALAR_FUNCTIONS",
    "Expression",
    "Scalar",
    "ScalarFunction",
    "Scalars",
    "computable",
    "expression_of",
    "interpreter",
    "is_total",
]
