"""Headrace as the rows of the table call it.

Its functions get the attributes of messages by name, whose types are known when a graph is read.
"""

from __future__ import annotations

from typing import Any

import headrace

hr: Any = headrace
