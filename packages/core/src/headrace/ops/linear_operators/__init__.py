"""Linear operators: matrices that are known by what they do, as ``hr.linalg.LinearOperator...``."""

from headrace.ops.linear_operators import products as _products

# What operators make of each other; the module enters it in tables.
del _products
