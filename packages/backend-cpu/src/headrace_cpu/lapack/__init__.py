"""Linear algebra by the LAPACK that NumPy brings, called without NumPy, on all threads."""
