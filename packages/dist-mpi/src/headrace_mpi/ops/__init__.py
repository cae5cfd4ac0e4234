"""The ops of the package, declared by family."""
