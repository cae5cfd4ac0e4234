"""Readers: what programs call, and what stands behind it when steps run."""
