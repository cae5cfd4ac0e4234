"""Records: frozen dataclasses with slots that are made quicker than the standard library's."""

from headrace.records import (
    dataclass,
)

__all__ = [
    "dataclass",
]
