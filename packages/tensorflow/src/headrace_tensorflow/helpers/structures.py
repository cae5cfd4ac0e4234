"""``util.nest``: names that the public module has otherwise."""

from __future__ import annotations

import headrace as hr

is_sequence = hr.nest.is_nested
is_sequence_or_composite = hr.nest.is_nested
