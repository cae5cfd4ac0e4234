"""All programs of input pipelines.

``generate_table.py`` runs them with TensorFlow and stores the results in ``table.json``.
"""

from __future__ import annotations

import pipeline_batches  # noqa: F401 - each adds its programs
import pipeline_buckets  # noqa: F401
import pipeline_fullness  # noqa: F401
import pipeline_sparse  # noqa: F401
from pipeline_steps import PROGRAMS

__all__ = ["PROGRAMS"]
