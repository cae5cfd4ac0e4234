"""Documents: graphs written down, read again, and copied into others."""

from headrace.documents.document import (
    dump,
)
from headrace.documents.graft import (
    Grafted,
    graft,
)
from headrace.documents.reader import (
    OutputLimit,
    checked_specs,
)
from headrace.graph.external_arrays import (
    Arrays,
    arrays_apart,
)

__all__ = [
    "Arrays",
    "Grafted",
    "OutputLimit",
    "arrays_apart",
    "checked_specs",
    "dump",
    "graft",
]
