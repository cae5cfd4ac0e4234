"""What CuPy has of SciPy."""
