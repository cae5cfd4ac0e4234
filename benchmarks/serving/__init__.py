"""Requests per second of a server of a network, beside a plain one around the same in NumPy."""
