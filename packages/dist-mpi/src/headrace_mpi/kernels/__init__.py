"""Kernels of the package's ops, by family."""
