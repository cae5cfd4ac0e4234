"""The ops that the package declares."""
