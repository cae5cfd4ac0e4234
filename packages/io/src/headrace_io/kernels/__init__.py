"""Kernels of the package's ops. They run on the host, where files and strings are."""
