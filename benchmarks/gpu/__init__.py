"""Training steps of the networks on one GPU, beside those of PyTorch and JAX on the same GPU."""
