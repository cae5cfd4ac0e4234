"""Compiled regions: what a step on a GPU runs as kernels of its own, and as one CUDA graph."""
