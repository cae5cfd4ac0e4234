"""Headrace graphs across MPI ranks."""
