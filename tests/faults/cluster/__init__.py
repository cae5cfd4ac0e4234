"""Faults in every phase and role of a job on a cluster; run it with ``python -m``."""
