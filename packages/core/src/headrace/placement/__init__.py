"""Placement: which device runs each operation of a step."""
