"""The functions that programs call: ops and compositions of ops, under their public names."""

from headrace.cli.coverage import (
    PublicFunction,
    public_functions,
)

__all__ = [
    "PublicFunction",
    "public_functions",
]
