"""Faults, each put into the correct plugin of ``mill.py``, and what the kit says of it."""
