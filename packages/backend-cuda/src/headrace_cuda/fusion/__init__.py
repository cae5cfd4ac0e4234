"""Generated kernels: chains of elementwise operations, and reductions before, inside and after them."""
