"""Matrix products on a GPU, by cublasLt."""
