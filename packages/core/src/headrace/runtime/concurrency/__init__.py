"""Threads, and waiting: for other threads, for steps, for an end."""
