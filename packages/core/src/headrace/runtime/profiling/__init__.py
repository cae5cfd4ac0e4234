"""Profiling: what steps do and how long it takes, recorded, measured and told."""
