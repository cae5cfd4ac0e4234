"""A step that computes nothing: workers take parameters from a ps, and send it a trivial update."""
