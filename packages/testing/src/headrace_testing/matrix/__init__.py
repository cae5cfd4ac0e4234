"""The conformance matrix: every sample on every backend and executor, told in one table."""
