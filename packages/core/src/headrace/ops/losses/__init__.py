"""Weighted losses, which the graph collects."""
