"""A stand-in for the package ``cupyx``, beside the one for ``cupy``."""
