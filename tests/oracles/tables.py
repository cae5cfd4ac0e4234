"""All tables, by family."""

from __future__ import annotations

import importlib

from .rows import Row

FAMILIES = {
    "elementwise": "Elementwise functions",
    "special": "Special functions",
    "reduce": "Reductions and orders",
    "array": "Shapes, slices and joins",
    "gather": "Indices and segments",
    "linalg": "Matrices",
    "conv": "Convolutions and pools",
    "nn": "Normalization and cross-entropies",
    "losses": "Losses",
    "image": "Images",
    "control": "Control flow",
    "sparse": "Sparse tensors",
}
TABLES: dict[str, list[Row]] = {
    title: importlib.import_module(f"{__package__}.{module}").ROWS
    for module, title in FAMILIES.items()
}
ROWS = [row for rows in TABLES.values() for row in rows]
