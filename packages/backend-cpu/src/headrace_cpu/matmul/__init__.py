"""Matrix multiplications: BLAS, own kernels for shapes at which it is slow, sums into variables."""
