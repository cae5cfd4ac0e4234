"""Partitioning: one graph per device, with Send and Recv where edges cross."""
