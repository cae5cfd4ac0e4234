"""The compiler of fused kernels: elementwise operations, reductions and updates in one pass."""
