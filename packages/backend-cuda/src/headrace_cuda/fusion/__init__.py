"""Generated kernels: elementwise operations, and reductions before, inside and after them."""
