"""The commands of ``python -m headrace``."""
