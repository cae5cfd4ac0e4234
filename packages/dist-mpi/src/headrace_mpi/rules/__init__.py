"""Gradient rules of the package's ops, by family."""
