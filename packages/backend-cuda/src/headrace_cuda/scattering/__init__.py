"""Rows that are added up where indices say, as kernels of our own."""
