"""Execution: plans, and the ways in which they run."""
