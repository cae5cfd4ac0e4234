"""Slices that are picked by indices, as kernels of our own."""
